"""Messages that lead to the cure: what a slip is called, and what is to be done about it."""

from __future__ import annotations

import pytest

from diagnostics import DiagnosticError
from diagnostics.errors import InputError
from synthesis.check.data import _remedy_of_sample
from synthesis.parse.parser import read
from training.catalog.discovery import choose

HEAD = "arch: net\ndataset: x\nlayers:\n"


def complaints(text: str) -> list[str]:
    """Return everything that is said about a description."""
    try:
        reading = read(text, "net.yaml")
    except DiagnosticError as exc:
        return [str(d) for d in exc.diagnostics]
    return [str(d) for d in (*reading.problems, *reading.description.warnings)]


@pytest.mark.parametrize(
    ("found", "wanted", "remedy"),
    [
        ((28, 28, 1), (1, 28, 28), "save sample.reshape(1, 28, 28)"),
        ((32, 48, 3), (3, 32, 48), "save sample.transpose(2, 0, 1)"),
        ((64, 64, 1), (3, 64, 64), "has no axis of channels"),
        ((1, 32, 32), (1, 28, 28), "Use a sample of this data set"),
    ],
)
def test_sample_of_another_order(
    found: tuple[int, int, int], wanted: tuple[int, int, int], remedy: str
) -> None:
    assert remedy in _remedy_of_sample(found, wanted)


def test_quote_that_is_not_closed_is_found_where_it_begins() -> None:
    text = 'arch: net\ndataset: x\nname: "begins here\n' + "# more\n" * 40
    assert any("that begins in line 3, column 7" in said for said in complaints(text))


def test_activation_that_is_refused_is_not_called_missing() -> None:
    text = HEAD + "  - {processors: 1, out_offset: 0, op: conv2d, activate: LeakyReLU}\n"
    found = complaints(text)
    assert len([said for said in found if "activate" in said]) == 1
    assert "[E109]" in "".join(found) and "[N151]" not in "".join(found)


def test_name_of_the_vendors_models_is_recognized() -> None:
    with pytest.raises(InputError, match="like those of the vendor's tools"):
        choose({}, "ai85nascifarnet2", "--model")
    with pytest.raises(InputError, match="is not known"):
        choose({}, "mynetwork", "--model")

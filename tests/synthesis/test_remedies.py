"""Messages that lead to the cure: what a slip is called, and what is to be done about it."""

from __future__ import annotations

import pytest

from ai8xtools.commands.loader.arguments import parse
from ai8xtools.diagnostics import DiagnosticError
from ai8xtools.diagnostics.errors import InputError
from ai8xtools.synthesis.check.data import _remedy_of_sample
from ai8xtools.synthesis.parse.parser import read
from ai8xtools.training.catalog.discovery import choose

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


@pytest.mark.parametrize("digit", ["٣", "３", "३"])
@pytest.mark.parametrize(
    ("key", "value"),
    [
        ("pad", "{}"), ("out_offset", "{}"), ("kernel_size", "{0}x{0}"), ("kernel_size", "{}"),
        ("processors", "0x{}"), ("pad", '!!int "{}"'), ("max_pool", "[1, {}]"),
    ],
)  # fmt: skip
def test_digits_of_another_script_are_named(digit: str, key: str, value: str) -> None:
    keys = {"processors": "1", "op": "conv2d", "activate": "ReLU", "out_offset": "0"}
    keys[key] = value.format(digit)
    inner = ", ".join(f"{name}: {text}" for name, text in keys.items())
    found = complaints(f"{HEAD}  - {{{inner}}}\n")
    assert any(f"'{key}'" in said and "digits other than 0 to 9" in said for said in found)
    assert not any("is not given" in said and f"'{key}'" in said for said in found)


@pytest.mark.parametrize(
    "words", [["--timer", "٣"], ["--boost", "٣.1"], ["--apb-base", "３"], ["--input-split", "२"]]
)
def test_digits_of_another_script_are_named_in_options(
    capsys: pytest.CaptureFixture[str], words: list[str]
) -> None:
    with pytest.raises(SystemExit) as caught:
        parse(["--device", "MAX78000", "--config-file", "x", "--prefix", "٣", *words])
    assert caught.value.code == 2
    said = capsys.readouterr().err
    assert words[0] in said and "digits other than 0 to 9" in said and "--prefix" not in said

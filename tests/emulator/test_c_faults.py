"""Some faults of `make measure WHAT=c-faults`, and layers that deliver more than they should."""

from __future__ import annotations

import re
import shutil
from pathlib import Path

import numpy as np
import pytest

from ai8xtools.commands.emulate.arguments import parse
from ai8xtools.commands.emulate.emulate import emulate
from tests.emulator.c_faults import KINDS, fault, told
from tests.emulator.trees import change, generate


@pytest.fixture(scope="module")
def made(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A generated project."""
    return generate(tmp_path_factory.mktemp("made") / "digits")


@pytest.mark.parametrize("number", range(8))
def test_fault_in_the_c_is_told(number: int, made: Path, tmp_path: Path) -> None:
    damage = fault(KINDS[number % len(KINDS)], made, np.random.default_rng(number))
    found, outcome = told(damage, made, tmp_path)
    assert found, damage
    assert outcome.status == 1, damage


def swapped(text: str, step: int) -> str:
    """Exchange the code of layers 1 and 2 in cnn.c; `step` 4 gives each the registers of the other.

    The code keeps its registers with `step` 0: then only the order of the writes changes.
    """
    begin, middle, end = (text.index(f"    // Layer {layer} quadrant 0") for layer in (1, 2, 3))

    def moved(code: str, by: int) -> str:
        return re.sub(r"0x50[0-9a-f]{6}", lambda found: f"0x{int(found[0], 16) + by:08x}", code)

    first, second = moved(text[begin:middle], step), moved(text[middle:end], -step)
    return text[:begin] + second + first + text[end:]


def test_layers_whose_code_is_exchanged(
    made: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    """The order of the writes is free; registers of another layer are told one by one."""
    project = Path(shutil.copytree(made, tmp_path / "digits"))
    text = (project / "cnn.c").read_text()
    (project / "cnn.c").write_text(swapped(text, 0))
    assert emulate(parse([str(project)])) == 0
    assert "As in answer.npz" in capsys.readouterr().out
    (project / "cnn.c").write_text(swapped(text, 4))
    assert emulate(parse([str(project)])) == 1
    said = capsys.readouterr().out
    assert re.search(r"First wrong word: cnn_configure: 0x50100014, .*layer 1.*expected", said)
    assert emulate(parse([str(project), "--no-answer"])) == 1


@pytest.mark.parametrize(
    ("register", "bit", "text"),
    [
        ("0x50100a1c", 16, r"layer 3 \(\w+\) delivers another channel at instance 2 lane 2"),
        ("0x50100018", 9, r"layer 2 \(\w+\) delivers \d+ pixels, not 16"),
    ],
)
def test_layer_that_delivers_more_is_named(
    register: str, bit: int, text: str, made: Path, tmp_path: Path,
    capsys: pytest.CaptureFixture[str],
) -> None:  # fmt: skip
    """The right outputs are there as well."""
    project = Path(shutil.copytree(made, tmp_path / "digits"))
    found = re.search(rf"{register}\) = (0x\w+)", (project / "cnn.c").read_text())
    assert found is not None
    wrong = f"{register}) = 0x{int(found[1], 16) ^ 1 << bit:08x}"
    change(project / "cnn.c", (found[0], wrong))
    emulate(parse([str(project)]))
    assert re.search(f"First layer that departs from answer.npz: {text}", capsys.readouterr().out)

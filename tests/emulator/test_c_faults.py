"""Some of the faults of `make c-faults`, and layers that deliver more than they should."""

from __future__ import annotations

import re
import shutil
from pathlib import Path

import numpy as np
import pytest

from commands.emulate.arguments import parse
from commands.emulate.emulate import emulate
from tests.emulator.c_faults import KINDS, fault, told
from tests.emulator.trees import change, generate


@pytest.fixture(scope="module")
def made(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A generated project."""
    return generate(tmp_path_factory.mktemp("made") / "digits")


@pytest.mark.parametrize("number", range(8))
def test_fault_in_the_c_is_told(number: int, made: Path, tmp_path: Path) -> None:
    damage = fault(KINDS[number % len(KINDS)], made, np.random.default_rng(number))
    found, last = told(damage, made, tmp_path)
    assert found, damage
    assert not last.startswith("PASS") or "the words differ" in last


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

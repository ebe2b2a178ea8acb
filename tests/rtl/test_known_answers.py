"""Tests for RTL simulation of a sample of the known answers; `known_answers` does the others."""

from __future__ import annotations

from pathlib import Path

import pytest

pytest.importorskip("unicorn", reason="needs the emulator (extra `emulator`)")

from tests.rtl.by_hand import rtl_options, stored
from tests.rtl.comparing import differences, found_in, wanted_of
from tests.rtl.known_answers import answer
from tests.synthesis.programs import program
from tools.rtl_program import TestProgram

SAMPLE = (
    "max78002-mnist-riscv",
    "conv2d-pooldilation-ai87",
    "conv1d-pool-1-binary-ai87",
    "mlp-multilayer208",
    "fifostream-32-hwc",
    "opt-fast-fifo-quad-mnist",
    "opt-write-zero-registers-mnist",
    "own-snoop-ai87",
)


@pytest.mark.parametrize("name", SAMPLE)
def test_words_are_those_of_the_reference_tool(name: str, shared: Path) -> None:
    if not (shared / "kat" / "cases" / name).is_dir():
        pytest.skip(f"there is no known answer {name}")
    found = answer(name)
    assert found.refused == "" and found.wrong == ()


def test_every_difference_is_noticed(tmp_path: Path) -> None:
    made = program()
    found = found_in(
        TestProgram(stored(made, rtl_options(), tmp_path / "test"), made.chip), made.chip
    )
    wanted = wanted_of(found)
    assert differences(found, wanted) == []
    for phase, part in wanted.items():
        for address in part.words:
            other = {**part.words, address: part.words[address] ^ 1}
            changed = {**wanted, phase: part._replace(words=other)}
            assert len(differences(found, changed)) == 1
            del other[address]
            assert len(differences(found, changed)) == 1
        assert differences(found, {**wanted, phase: part._replace(pushes={8: [1]})})
        assert differences(found, {**wanted, phase: part._replace(control=[(1, 2)])})

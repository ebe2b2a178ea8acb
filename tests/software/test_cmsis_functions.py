"""The functions with the prototypes of Arm's library, one by one, against their definitions."""

from __future__ import annotations

from pathlib import Path

import pytest

from ai8xtools.emulator.cpu.architecture import ARCHITECTURES
from ai8xtools.emulator.plain import compile_plain, run_plain
from tests.software.compiled import local_compiler, run_program
from tests.software.library_calls import program


def test_functions_leave_the_expected_bytes_behind(tmp_path: Path) -> None:
    """With sanitizers, and as strict compilers want it."""
    if local_compiler() is None:
        pytest.skip("neither gcc nor clang is installed")
    result = run_program(program(), tmp_path)
    assert (result.stdout, result.stderr) == ("*** PASS ***\n", "")


def test_functions_with_instructions_of_the_dsp_extension(tmp_path: Path) -> None:
    for name, text in program().items():
        (tmp_path / name).write_text(text)
    run = run_plain(compile_plain(tmp_path, ARCHITECTURES["cortex-m4"], "-O1"))
    assert run.text == "*** PASS ***\n"

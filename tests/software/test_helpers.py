"""C functions that are no kernels: pooling, joins, copies, rows of images."""

from __future__ import annotations

from pathlib import Path

import pytest

from ai8xtools.emulator.cpu.architecture import ARCHITECTURES
from ai8xtools.emulator.plain import compile_plain, run_plain
from tests.software.compiled import local_compiler, run_program
from tests.software.helper_calls import calls, program


def test_helpers_leave_the_expected_bytes_behind(tmp_path: Path) -> None:
    """With sanitizers, and as strict compilers want it."""
    if local_compiler() is None:
        pytest.skip("neither gcc nor clang is installed")
    result = run_program(program(calls()), tmp_path)
    assert (result.stdout, result.stderr) == ("*** PASS ***\n", "")


def test_helpers_with_instructions_of_the_dsp_extension(tmp_path: Path) -> None:
    for name, text in program(calls()).items():
        (tmp_path / name).write_text(text)
    run = run_plain(compile_plain(tmp_path, ARCHITECTURES["cortex-m4"], "-O2"))
    assert run.text == "*** PASS ***\n"

"""Kernels in C, called for some pixels of a row: odd sizes, borders, the ends of all ranges."""

from __future__ import annotations

import subprocess
from collections.abc import Sequence
from pathlib import Path

import pytest

from ai8xtools.emulator.cpu.architecture import ARCHITECTURES
from ai8xtools.emulator.plain import compile_plain, run_plain
from ai8xtools.software.kernels.lanes import LANES, SMALL_LANES
from ai8xtools.software.kernels.registry import Kernel
from tests.software.compiled import SANITIZED, local_compiler
from tests.software.kernel_rows import CORES, DESK, bytes_of, program

needs_compiler = pytest.mark.skipif(local_compiler() is None, reason="neither gcc nor clang")


def on_the_desk(
    kernels: Sequence[Kernel], folder: Path, count: int, flags: Sequence[str] = ()
) -> str:
    """Return what the driver prints on this computer, with sanitizers."""
    for name, text in program(kernels).items():
        (folder / name).write_text(text)
    (folder / "calls").write_bytes(bytes_of(kernels, count))
    command = [str(local_compiler()), "-std=c99", *SANITIZED, *flags]
    built = subprocess.run([*command, "main.c", "nn_kernels.c", "-o", "main"], cwd=folder,
                           capture_output=True, text=True, check=False)  # fmt: skip
    assert built.returncode == 0, built.stderr
    done = subprocess.run([folder / "main", folder / "calls"], capture_output=True, text=True,
                          check=False)  # fmt: skip
    return done.stdout + done.stderr[:2000]


@needs_compiler
def test_kernels_in_plain_c(tmp_path: Path) -> None:
    assert on_the_desk(DESK, tmp_path, 100) == f"{100 * len(DESK)} calls\n"


@needs_compiler
@pytest.mark.parametrize(
    ("kernel", "flag"), [(SMALL_LANES, "-DNN_FOR_CORTEX_M0PLUS"), (LANES, "-D__riscv")]
)
def test_kernels_that_compute_other_blocks_on_other_cores(
    kernel: Kernel, flag: str, tmp_path: Path
) -> None:
    assert on_the_desk((kernel,), tmp_path, 100, (flag,)) == "100 calls\n"


@pytest.mark.parametrize("core", CORES)
def test_kernels_with_instructions_of_a_core(core: str, tmp_path: Path) -> None:
    kernels = CORES[core]
    for name, text in program(kernels, core.upper().replace("-", "_")).items():
        (tmp_path / name).write_text(text)
    run = run_plain(
        compile_plain(tmp_path, ARCHITECTURES[core], "-O1"),
        contents={"rows_of_kernels": bytes_of(kernels, 100)},
    )
    assert run.text == f"{100 * len(kernels)} calls\n"

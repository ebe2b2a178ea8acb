"""Kernels in C, called for some pixels of a row: odd sizes, borders, the ends of all ranges."""

from __future__ import annotations

import functools
import os
import shutil
import subprocess
import tempfile
from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path
from unittest.mock import patch

import pytest

from ai8xtools.emulator.cpu.architecture import ARCHITECTURES
from ai8xtools.emulator.plain import PlainProgram, compile_plain, run_plain
from ai8xtools.software.kernels.depthwise import DEPTHWISE
from ai8xtools.software.kernels.dsp import DSP
from ai8xtools.software.kernels.lanes import LANES, SMALL_LANES
from ai8xtools.software.kernels.nomul import BUCKETS
from ai8xtools.software.kernels.pixel import DSP_PIXEL, PIXEL
from ai8xtools.software.kernels.registry import Kernel
from tests.software.compiled import SANITIZED, local_compiler
from tests.software.kernel_rows import (
    ABSOLUTE,
    CORES,
    DESK,
    Shape,
    bytes_of,
    one_call,
    program,
    usual,
)

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
def test_kernel_of_the_smallest_cores_computes_other_blocks(tmp_path: Path) -> None:
    flags = ("-DNN_FOR_CORTEX_M0PLUS",)
    assert on_the_desk((SMALL_LANES,), tmp_path, 100, flags) == "100 calls\n"


ZIG = "zig"
"""The compiler that instructions are counted with."""
USUAL = "" if shutil.which("arm-none-eabi-gcc") else ZIG


@functools.cache
def _compiled(core: str, compiler: str = USUAL) -> PlainProgram:
    compilers = patch.dict(os.environ, {"AI8X_COMPILER": compiler} if compiler else {})
    with compilers, tempfile.TemporaryDirectory() as folder:
        for name, text in program(CORES[core], core.upper().replace("-", "_")).items():
            (Path(folder) / name).write_text(text)
        return compile_plain(Path(folder), ARCHITECTURES[core], "-O1")


@pytest.mark.parametrize("core", CORES)
def test_kernels_with_instructions_of_a_core(core: str) -> None:
    kernels = CORES[core]
    run = run_plain(_compiled(core), contents={"rows_of_kernels": bytes_of(kernels, 100)})
    assert run.text == f"{100 * len(kernels)} calls\n"


_PER_PRODUCT = {
    ("cortex-m0plus", SMALL_LANES): 2.34, ("cortex-m0plus", PIXEL): 3.46,
    ("cortex-m0plus", DEPTHWISE): 5.58, ("cortex-m0plus", BUCKETS): 5.32,
    ("cortex-m4", LANES): 1.36, ("cortex-m4", DSP): 1.09, ("cortex-m4", DSP_PIXEL): 1.29,
    ("cortex-m4", DEPTHWISE): 2.70, ("rv32imc", LANES): 2.05, ("rv32imc", DEPTHWISE): 4.28,
}  # fmt: skip
"""Instructions of the usual shape; compilers may differ by a tenth."""
_SLOWER: dict[Kernel, tuple[dict[str, int], ...]] = {
    SMALL_LANES: ({"flags": ABSOLUTE}, {"right": -1}, {"dilation": 2, "width": 20}),
    LANES: ({"flags": ABSOLUTE}, {"right": -1}, {"dilation": 2, "width": 20}, {"pad": 4}),
    DEPTHWISE: (
        {"flags": ABSOLUTE}, {"right": -1}, {"dilation": 2, "width": 20}, {"pad": 3},
        {"stride": 2, "width": 32},
    ),
    BUCKETS: ({"dilation": 2, "width": 20},),
    DSP: ({"flags": ABSOLUTE}, {"right": -1}, {"dilation": 2, "width": 20}),
    PIXEL: (), DSP_PIXEL: (),
}  # fmt: skip
"""What the code for usual shapes cannot do."""


def _instructions(core: str, kernel: Kernel, shape: Shape) -> int:
    call = one_call(kernel, shape, CORES[core].index(kernel))
    run = run_plain(_compiled(core, ZIG), contents={"rows_of_kernels": call}, count=True)
    assert run.text == "1 calls\n" and run.functions is not None
    own = (cost for name, cost in run.functions.items() if name.startswith("nn_"))
    return sum(cost.instructions for cost in own)


@pytest.mark.parametrize("core", CORES)
def test_usual_shapes_are_computed_by_the_code_that_is_fast(core: str) -> None:
    for kernel in CORES[core]:
        shape = usual(kernel)
        products = 9 * 16 * shape.count * (16 // shape.groups)
        least = _instructions(core, kernel, shape)
        assert least <= 1.1 * _PER_PRODUCT[core, kernel] * products, kernel.function
        for other in _SLOWER[kernel]:
            slower = _instructions(core, kernel, replace(shape, **other))
            assert slower > 1.02 * least, (kernel.function, other)
        if kernel is DEPTHWISE:  # borders, too
            assert _instructions(core, kernel, replace(shape, missing=1)) < 0.8 * least

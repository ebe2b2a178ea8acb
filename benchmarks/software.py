#!/usr/bin/env python3
"""Instructions of kernels and networks on cores without an accelerator.

`make measure WHAT=software-benchmarks` runs it.

Whole layers with padding and output, -O3; weights of the layers are random. Cycles are an estimate
(docs/emulator.md). The yardsticks: CMSIS-NN (5.9.0 q7 / 7 s8; linear layers: s8 of July 2026 with
gcc 12.2), same layers, compiler and counting; they are quoted, not run. With a copy of CMSIS-NN its
depthwise convolution is run too.
"""

from __future__ import annotations

import argparse
import os
import sys
import tempfile
from collections.abc import Mapping, Sequence
from pathlib import Path

import numpy as np

ROOT = Path(__file__).resolve().parent.parent
sys.path.insert(0, str(ROOT))

from ai8xtools.emulator.cpu.architecture import ARCHITECTURES  # noqa: E402
from ai8xtools.emulator.cpu.compiler import PREFERENCE  # noqa: E402
from ai8xtools.emulator.cpu.counting import NOTHING  # noqa: E402
from ai8xtools.emulator.plain import PlainRun, compile_plain, run_plain  # noqa: E402
from ai8xtools.software.cores import CORES  # noqa: E402
from ai8xtools.software.graph import Convolution  # noqa: E402
from ai8xtools.software.kernels.lanes import LANES  # noqa: E402
from ai8xtools.software.kernels.registry import Kernel  # noqa: E402
from ai8xtools.software.kernels.table import choose  # noqa: E402
from benchmarks.cmsis_nn import depthwise_program  # noqa: E402
from benchmarks.kernel_bounds import least  # noqa: E402
from benchmarks.software_networks import known_networks  # noqa: E402
from tools.kernel_layer import Trial, layer, program  # noqa: E402

_RNG = np.random.default_rng(1)
_SECONDS = 300.0
_KNOWN = ROOT.parent / "shared/kat-software/cmsis-software-nn"


def _layer(
    rows: int, columns: int, channels: int, filters: int, kernel: int, groups: int = 1
) -> Convolution:
    shape = (filters, channels // groups, kernel, kernel)
    weights = np.clip(np.rint(_RNG.laplace(0, 20, shape)), -128, 127).astype(np.int8)
    start = _RNG.integers(-128, 128, filters) * 128 + 64
    pad = (kernel // 2, kernel // 2)
    return layer((rows, columns), weights, start, pad=pad, groups=groups, low=0, signed=False)


_DEPTHWISE = _layer(25, 5, 64, 64, 3, 64)
_OF_LIBRARY = 0.8
"""Instructions of a depthwise layer, at most, of those of CMSIS-NN."""
_CASES: tuple[tuple[str, Convolution, str, Kernel | None, str, float | None], ...] = (
    ("3x3, 16x16x32 to 32", _layer(16, 16, 32, 32, 3), "cortex-m4", None, "2.06 / 2.10", 0.95),
    ("the same, --kernels c", _layer(16, 16, 32, 32, 3), "cortex-m4", LANES, "2.06 / 2.10", 1.28),
    ("1x1, 120 pixels, 64 to 64", _layer(1, 120, 64, 64, 1), "cortex-m4", None, "2.18 / 2.44", 1.1),
    ("linear, 256 to 64", _layer(1, 1, 256, 64, 1), "cortex-m4", None, "- / 2.08", 1.04),
    ("linear, 1024 to 10", _layer(1, 1, 1024, 10, 1), "cortex-m4", None, "- / 1.94", 1.16),
    ("depthwise 3x3, 25x5x64", _DEPTHWISE, "cortex-m4", None, "-", 2.6),
    ("depthwise 3x3, 25x5x64", _DEPTHWISE, "cortex-m0plus", None, "-", 5.4),
    ("depthwise 3x3, 25x5x64", _DEPTHWISE, "rv32imc", None, "-", 4.33),
    ("3x3, 16x16x16 to 16", _layer(16, 16, 16, 16, 3), "cortex-m0plus", None, "9.7 / 7.8", 2.45),
    ("3x3, 16x16x16 to 16", _layer(16, 16, 16, 16, 3), "rv32imc", None, "-", 2.12),
    ("3x3, 16x16x16 to 16", _layer(16, 16, 16, 16, 3), "rv32ec", None, "136 (__mulsi3)", 10),
)
_BOUNDS = {
    10_751_808: {"cortex-m4": 14.5, "cortex-m0plus": 28, "rv32imc": 26},
    8_345_344: {"cortex-m4": 11, "cortex-m0plus": 29},
    214_400: {"cortex-m4": 0.6, "cortex-m0plus": 1.2},
}
"""Million instructions, at most, of MNIST, kws20 v3 and extra-small MNIST, by their products."""


def _measure(files: Mapping[str, str], core: str, flags: Sequence[str] = ()) -> PlainRun:
    with tempfile.TemporaryDirectory() as name:
        for path, text in files.items():
            (Path(name) / path).write_text(text, encoding="utf-8")
        compiled = compile_plain(Path(name), ARCHITECTURES[core], flags=flags)
        return run_plain(compiled, count=True, time_limit=_SECONDS)


def _kernels() -> bool:
    """Print the table of kernels; tell whether all are right and within their bounds."""
    print(
        "| layer | core | kernel | instructions per product | least | times | cycles (estimate) "
        "| CMSIS-NN | bound |"
    )
    print("|---|---|---|---|---|---|---|---|---|")
    good = True
    for name, conv, core, preferred, yardstick, bound in _CASES:
        kernel = preferred or choose(conv, CORES[core])
        low = int(conv.input.low.min())
        data = _RNG.integers(low, 128, (*conv.in_size, conv.channels)).astype(np.int8)
        run = _measure(program([Trial(conv, kernel, data)]), core)
        total = sum((run.functions or {}).values(), NOTHING)
        each, few = total.instructions / conv.macs, least(conv, core, kernel.function)
        good &= bool(run.passed) and (bound is None or each <= bound)
        print(
            f"| {name} | {core} | {kernel.function} | {each:.2f} | {few:.2f} | {each / few:.2f} "
            f"| {total.cycles / conv.macs:.2f} | {yardstick} | {'-' if bound is None else bound} |"
            f"{'' if run.passed else ' WRONG RESULT'}"
        )
    return good


def _library(folder: Path) -> bool:
    """Print the depthwise layer with CMSIS-NN and with our kernel; tell whether ours is better."""
    data = _RNG.integers(0, 128, (*_DEPTHWISE.in_size, _DEPTHWISE.channels)).astype(np.int8)
    kernel = choose(_DEPTHWISE, CORES["cortex-m4"])
    ours = _measure(program([Trial(_DEPTHWISE, kernel, data)]), "cortex-m4")
    files, flags = depthwise_program(folder, _DEPTHWISE, data)
    theirs = _measure(files, "cortex-m4", flags)
    counts = [
        sum((run.functions or {}).values(), NOTHING).instructions / _DEPTHWISE.macs
        for run in (ours, theirs)
    ]
    share = counts[0] / counts[1]
    print(
        f"\ndepthwise 3x3, 25x5x64, cortex-m4, instructions per product: {counts[0]:.2f}; "
        f"CMSIS-NN's arm_depthwise_conv_wrapper_s8 {counts[1]:.2f}; "
        f"{share:.2f} of it, the bound is {_OF_LIBRARY}"
        f"{'' if ours.passed and theirs.passed else ' WRONG RESULT'}"
    )
    return bool(ours.passed and theirs.passed) and share <= _OF_LIBRARY


def _networks(folders: list[Path]) -> bool:
    """Print the table of generated projects, each on the core of its plan."""
    import json

    print(
        "\n| project | core | million instructions | bound | per product | RAM | arena | stack "
        "| code |"
    )
    print("|---|---|---|---|---|---|---|---|---|")
    good = True
    for folder in folders:
        core = json.loads((folder / "plan.json").read_text(encoding="utf-8"))["core"]
        compiled = compile_plain(folder, ARCHITECTURES[core])
        run = run_plain(compiled, count=True, time_limit=_SECONDS)
        small = run_plain(compile_plain(folder, ARCHITECTURES[core], "-Os"), time_limit=_SECONDS)
        total = sum((run.functions or {}).values(), NOTHING)
        bound = _BOUNDS.get(compiled.macs or 0, {}).get(core)
        millions = total.instructions / 1e6
        good &= bool(run.passed) and bool(small.passed) and (bound is None or millions <= bound)
        print(
            f"| {folder.name} | {core} | {millions:.2f} | {'-' if bound is None else bound} | "
            f"{total.instructions / (compiled.macs or 1):.2f} | {run.ram_bytes:,} | "
            f"{run.arena_bytes:,} | {run.stack_bytes} | {run.code_bytes:,} / {small.code_bytes:,} |"
            f"{'' if run.passed and small.passed else ' WRONG RESULT'}"
        )
    return good


def main() -> int:
    """Measure; the status is 1 if a result is wrong or a bound is exceeded."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("projects", nargs="*", type=Path, help="projects of --device MCU")
    parser.add_argument("--cmsis-nn", type=Path, metavar="DIR", help="a copy of CMSIS-NN")
    parser.add_argument("--known", type=Path, metavar="DIR", default=_KNOWN,
                        help="networks of known answers (default: %(default)s)")  # fmt: skip
    args = parser.parse_args()
    os.environ.setdefault(PREFERENCE, "zig")  # what the bounds are for
    good = _kernels()
    if args.cmsis_nn is not None:
        good &= _library(args.cmsis_nn)
    good &= _networks(args.projects) if args.projects else known_networks(args.known)
    return 0 if good else 1


if __name__ == "__main__":
    sys.exit(main())

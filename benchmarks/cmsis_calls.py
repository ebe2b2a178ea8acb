#!/usr/bin/env python3
"""Instructions and sizes of programs that call Arm's q7 functions.

`make measure WHAT=cmsis-benchmarks` runs it.

Layers with random weights, -O3; networks of the known answers, if they are there. With a copy of
CMSIS 5.9.0 or older (`--cmsis-nn DIR`) Arm's functions are measured beside ours. "Published" are
figures of the library that were measured elsewhere with clang 22 -O3: quoted, not run.
"""

from __future__ import annotations

import argparse
import os
import sys
import tempfile
from collections.abc import Iterator, Mapping
from pathlib import Path

import numpy as np

ROOT = Path(__file__).resolve().parent.parent
sys.path.insert(0, str(ROOT))

from ai8xtools.commands.emulate.plain import library_of  # noqa: E402
from ai8xtools.emulator.cpu.architecture import ARCHITECTURES  # noqa: E402
from ai8xtools.emulator.cpu.compiler import PREFERENCE  # noqa: E402
from ai8xtools.emulator.cpu.counting import NOTHING  # noqa: E402
from ai8xtools.emulator.plain import compile_plain, run_plain  # noqa: E402
from ai8xtools.software.cmsis.build import build_calls  # noqa: E402
from ai8xtools.software.cores import CORES  # noqa: E402
from ai8xtools.software.profile import UNLIMITED, Profile  # noqa: E402
from ai8xtools.synthesis.network import Activation, Layer, Network, Operator  # noqa: E402
from tests.software.known_answers import read_network  # noqa: E402

KNOWN = ROOT.parent / "shared/kat-software/cmsis-software-nn"
_RNG = np.random.default_rng(1)
_SECONDS = 600.0
_LAYERS = {
    "3x3, 16x16x16 to 16": ((16, 16), 16, 16, 3, {"cortex-m4": "2.03", "cortex-m0plus": "9.7"}),
    "3x3, 16x16x32 to 32": ((16, 16), 32, 32, 3, {"cortex-m4": "1.87 to 2.06"}),
    "1x1, 12x10x64 to 64": ((12, 10), 64, 64, 1, {"cortex-m4": "2.18", "cortex-m0plus": "7.11"}),
    "3x3, 28x28x1 to 60": ((28, 28), 1, 60, 3, {"cortex-m4": "4.50"}),
}
"""Size, channels, filters, kernel, and the library's instructions per product."""
_NETWORKS = {
    "mnistxs": {"cortex-m4": "1.04 M", "cortex-m0plus": "7.94 M"},
    "kws20v3": {"cortex-m4": "18.69 M", "cortex-m0plus": "70.99 M"},
    "mnist": {"cortex-m4": "21.30 M (not exact)", "cortex-m0plus": "106.18 M"},
}
"""Instructions of an inference with the library."""


def _layer(size: tuple[int, int], channels: int, filters: int, kernel: int) -> Network:
    """Return a network of one convolution with random weights."""
    weights = _RNG.laplace(0, 20, (filters, channels, kernel, kernel))
    pad = kernel // 2
    layer = Layer(
        index=0, operator=Operator.CONV2D, in_channels=channels, out_channels=filters, in_dim=size,
        pooled_dim=size, kernel=(kernel, kernel), pad=(pad, pad), out_dim=size,
        activation=Activation.RELU, weight_bits=8,
        weights=np.clip(np.rint(weights), -128, 127).astype(np.int8),
        bias=_RNG.integers(-128, 128, filters),
    )  # fmt: skip
    sample = _RNG.integers(0, 128, (channels, *size))
    return Network(layers=(layer,), order=(0,), simulated=(0,), sample=sample)


def _files(network: Network, core: str, library: str | None) -> Mapping[str, str]:
    profile = Profile(core, CORES[core], UNLIMITED, UNLIMITED)
    return build_calls(network, profile, library=library).files


def _cells(network: Network, core: str, library: str | None) -> tuple[str, str, bool]:
    """Return instructions in all and per product, bytes of code, and if the result is right."""
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        for path, text in _files(network, core, library).items():
            (folder / path).write_text(text, encoding="utf-8")
        sources, flags = library_of(folder)
        program = compile_plain(folder, ARCHITECTURES[core], flags=flags, more=sources)
        run = run_plain(program, count=True, time_limit=_SECONDS)
    total = sum((run.functions or {}).values(), NOTHING).instructions
    each = total / (program.macs or 1)
    return f"{total / 1e6:.2f} M, {each:.2f}", f"{run.code_bytes:,}", bool(run.passed)


def _rows() -> Iterator[tuple[str, Network, Mapping[str, str]]]:
    for name, (size, channels, filters, kernel, published) in _LAYERS.items():
        yield name, _layer(size, channels, filters, kernel), published
    for name, published in _NETWORKS.items():
        file = KNOWN / f"{name}.json"
        if file.is_file():
            yield name, read_network(file)[0], published


def main() -> int:
    """Print the table; the status is 1 if a result is wrong."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--cmsis-nn", metavar="DIR", help="a copy of CMSIS 5.9.0 or older")
    args = parser.parse_args()
    os.environ.setdefault(PREFERENCE, "zig")  # what the published figures are for
    with_library = [None] if args.cmsis_nn is None else [None, args.cmsis_nn]
    heads = ["ours", "code"] if args.cmsis_nn is None else ["ours", "code", "library", "code"]
    print(f"| what | core | {' | '.join(heads)} | published |")
    print("|---" * (len(heads) + 3) + "|")
    good = True
    for name, network, published in _rows():
        for core in ("cortex-m4", "cortex-m0plus"):
            cells = []
            for library in with_library:
                count, code, right = _cells(network, core, library)
                cells += [count if right else f"{count} WRONG RESULT", code]
                good &= right
            figure = published.get(core, "-")
            print(f"| {name} | {core} | {' | '.join(cells)} | {figure} |", flush=True)
    print("Instructions of an inference, and of each product; code: bytes of functions")
    return int(not good)


if __name__ == "__main__":
    sys.exit(main())

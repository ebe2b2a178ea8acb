"""Every operator and key in C against the simulation, on many inputs.

`make measure WHAT=software-operators` runs it.

The inputs are random numbers, the ends of their range, and both mixed. The C runs on this computer
with sanitizers, with each set of kernels and plan; rows come one at a time from one buffer.
"""

from __future__ import annotations

import argparse
import subprocess
import sys
import tempfile
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import replace
from pathlib import Path

import numpy as np
from numpy.typing import NDArray

from ai8xtools.software.cores import CORES
from ai8xtools.software.emit.project import Sample, emit
from ai8xtools.software.fuse import fuse
from ai8xtools.software.lower import lower
from ai8xtools.software.plan.planner import plan
from ai8xtools.software.plan.schemes import SINGLE, Scheme
from ai8xtools.synthesis.network import Network
from ai8xtools.synthesis.simulate import simulate
from tests.software.compiled import SANITIZED, compiler
from tests.software.operators import NETWORKS, network_of

ON_THE_DESK = ("cortex-m0plus", "rv32imc", "rv32ec")
"""Cores whose kernels any computer runs."""
HARNESS = """#include <stdio.h>
#include "cnn.h"
#include <string.h>

static int8_t input[CNN_IN_SIZE], row[CNN_IN_ROW_BYTES];
static int32_t output[2][(CNN_OUT_BYTES + 3) / 4];

#ifdef CNN_TAKES_ROWS
static unsigned asked;

static const int8_t *one_row(void *ctx, unsigned y)
{
    if (y != asked++ || ctx != &asked) {
        asked = 9999;
    }
    memcpy(row, input + y * CNN_IN_ROW_BYTES, CNN_IN_ROW_BYTES);
    return row;
}
#endif

int main(void)
{
    (void)row;
    while (fread(input, 1, CNN_IN_SIZE, stdin) == CNN_IN_SIZE) {
        if (cnn_init() != CNN_OK || cnn_run(input, output[0]) != CNN_OK) {
            return 1;
        }
#ifdef CNN_TAKES_ROWS
        asked = 0;
        if (cnn_init() != CNN_OK || cnn_run_rows(one_row, &asked, output[1]) != CNN_OK) {
            return 2;
        }
        if (asked > CNN_IN_ROWS || memcmp(output[0], output[1], CNN_OUT_BYTES) != 0) {
            return 3;
        }
#endif
        fwrite(output[0], 1, CNN_OUT_BYTES, stdout);
    }
    return 0;
}
"""


def inputs_of(network: Network, count: int, seed: int = 0) -> list[NDArray[np.int64]]:
    """Return samples; the first are all -128, all 127, and both in turn."""
    rng = np.random.default_rng(seed)
    shape = network.sample.shape
    ends = np.where(np.arange(network.sample.size).reshape(shape) % 2, 127, -128)
    found = [np.full(shape, -128), np.full(shape, 127), ends]
    for number in range(count - len(found)):
        data = rng.integers(-128, 128, shape)
        extreme = rng.random(shape) < (number % 3) / 2
        found.append(np.where(extreme, np.where(data < 0, -128, 127), data))
    return [one.astype(np.int64) for one in found]


def expected_bytes(network: Network, samples: Sequence[NDArray[np.int64]], rounding: bool) -> bytes:
    """Return what the C writes: all outputs of all samples in the order row, column, channel."""
    parts = []
    for sample in samples:
        made = simulate(replace(network, sample=sample), average_rounding=rounding).outputs
        for layer in network.outputs():
            kind = "<i4" if layer.output_width == 32 else "i1"
            parts.append(made[layer.index].transpose(1, 2, 0).astype(kind).tobytes())
    return b"".join(parts)


def files_of(
    network: Network, core: str, scheme: Scheme, *, rounding: bool = False
) -> dict[str, str]:
    """Return the project of a network for a core, with the outputs of the simulation."""
    made = simulate(network, average_rounding=rounding).outputs
    sample = Sample(network.sample, tuple(made[layer.index] for layer in network.outputs()))
    graph = fuse(lower(network, average_rounding=rounding))
    return emit(plan(graph, CORES[core], scheme), sample, "small", "")


def judge(
    name: str,
    cores: Sequence[str],
    count: int,
    seed: int = 0,
    schemes: Sequence[Scheme] = SINGLE,
) -> Iterator[str]:
    """Yield where the C of a network differs from its simulation."""
    network = network_of(NETWORKS[name], seed)
    samples = inputs_of(network, count, seed)
    rounding = seed % 2 == 1
    wanted = expected_bytes(network, samples, rounding)
    given = b"".join(s.transpose(1, 2, 0).astype(np.int8).tobytes() for s in samples)
    for scheme in schemes:
        for core in cores:
            files = files_of(network, core, scheme, rounding=rounding)
            told = run_main(files | {"main.c": HARNESS}, given)
            if told != wanted:
                what = told if isinstance(told, str) else "other bytes"
                yield f"{name}, seed {seed}, {scheme}, kernels of {core}: {what}"


def run_main(files: Mapping[str, str], given: bytes) -> bytes | str:
    """Return what the program writes, or what is wrong with it."""
    command = compiler()
    assert command is not None
    with tempfile.TemporaryDirectory() as folder:
        for path, text in files.items():
            Path(folder, path).write_text(text)
        built = subprocess.run(
            [*command, "-std=c99", "-Wall", "-Wextra", "-Werror", *SANITIZED,
             *(name for name in files if name.endswith(".c")), "-o", "main"],
            cwd=folder, capture_output=True, text=True, check=False,
        )  # fmt: skip
        if built.returncode:
            return built.stderr[:1000]
        run = subprocess.run([Path(folder) / "main"], input=given, capture_output=True, check=False)
        if run.returncode:
            return f"status {run.returncode}: {run.stderr.decode()[:1000]}"
        return run.stdout


def main() -> int:
    """Compare all networks; the exit status is 1 if one differs."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--inputs", type=int, default=12)
    parser.add_argument("--seeds", type=int, default=2)
    parser.add_argument("names", nargs="*", default=[*NETWORKS])
    args = parser.parse_args()
    if compiler() is None:
        print("error: there is neither a C compiler nor ziglang")
        return 1
    failed = 0
    for name in args.names:
        wrong = [w for s in range(args.seeds) for w in judge(name, ON_THE_DESK, args.inputs, s)]
        print(f"{name}: {'differs' if wrong else 'equal'}", *wrong, sep="\n  ", flush=True)
        failed += bool(wrong)
    print(f"{len(args.names) - failed} of {len(args.names)} networks equal their simulation: "
          f"{args.seeds} x {args.inputs} inputs, {len(SINGLE)} plans, kernels of "
          f"{', '.join(ON_THE_DESK)}")  # fmt: skip
    return int(failed > 0)


if __name__ == "__main__":
    sys.exit(main())

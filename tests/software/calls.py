"""Programs that call Arm's functions against the simulation: `make measure WHAT=cmsis-operators`.

Every operator and key, and random networks, on many inputs and at the ends of their range; the C
runs on this computer with sanitizers, and on an emulated core on the sample.
"""

from __future__ import annotations

import argparse
import sys
import tempfile
from collections.abc import Iterator, Mapping
from pathlib import Path

import numpy as np

from ai8xtools.emulator.cpu.architecture import ARCHITECTURES
from ai8xtools.emulator.plain import compile_plain, run_plain
from ai8xtools.software.cmsis.build import build_calls
from ai8xtools.software.cores import CORES
from ai8xtools.software.profile import UNLIMITED, Profile
from ai8xtools.synthesis.network import Network
from tests.software.against_simulation import expected_bytes, inputs_of, run_main
from tests.software.compiled import compiler
from tests.software.networks import random_network
from tests.software.operators import NETWORKS, network_of

_SECONDS = 600.0
_HARNESS = """#include <stdio.h>
#include "cnn.h"

static q7_t input[CNN_IN_SIZE];

int main(void)
{
    while (fread(input, 1, CNN_IN_SIZE, stdin) == CNN_IN_SIZE) {
        %s *output;
        int size;

        if (cnn_run(input, CNN_IN_SIZE - 1, &output, &size) != CNN_WRONG_SIZE ||
            cnn_init() != CNN_OK || cnn_run(input, CNN_IN_SIZE, &output, &size) != CNN_OK) {
            return 1;
        }
        if (size * (int)sizeof *output != CNN_OUT_BYTES) {
            return 2;
        }
        fwrite(output, 1, CNN_OUT_BYTES, stdout);
    }
    return 0;
}
"""


def profile_of(core: str) -> Profile:
    """Return a profile of a core with enough memory for everything."""
    return Profile(core, CORES[core], UNLIMITED, UNLIMITED)


def files_of_calls(
    network: Network,
    core: str = "cortex-m4",
    *,
    rounding: bool = False,
    library: str | None = None,
    interleaving: bool = False,
) -> dict[str, str]:
    """Return the project of a network with calls."""
    made = build_calls(
        network, profile_of(core), average_rounding=rounding, library=library,
        interleaving=interleaving,
    )  # fmt: skip
    return made.files


def differs(
    network: Network, count: int, seed: int = 0, more: Mapping[str, str] | None = None
) -> str | None:
    """Return how the C of a network differs from its simulation on `count` inputs.

    `more` are files that take the place of those of the project.
    """
    samples = inputs_of(network, count, seed)
    rounding = seed % 2 == 1
    files = files_of_calls(network, rounding=rounding, interleaving=rounding)
    kind = "q31_t" if "q31_t **output" in files["cnn.h"] else "q7_t"
    given = b"".join(s.transpose(1, 2, 0).astype(np.int8).tobytes() for s in samples)
    told = run_main({**files, "main.c": _HARNESS % kind, **(more or {})}, given)
    if told == expected_bytes(network, samples, rounding):
        return None
    return told if isinstance(told, str) else "other bytes"


def passes_on(network: Network, core: str) -> bool:
    """Whether the known-answer test of a network passes on an emulated core."""
    with tempfile.TemporaryDirectory() as folder:
        for name, text in files_of_calls(network, core).items():
            Path(folder, name).write_text(text)
        program = compile_plain(Path(folder), ARCHITECTURES[core])
        return bool(run_plain(program, time_limit=_SECONDS).passed)


def _networks(names: list[str], seeds: int, graphs: int) -> Iterator[tuple[str, Network, int]]:
    """Yield networks with their names and seeds."""
    for name in names:
        for seed in range(seeds):
            yield f"{name}, seed {seed}", network_of(NETWORKS[name], seed), seed
    for seed in range(graphs):
        yield f"random network {seed}", random_network(seed), seed


def main() -> int:
    """Compare all networks; the exit status is 1 if one differs."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--inputs", type=int, default=8)
    parser.add_argument("--seeds", type=int, default=2)
    parser.add_argument("--random", type=int, default=100, metavar="N")
    parser.add_argument("--cores", nargs="*", default=["cortex-m4"], choices=CORES)
    parser.add_argument("names", nargs="*", default=[*NETWORKS])
    args = parser.parse_args()
    if compiler() is None:
        print("error: there is neither a C compiler nor ziglang")
        return 1
    tried = failed = 0
    for name, network, seed in _networks(args.names, args.seeds, args.random):
        wrong = differs(network, args.inputs, seed)
        if wrong is None and not all(passes_on(network, core) for core in args.cores):
            wrong = f"differs on {', '.join(args.cores)}"
        tried, failed = tried + 1, failed + (wrong is not None)
        if wrong is not None:
            print(f"{name}: {wrong}", flush=True)
    print(f"{tried - failed} of {tried} networks with calls equal their simulation on "
          f"{args.inputs} inputs, and on {', '.join(args.cores) or 'no core'}")  # fmt: skip
    return int(failed > 0)


if __name__ == "__main__":
    sys.exit(main())

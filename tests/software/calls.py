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
from numpy.typing import NDArray

from ai8xtools.emulator.cpu.architecture import ARCHITECTURES
from ai8xtools.emulator.plain import compile_plain, run_plain
from ai8xtools.frontends.graph.nodes import Graph
from ai8xtools.software import build
from ai8xtools.software.cmsis.build import build_calls, planned
from ai8xtools.software.cores import CORES
from ai8xtools.software.emit.project import Sample
from ai8xtools.software.operators.lower import Lowering
from ai8xtools.software.operators.storage import laid
from ai8xtools.software.profile import UNLIMITED, Profile
from ai8xtools.synthesis.network import Network
from tests.software.against_simulation import expected_bytes, inputs_of, run_main
from tests.software.compiled import compiler
from tests.software.graphs import all_of_them, results_of, samples_of
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
    given = b"".join(s.transpose(1, 2, 0).astype(np.int8).tobytes() for s in samples)
    return _differs({**files, **(more or {})}, given, expected_bytes(network, samples, rounding))


def operators_differ(graph: Graph, scheme: str = "resident") -> str | None:
    """Return how the C of a graph of operators differs from what its operators compute."""
    lowering = Lowering(graph, "net")
    assert lowering.refusals == []
    steps, samples = lowering.graph(), samples_of(graph)
    results = [results_of(graph, sample) for sample in samples]
    known = Sample(*_apart([laid(samples[0])]), tuple(_apart(results[0])))
    built = build.emitted(planned(steps, profile_of("cortex-m4"), scheme), known, "net", "")
    widths = [f"<i{steps.tensors[one].bytes_per_value}" for one in steps.outputs]
    wanted = b"".join(
        values.astype(width).tobytes()
        for result in results
        for values, width in zip(result, widths, strict=True)
    )
    given = b"".join(laid(one).astype(np.int8).tobytes() for one in samples)
    return _differs(built.files, given, wanted)


def _apart(maps: list[NDArray[np.int64]]) -> list[NDArray[np.int64]]:
    """Return maps [row, column, channel] as [channel, row, column]."""
    return [values.transpose(2, 0, 1) for values in maps]


def _differs(files: Mapping[str, str], given: bytes, wanted: bytes) -> str | None:
    """Return how what a project makes of inputs differs from the outputs."""
    kind = "q31_t" if "q31_t **output" in files["cnn.h"] else "q7_t"
    told = run_main({**files, "main.c": _HARNESS % kind}, given)
    if told == wanted:
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
    for scheme in ("resident", "rows"):
        wrong = operators_differ(all_of_them(), scheme)
        failed += wrong is not None
        print(f"graphs of operators, {scheme}: {wrong or 'equal their definition'}", flush=True)
    return int(failed > 0)


if __name__ == "__main__":
    sys.exit(main())

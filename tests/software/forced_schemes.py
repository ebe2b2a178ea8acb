"""Each network of networks/ with each scheme forced: `make measure WHAT=software-schemes`.

Weights are random. The C is compiled for this computer and run with copies that happen when they
are waited for and leave poison until then; all bytes of the outputs are those of the simulation. A
cell tells in how many steps the scheme was possible, and the bytes of L1.
"""

from __future__ import annotations

import argparse
import sys
import tempfile
from collections.abc import Iterator
from pathlib import Path

import numpy as np

from ai8xtools.diagnostics import DiagnosticError
from ai8xtools.software.build import SCHEMES
from ai8xtools.software.cores import CORES
from ai8xtools.software.emit.project import Sample, emit
from ai8xtools.software.fuse import fuse
from ai8xtools.software.graph import StepGraph
from ai8xtools.software.lower import lower
from ai8xtools.software.plan.plan import Plan
from ai8xtools.software.plan.planner import Planner, Wish
from ai8xtools.software.plan.task import Level, Task
from ai8xtools.software.profile import Profile
from ai8xtools.synthesis.network import Network
from ai8xtools.synthesis.options import ResolveOptions
from ai8xtools.synthesis.simulate import simulate
from ai8xtools.synthesis.understand import understand
from tests.networks.deployed import DEPLOYED, Deployed, with_random_weights
from tests.software.compiled import passed, run_project
from tests.software.level_graphs import DELAYED

_KB = 1 << 10
_SIZES = (16 * _KB, 32 * _KB, 64 * _KB, 128 * _KB, 256 * _KB, 1024 * _KB)
"""Bytes of L1, the first with which a network fits."""
FORCED = ("first", "resident", "rows", "pixels", "planes", "chain", "auto")


def network_of(deployed: Deployed, folder: Path) -> Network:
    """Return a network of networks/ with random weights and a random sample."""
    checkpoint, _ = with_random_weights(deployed, folder)
    sample = folder / "sample.npy"
    np.save(sample, deployed.integers())
    options = ResolveOptions(str(sample), checkpoint_file=checkpoint)
    network, _, _ = understand(deployed.path, None, options)
    return network


def forced_plan(graph: StepGraph, scheme: str, *, large: bool) -> Plan:
    """Return the plan of a graph with a scheme in the smallest L1 with which it fits.

    With `large` layers have all of it that they need.
    """
    for l1 in (16 * _KB * _KB,) if large else _SIZES:
        profile = Profile("forced", CORES["cortex-m4"], 1 << 30, l1, 0, 1 << 30, l3_writable=True,
                          dma=3)  # fmt: skip
        wish = Wish(schemes=SCHEMES[scheme], first=scheme == "first", in_place=False)
        try:
            return Planner(graph, profile, l1, wish).plan()
        except DiagnosticError:
            continue
    raise AssertionError(f"{scheme} does not fit")


def forced_files(network: Network, scheme: str) -> dict[str, str]:
    """Return the project of a network with a scheme, with the outputs of the simulation."""
    made = simulate(network, average_rounding=False).outputs
    sample = Sample(network.sample, tuple(made[layer.index] for layer in network.outputs()))
    plan = forced_plan(fuse(lower(network)), scheme, large=scheme in ("resident", "chain"))
    return emit(plan, sample, scheme, "")


def results(
    network: Network, schemes: tuple[str, ...], folder: Path, refused: list[tuple[str, Task]]
) -> Iterator[tuple[str, bool]]:
    """Yield what a table says of each scheme, and whether all bytes were right.

    Steps for which a scheme was not possible are added to `refused`.
    """
    made = simulate(network, average_rounding=False).outputs
    outputs = tuple(made[layer.index] for layer in network.outputs())
    graph = fuse(lower(network))
    for scheme in schemes:
        plan = forced_plan(graph, scheme, large=scheme in ("resident", "chain"))
        files = emit(plan, Sample(network.sample, outputs), scheme, "")
        files |= {"nn_copies.c": DELAYED.read_text()}
        result = run_project(files, folder / scheme, ("-O2",))
        steps = sum(task.scheme in SCHEMES[scheme] for task in plan.layers)
        refused += [(scheme, task) for task in plan.tasks if task.reason.startswith("not ")]
        text = f"{steps} of {len(plan.layers)}" if SCHEMES[scheme] else f"{len(plan.layers)}"
        used = -(-plan.used[Level.L1] // _KB)
        good = passed(result)
        yield f"{text}, {used} KB{'' if good else ' WRONG ' + result.stderr[:200]}", good


def main() -> int:
    """Print the table; the exit status is 1 if a byte differs."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("networks", nargs="*", help="files without .yaml (default: all)")
    parser.add_argument("--schemes", nargs="+", choices=FORCED, default=FORCED)
    args = parser.parse_args()
    good, lines = True, list[str]()
    print(f"| network | {' | '.join(args.schemes)} |")
    print("|---" * (1 + len(args.schemes)) + "|")
    for deployed in DEPLOYED:
        if args.networks and deployed.file not in args.networks:
            continue
        with tempfile.TemporaryDirectory() as name:
            network = network_of(deployed, Path(name))
            refused: list[tuple[str, Task]] = []
            cells = [*results(network, tuple(args.schemes), Path(name), refused)]
        lines += _reasons(deployed.file, refused)
        good &= all(right for _, right in cells)
        print(f"| {deployed.file} | {' | '.join(text for text, _ in cells)} |", flush=True)
    print("", "| network | scheme | reason | steps |", "|---|---|---|---|", *lines, sep="\n")
    return int(not good)


def _reasons(file: str, refused: list[tuple[str, Task]]) -> Iterator[str]:
    """Yield lines of a table that tell why schemes were not possible."""
    steps: dict[tuple[str, str], list[str]] = {}
    for scheme, task in refused:
        why = task.reason.split(";")[0].partition(": ")[2]
        steps.setdefault((scheme, why), []).append(task.step.name)
    for (scheme, why), names in steps.items():
        yield f"| {file} | {scheme} | {why} | {', '.join(names)} |"


if __name__ == "__main__":
    sys.exit(main())

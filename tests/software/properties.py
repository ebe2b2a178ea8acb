"""Random networks through planner, executor and C: `make measure WHAT=software-properties`.

Every plan is validated, and judged by an independent check; the executor gives what the simulation
gives; of some networks the C does so too, with sanitizers.
"""

from __future__ import annotations

import argparse
import sys
import tempfile
from collections.abc import Iterator
from pathlib import Path

import numpy as np

from ai8xtools.diagnostics.errors import ToolError
from ai8xtools.software.cores import CORES
from ai8xtools.software.emit.project import Sample, emit
from ai8xtools.software.fuse import fuse
from ai8xtools.software.graph import sources_of
from ai8xtools.software.lower import lower
from ai8xtools.software.memory import Block
from ai8xtools.software.plan.plan import Plan
from ai8xtools.software.plan.planner import plan
from ai8xtools.software.plan.schemes import SINGLE
from ai8xtools.synthesis.simulate import simulate
from tests.software.compiled import SANITIZED, passed, run_project
from tests.software.networks import random_network
from tests.software.oracle.whole import Executor


def wrong_places(made: Plan) -> Iterator[str]:
    """Yield what is wrong with the places of a plan, found byte by byte and row by row.

    Blocks that live in the same segment may share bytes only where the data of a single step are
    consumed: then every row of the result ends before the first row that is still needed.
    """
    for segment in range(len(made.tasks)):
        owner = np.full(made.arena_bytes, -1)
        for number, block in enumerate(made.blocks):
            if not block.first <= segment <= block.last:
                continue
            if block.end > made.arena_bytes:
                yield f"{block.name} leaves the arena"
            mine = owner[block.offset : block.end]
            for other in np.unique(mine[mine >= 0]):
                if not _consumes(made, segment, block, made.blocks[other]):
                    yield f"segment {segment}: {block.name} overlaps {made.blocks[other].name}"
            mine[:] = number


def _consumes(made: Plan, segment: int, one: Block, other: Block) -> bool:
    """Whether one of two blocks is made from the other by the only step of a segment."""
    steps = made.steps_of(made.tasks[segment])
    if len(steps) != 1:
        return False
    pairs = {(steps[0].target, source) for source in sources_of(steps[0])}
    return (one.tensor, other.tensor) in pairs or (other.tensor, one.tensor) in pairs


def judge(seed: int, folder: Path | None) -> list[str]:
    """Return what is wrong with the plans of a random network; compile it if there is a folder."""
    network = random_network(seed)
    rounding = seed % 3 == 0
    found = simulate(network, average_rounding=rounding).outputs
    outputs = tuple(found[layer.index] for layer in network.outputs())
    graph = fuse(lower(network, average_rounding=rounding))
    core = list(CORES.values())[seed % len(CORES)]
    wrong = []
    for scheme in SINGLE:
        made = plan(graph, core, scheme)
        made.validate()
        wrong += wrong_places(made)
        for got, expected in zip(Executor(made).run(network.sample), outputs, strict=True):
            if not np.array_equal(got, expected):
                wrong.append(f"{scheme}: the executor differs from the simulation")
        if folder is not None:
            files = emit(made, Sample(network.sample, outputs), "random", "")
            result = run_project(files, folder / f"{seed}-{scheme}", SANITIZED)
            if not passed(result):
                wrong.append(f"{scheme}: C: {_reason(result.stdout + result.stderr)}")
    return wrong


def _reason(told: str) -> str:
    """Return the line that says what went wrong."""
    marks = ("ERROR: AddressSanitizer", "runtime error", "error:", "differs")
    return next((x for x in told.splitlines() if any(m in x for m in marks)), told[-200:])


def main() -> int:
    """Try many networks; the exit status is 1 if one fails."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--count", type=int, default=2000)
    parser.add_argument("--compiled", type=int, default=200)
    parser.add_argument("--seed", type=int, default=0)
    args = parser.parse_args()
    failed = compiled = 0
    with tempfile.TemporaryDirectory() as folder:
        for number in range(args.count):
            compile_it = number * args.compiled // args.count != (
                (number + 1) * args.compiled // args.count
            )
            compiled += compile_it
            try:
                wrong = judge(args.seed + number, Path(folder) if compile_it else None)
            except ToolError as exc:
                wrong = [str(exc)]
            failed += bool(wrong)
            for line in wrong:
                print(f"seed {args.seed + number}: {line}")
    print(f"{args.count} random networks, {compiled} of them compiled with sanitizers: "
          f"{failed} failed")  # fmt: skip
    return int(failed > 0)


if __name__ == "__main__":
    sys.exit(main())

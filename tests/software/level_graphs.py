"""Random networks in random memories: `make measure WHAT=software-levels`.

Every plan is executed twice in Python: with copies that happen at once, and with copies that happen
when they are waited for and leave poison until then. Both give what the simulation gives, copy as
many bytes and use as much of each memory as the plan says. The C of some runs with sanitizers, its
copies delayed too.
"""

from __future__ import annotations

import argparse
import random
import sys
import tempfile
from collections import Counter
from collections.abc import Iterator
from pathlib import Path

import numpy as np

from ai8xtools.diagnostics import DiagnosticError
from ai8xtools.software.cores import CORES
from ai8xtools.software.emit.project import Sample, emit
from ai8xtools.software.fuse import fuse
from ai8xtools.software.graph import StepGraph
from ai8xtools.software.lower import lower
from ai8xtools.software.memory import aligned
from ai8xtools.software.plan.plan import Plan
from ai8xtools.software.plan.planner import Planner, Wish
from ai8xtools.software.plan.schemes import Scheme
from ai8xtools.software.plan.task import Level, Traffic
from ai8xtools.software.profile import Profile
from ai8xtools.synthesis.network import Network, Tensor
from ai8xtools.synthesis.simulate import simulate
from tests.software.compiled import SANITIZED, passed, run_project
from tests.software.networks import random_network
from tests.software.oracle.levels import LevelExecutor

_L1 = (64, 128, 200, 256, 300, 400, 512, 700, 1024, 2048, 8192)
_ROUNDS = 3
DELAYED = Path(__file__).parent / "copies_delayed.c"


def random_plan(graph: StepGraph, seed: int) -> Plan | None:
    """Return a plan for random memories with random wishes; None if it does not fit them."""
    choice = random.Random(seed)
    core = list(CORES.values())[seed % len(CORES)]
    l1 = choice.choice(_L1)
    profile = Profile(
        "random", core, 1 << 20, l1, choice.choice((0, 2048, 65536)), 1 << 20,
        l3_writable=choice.random() < 0.9, dma=choice.choice((0, 1)),
    )  # fmt: skip
    ways = frozenset(choice.sample(list(Scheme), choice.randint(0, 3)))
    wish = Wish(schemes=ways, first=choice.random() < 0.3, in_place=choice.random() < 0.4)
    try:
        return Planner(graph, profile, l1, wish).plan()
    except DiagnosticError:
        return None


def wrong_run(network: Network, plan: Plan, outputs: tuple[Tensor, ...]) -> Iterator[str]:
    """Yield what is wrong when a plan is executed."""
    copied = sum(plan.graph.tensors[o.tensor].size_bytes for o in plan.outputs if o.copied)
    for delayed in (False, True):
        executor = LevelExecutor(plan, delayed=delayed)
        found = executor.run(network.sample)
        name = "delayed" if delayed else "at once"
        for got, expected in zip(found, outputs, strict=True):
            if not np.array_equal(got, expected):
                yield f"{name}: it differs from the simulation"
        machine = executor.machine
        if machine.traffic != plan.traffic + Traffic(outputs=copied):
            yield f"{name}: {machine.traffic}, planned {plan.traffic}"
        for level in (Level.L1, Level.L2, Level.L3):
            if aligned(machine.used[level]) != plan.used[level]:
                yield f"{name}: {machine.used[level]} bytes of {level}, not {plan.used[level]}"


def wrong_program(
    network: Network, plan: Plan, outputs: tuple[Tensor, ...], folder: Path
) -> Iterator[str]:
    """Yield what is wrong with the C of a plan."""
    files = emit(plan, Sample(network.sample, outputs), "random", "")
    assert "nn_copies.c" in files
    for name, copies in (("at once", files["nn_copies.c"]), ("delayed", DELAYED.read_text())):
        result = run_project(files | {"nn_copies.c": copies}, folder / name, SANITIZED)
        if not passed(result):
            yield f"C, {name}: {(result.stdout + result.stderr)[-400:]}"


def judge(seed: int, folder: Path | None = None) -> tuple[list[str], Counter[str]]:
    """Return what is wrong with plans of a random network, and how often each way was taken.

    The C of one of them is compiled if there is a folder.
    """
    network = random_network(seed)
    rounding = seed % 3 == 0
    made = simulate(network, average_rounding=rounding).outputs
    outputs = tuple(made[layer.index] for layer in network.outputs())
    graph = fuse(lower(network, average_rounding=rounding))
    wrong: list[str] = []
    taken: Counter[str] = Counter()
    for number in range(_ROUNDS):
        plan = random_plan(graph, seed * _ROUNDS + number)
        if plan is None:
            taken["does not fit"] += 1
            continue
        taken.update(_named(plan))
        wrong += [f"round {number}, {line}" for line in wrong_run(network, plan, outputs)]
        if folder is not None and number == seed % _ROUNDS:
            wrong += wrong_program(network, plan, outputs, folder / str(seed))
    return wrong, taken


def _named(plan: Plan) -> Iterator[str]:
    for task in plan.layers:
        if task.scheme is not None:
            weights = getattr(task.cut, "weights", "in_place" if task.in_place else "streamed")
            yield f"{task.scheme}, weights {weights}"


def main() -> int:
    """Try many networks; the exit status is 1 if one fails."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--count", type=int, default=5000)
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--compiled", type=int, default=50, help="every n-th in C (0: none)")
    args = parser.parse_args()
    failed, taken = 0, Counter[str]()
    for seed in range(args.seed, args.seed + args.count):
        with tempfile.TemporaryDirectory() as name:
            compiled = args.compiled and seed % args.compiled == 0
            wrong, found = judge(seed, Path(name) if compiled else None)
        failed += bool(wrong)
        taken += found
        for line in wrong:
            print(f"seed {seed}: {line}", flush=True)
    for name, number in taken.most_common():
        print(f"{number:8,}  {name}")
    print(f"{args.count:,} random networks in {_ROUNDS} memories each: {failed} failed")
    return int(failed > 0)


if __name__ == "__main__":
    sys.exit(main())

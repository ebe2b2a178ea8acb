"""Networks that nearly fill the kernel memory, and how many get places.

`make measure WHAT=arrange-loads` runs it.

An instance is a chain of 10 to 20 layers on MAX78000. The results have 8 to 64 channels and take
random parts of a data memory instance, the largest the share `tight`; a fifth of them, at most
three, are kept to the end. The kernels of a layer take 8 to 200 columns, changed one at a time
until they fill the share `load` of the memory of all processors, within half a percent. Instances
that a sum of the bounds refuses are drawn again and counted: what is left is hard.

What the search does not solve goes to an exact solver with the same freedom: starts at multiples
of 4, columns and offsets anywhere. It is CP-SAT of the package ortools (`pip install ortools`);
without it these count as unknown. With --check-bounds it judges refused ones, too.
"""

from __future__ import annotations

import argparse
import sys
import time
from collections import Counter
from dataclasses import replace
from random import Random
from typing import Any

import numpy as np

from ai8xtools.synthesis.arrange.bounds import witness_of
from ai8xtools.synthesis.arrange.problem import problem_of
from ai8xtools.synthesis.arrange.search import search
from ai8xtools.synthesis.arrange.values import BLOCK, Choice, Problem
from ai8xtools.synthesis.layout import LayerLayout, Layout
from ai8xtools.synthesis.network import Layer, Network, Operator
from device import MAX78000

CASES = (
    (0.85, 0.45),
    (0.87, 0.65),
    (0.89, 0.45),
    (0.91, 0.65),
    (0.93, 0.45),
    (0.95, 0.45),
    (0.97, 0.3),
)
EACH = 8
SOLVER_SECONDS = 60
WIDTHS = range(8, 65, 4)
PROCESSOR_COLUMNS = 64 * MAX78000.kernel_columns


def network_of(channels: list[int], kept: list[bool]) -> Network:
    """Return a chain of 1x1 convolutions; the sizes of its kernels and results are set apart."""
    layers = []
    for i in range(len(channels) - 1):
        weights = np.zeros((channels[i + 1], channels[i], 1, 1), np.int8)
        weights.flat[0] = i + 1  # no two layers share their kernels
        following = i + 1 if i + 2 < len(channels) else None
        layers.append(
            Layer(
                index=i, operator=Operator.CONV2D, in_channels=channels[i],
                out_channels=channels[i + 1], in_dim=(2, 2), pooled_dim=(2, 2), out_dim=(2, 2),
                weight_bits=8, weights=weights, is_output=kept[i], next_layer=following,
            )
        )  # fmt: skip
    order = tuple(range(len(layers)))
    sample = np.zeros((channels[0], 2, 2), np.int64)
    return Network(layers=tuple(layers), order=order, simulated=order, sample=sample)


def problem(random: Random, load: float, tight: float) -> Problem:
    """Return a random instance."""
    while True:
        count = random.randint(10, 20)
        channels = [random.choice(WIDTHS) for _ in range(count + 1)]
        columns = _columns(random, channels, load)
        if columns is not None:
            break
    kept = [random.random() < 0.2 for _ in range(count)]
    kept = [k and sum(kept[:i]) < 3 for i, k in enumerate(kept)]
    kept[-1] = True
    network = network_of(channels, kept)
    layout = Layout(layers={i: LayerLayout() for i in network.order})
    plain = problem_of(network, layout, MAX78000, Choice(), {})
    largest = int(tight * plain.capacity)
    tensors = [replace(t, words=random.randint(largest // 20, largest)) for t in plain.tensors]
    place = random.randrange(count)
    tensors[place] = replace(tensors[place], words=largest)
    cells = [replace(cell, words=tensors[cell.members[0]].words) for cell in plain.cells]
    loads = [replace(x, columns=c) for x, c in zip(plain.loads, columns, strict=True)]
    return replace(plain, tensors=tuple(tensors), cells=tuple(cells), loads=tuple(loads))


def _columns(random: Random, channels: list[int], load: float) -> list[int] | None:
    """Return columns of the layers that fill a share of the memory; None if that takes too long."""
    columns = [random.randrange(8, 201, 4) for _ in channels[1:]]

    def filled() -> float:
        return sum(w * c for w, c in zip(channels, columns, strict=False)) / PROCESSOR_COLUMNS

    for _ in range(1000):
        off = abs(load - filled())
        if off < 0.005:
            return columns
        place = random.randrange(len(columns))
        before, columns[place] = columns[place], random.randrange(8, 201, 4)
        if abs(load - filled()) > off:
            columns[place] = before
    return None


def judged(given: Problem, seconds: float) -> str:
    """Return whether an exact solver finds places: yes, no or unknown."""
    try:
        from ortools.sat.python import cp_model
    except ImportError:
        return "unknown"
    model: Any = cp_model.CpModel()
    begins = []
    for unit in given.units:
        begins.append(model.new_int_var(0, max(unit.starts) // 4, ""))

    def across(tensor: int) -> Any:
        size = -(-given.tensors[tensor].span // 4)
        return model.new_fixed_size_interval_var(begins[given.unit_of[tensor]], size, "")

    wide, high = [], []
    limit = given.chip.kernel_columns // BLOCK
    for load in given.loads:
        first = model.new_int_var(0, limit - load.blocks, "")
        wide.append(across(load.reads[0]))
        high.append(model.new_fixed_size_interval_var(first, load.blocks, ""))
    model.add_no_overlap_2d(wide, high)
    data = []
    for tensor in given.tensors:
        first = model.new_int_var(0, given.capacity - tensor.words, "")
        data.append(model.new_fixed_size_interval_var(first, tensor.words, ""))
    for a, b in given.pairs:
        model.add_no_overlap_2d([across(a), across(b)], [data[a], data[b]])
    solver: Any = cp_model.CpSolver()
    solver.parameters.max_time_in_seconds = seconds
    solver.parameters.num_workers = 2
    status = solver.solve(model)
    if status in (cp_model.OPTIMAL, cp_model.FEASIBLE):
        return "yes"
    return "no" if status == cp_model.INFEASIBLE else "unknown"


def instance(random: Random, load: float, tight: float, total: Counter[str]) -> Problem:
    """Return an instance that no sum refuses; count those that are."""
    while True:
        given = problem(random, load, tight)
        if witness_of(given) is None:
            return given
        total["refused by a sum"] += 1


def outcome(given: Problem, seconds: float) -> tuple[str, float, int]:
    """Return what becomes of an instance, the seconds of the search and its tries."""
    begin = time.process_time()
    found, tries = search(given)
    spent = time.process_time() - begin
    if not found.cost:
        return "solved", spent, tries
    exact = judged(given, seconds)
    return {"no": "infeasible", "yes": "missed"}.get(exact, "unknown"), spent, tries


def wrongly_refused(random: Random, count: int, seconds: float) -> int:
    """Return how many instances a sum refuses although places exist."""
    wrong = 0
    for i in range(count):
        load, tight = CASES[i % len(CASES)]
        given = problem(random, load, tight)
        wrong += witness_of(given) is not None and judged(given, seconds) == "yes"
    return wrong


def main() -> int:
    """Print what becomes of all instances; return 1 if one was wrongly refused."""
    parser = argparse.ArgumentParser(prog="make measure WHAT=arrange-loads", description=__doc__)
    parser.add_argument("--each", type=int, default=EACH, help="instances of each load")
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--seconds", type=float, default=SOLVER_SECONDS, help="of the solver")
    parser.add_argument("--check-bounds", type=int, default=0, metavar="N", help="of N instances")
    args = parser.parse_args()
    random = Random(args.seed)
    total: Counter[str] = Counter()
    slowest = 0.0
    for load, tight in CASES:
        counts: Counter[str] = Counter()
        for _ in range(args.each):
            given = instance(random, load, tight, total)
            what, spent, tries = outcome(given, args.seconds)
            counts[what] += 1
            slowest = max(slowest, spent)
            if what != "solved":
                counts[f"tries of {what}"] += tries
        total += counts
        print(f"load {load:.2f}, tight {tight:.2f}: {dict(counts)}", flush=True)
    feasible = total["solved"] + total["missed"]
    print(
        f"{total['solved']} of {feasible} feasible instances solved, {total['infeasible']} are "
        f"infeasible, {total['unknown']} unknown; longest search {slowest:.2f} s of CPU time; "
        f"{total['refused by a sum']} refused by a sum and drawn again"
    )
    wrong = wrongly_refused(random, args.check_bounds, args.seconds) if args.check_bounds else 0
    if args.check_bounds:
        print(f"{wrong} of {args.check_bounds} wrongly refused by a sum")
    return int(wrong > 0)


if __name__ == "__main__":
    sys.exit(main())

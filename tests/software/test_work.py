"""Amounts of work that the cost model counts: those of the loops in C, one by one."""

from __future__ import annotations

from collections import defaultdict
from itertools import product

import pytest

from ai8xtools.software.cores import CORES
from ai8xtools.software.fuse import fuse
from ai8xtools.software.graph import Combine, Convolution, Copy, Pool, PoolKind, Step
from ai8xtools.software.kernels import Kernel, choose
from ai8xtools.software.lower import lower
from ai8xtools.software.plan.layers import windows_at_once
from ai8xtools.software.plan.prediction import START, total_work, work_of
from tests.software.networks import random_network


def _convolution_work(step: Convolution, kernel: Kernel) -> dict[str, float]:
    """Count call by call: a call computes pixels of a row, of some windows if they are pooled."""
    found: dict[str, float] = defaultdict(float)
    packed = kernel.pack(step)
    weights = packed.values.nbytes
    runs = packed.runs or weights / (packed.flush or 1)
    between = step.spread[0] * step.spread[1]
    if step.transposed:
        weights, runs = weights // between, runs / between
    name = kernel.function + ", transposed" * step.transposed
    name += ", one channel" if step.channels == 1 else ", odd channels" * (step.channels % 4 > 0)
    pool, calls = step.pool, []
    if pool is None:
        calls = [step.out_size[1] for _ in range(step.out_size[0])]
    else:
        some, kind = windows_at_once(step, kernel), "max" if pool.kind is PoolKind.MAX else "mean"
        for _ in product(range(pool.out_size[0]), range(pool.window[0])):
            for first in range(0, pool.out_size[1], some):
                windows = min(some, pool.out_size[1] - first)
                calls.append(windows * pool.window[1])
                found[f"keep {kind} values"] += calls[-1] * step.filters
                found[f"keep {kind} results"] += windows * step.filters
                found[f"keep {kind} calls"] += windows
    for pixels in calls:
        found[f"{name} calls"] += 1
        found[f"{name} pixels"] += pixels
        found[f"{name} values"] += pixels * step.filters
        found[f"{name} tail"] += pixels % kernel.pixels * weights
        found[f"{name} weights"] += pixels * weights
        found[f"{name} runs"] += pixels * runs
        for _ in product(*map(range, step.kernel)):
            found[f"{name} taps"] += pixels
            found[f"{name} inputs"] += pixels * step.channels
    return found


def _plain_work(step: Step) -> dict[str, float]:
    """Count value by value."""
    found: dict[str, float] = defaultdict(float)
    match step:
        case Pool():
            kind = "pool max" if step.kind is PoolKind.MAX else "pool mean"
            for _ in range(step.out_size[0]):
                found[f"{kind} rows"] += 1
                for _ in range(step.out_size[1]):
                    found[f"{kind} results"] += step.channels
                    for _ in product(*map(range, step.window)):
                        found[f"{kind} taps"] += 1
                        found[f"{kind} values"] += step.channels
        case Combine():
            for _ in range(step.size[0]):
                found["join rows"] += 1
                for _ in product(range(step.size[1]), range(step.channels)):
                    found["join results"] += 1
                    found["join operands"] += len(step.sources)
        case Copy():
            for piece in step.pieces:
                for _ in range(piece.count):
                    found["copied runs"] += 1
                    found["copied bytes"] += piece.length
        case _:
            found["copied runs"] += 1
    return found


def test_work_of_steps_is_counted_as_loops_count_it() -> None:
    kinds: set[str] = set()
    for seed in range(40, 90):
        graph = fuse(lower(random_network(seed)))
        for step, core in product(graph.steps, ("cortex-m4", "cortex-m0plus")):
            if isinstance(step, Convolution):
                kernel = choose(step, CORES[core])
                expected = _convolution_work(step, kernel)
                found = work_of(step, {step.target: kernel})
            else:
                expected, found = _plain_work(step), work_of(step, {})
            assert found == pytest.approx(dict(expected))
            kinds.update(name.rpartition(" ")[0] for name in found)
    assert {"pool max", "pool mean", "join", "copied", "keep max", "keep mean"} <= kinds
    assert any("transposed" in kind for kind in kinds)


def test_an_inference_has_a_start_and_the_work_of_all_steps() -> None:
    graph = fuse(lower(random_network(41)))
    kernels = {
        step.target: choose(step, CORES["cortex-m4"])
        for step in graph.steps
        if isinstance(step, Convolution)
    }
    parts = [work_of(step, kernels) for step in graph.steps]
    names = {name for part in parts for name in part}
    expected = {name: sum(part.get(name, 0) for part in parts) for name in names} | {START: 1}
    assert total_work(graph.steps, kernels) == pytest.approx(expected)
    assert sum(len(part) for part in parts) > len(names)

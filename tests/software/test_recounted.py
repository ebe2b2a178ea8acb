"""Rows that a step counts anew, one as several or several as one, go through rings all the same."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest

from ai8xtools.software.cores import CORES
from ai8xtools.software.emit.project import Sample, emit
from ai8xtools.software.fuse import fuse
from ai8xtools.software.graph import StepGraph
from ai8xtools.software.lower import lower
from ai8xtools.software.plan.plan import Plan
from ai8xtools.software.plan.planner import Planner, Wish, plan
from ai8xtools.software.plan.schemes import Scheme
from ai8xtools.software.profile import ANY
from ai8xtools.synthesis.network import Combination, Layer, Network, Operator, Pooling
from ai8xtools.synthesis.simulate import simulate
from tests.software.compiled import SANITIZED, compiler, passed, run_project
from tests.software.oracle.whole import Executor

Size = tuple[int, int]
Shape = tuple[int, Size, int]
"""Filters, rows and columns that a layer reads, and rows and columns of its kernel."""


def _network(channels: int, shapes: list[Shape], pooled: int = -1) -> Network:
    """Return convolutions that keep the size of what they read; number `pooled` pools first."""
    random = np.random.default_rng(7)
    sample = random.integers(-128, 128, (channels, *shapes[0][1])).astype(np.int64)
    layers = []
    for index, (filters, read, width) in enumerate(shapes):
        flat, pooling, made = read[1] == 1, Pooling(), read
        if index == pooled:
            window = (2, 1 if flat else 2)
            pooling, made = Pooling(window, window), (read[0] // 2, read[1] // window[1])
        kernel = (width, 1 if flat else width)
        shape = (filters, channels, *kernel)
        signs = random.choice((-1, 1), shape)
        weights = (signs * random.integers(60, 128, shape) // kernel[0]).astype(np.int8)
        layers.append(
            Layer(
                index=index, operator=Operator.CONV1D if flat else Operator.CONV2D,
                in_channels=channels, out_channels=filters, in_dim=read, pooling=pooling,
                pooled_dim=made, kernel=kernel, pad=(width // 2, 0 if flat else width // 2),
                out_dim=made, weight_bits=8, weights=weights, shift=0,
            )
        )  # fmt: skip
        channels = filters
    order = tuple(range(len(layers)))
    return Network(layers=tuple(layers), order=order, simulated=order, sample=sample)


def rows_plan(graph: StepGraph, *, recounted: bool = True) -> Plan:
    """Return the plan of rows that are counted anew, or never are."""
    profile = replace(ANY, core=CORES["cortex-m0plus"])
    wish = Wish(units=False, schemes=frozenset({Scheme.ROWS}), recounted=recounted)
    made = Planner(graph, profile, profile.l1, wish).plan()
    made.validate()
    return made


def test_sound_that_becomes_an_image_goes_through_rings() -> None:
    """The sizes are those of kws20's first version, known from following the demand by hand."""
    sound = [(filters, (128, 1), 1) for filters in (100, 100, 50, 16)]
    image = [(filters, (16, 8), 3) for filters in (32, 64, 64, 30, 7)]
    graph = fuse(lower(_network(128, [*sound, *image])))
    made = plan(graph, CORES["cortex-m0plus"], Scheme.ROWS)
    assert made == rows_plan(graph)
    rings = [made.block_of(tensor) for tensor in (graph.input, *(s.target for s in graph.steps))]
    sizes = [block.size for block in rings if block is not None]
    assert sizes == [128, 100, 100, 50, 384, 768, 1536, 1536, 720]
    assert made.data_bytes <= 6346 - 896  # the last map is the output, which is the caller's
    assert made.arena_bytes < 9000


CASES: dict[str, tuple[int, list[Shape], int]] = {
    "a row of three": (3, [(4, (24, 1), 3), (3, (8, 3), 3), (2, (8, 3), 3)], -1),
    "a row of two, pooled": (2, [(3, (24, 1), 1), (4, (12, 2), 3), (2, (6, 1), 3)], 1),
    "an image becomes sound": (2, [(3, (8, 3), 3), (4, (24, 1), 3), (2, (24, 1), 5)], -1),
    "twice": (2, [(3, (32, 1), 3), (4, (8, 4), 3), (3, (16, 2), 3), (2, (4, 8), 1)], -1),
    "sound of windows": (1, [(5, (30, 1), 5), (3, (10, 3), 1), (3, (5, 6), 3)], -1),
    "rows that divide nothing": (2, [(3, (12, 1), 3), (4, (4, 3), 3), (2, (6, 2), 3)], -1),
}


@pytest.mark.parametrize("name", CASES)
def test_rows_counted_anew_give_the_simulation_in_python_and_c(name: str, tmp_path: Path) -> None:
    channels, shapes, pooled = CASES[name]
    network = _network(channels, shapes, pooled)
    outputs = simulate(network, average_rounding=False).outputs
    expected = outputs[len(shapes) - 1]
    made = rows_plan(fuse(lower(network)))
    assert (len(made.tasks) == 1) == (name != "rows that divide nothing")
    (found,) = Executor(made).run(network.sample)
    assert np.array_equal(found, expected) and len(np.unique(expected)) > 10
    if compiler() is not None:
        files = emit(made, Sample(network.sample, (expected,)), "recounted", "")
        result = run_project(files, tmp_path, SANITIZED)
        assert passed(result), (result.stdout + result.stderr)[-500:]


def test_any_rows_counted_anew_give_the_simulation() -> None:
    """Each layer reads the pixels as some rows of some columns; what divides others is in rings."""
    joined = 0
    for seed in range(60):
        random = np.random.default_rng(seed)
        pixels = int(random.choice((24, 36, 48)))
        sizes = [(pixels // n, n) for n in (1, 2, 3, 4, 6) if pixels % n == 0]
        shapes: list[Shape] = [
            (int(random.integers(1, 5)), sizes[random.integers(len(sizes))],
             int(random.choice((1, 3))))
            for _ in range(random.integers(2, 6))
        ]  # fmt: skip
        network = _network(int(random.integers(1, 4)), shapes)
        made = rows_plan(fuse(lower(network)))
        joined += len(made.tasks) == 1
        (found,) = Executor(made).run(network.sample)
        expected = simulate(network, average_rounding=False).outputs[len(shapes) - 1]
        assert np.array_equal(found, expected) and len(np.unique(expected)) > 5, seed
    assert joined > 20


def test_rings_suit_readers_that_count_differently() -> None:
    """A result is read row by row, and three rows at a time; what becomes of both is added."""
    shapes = [(3, (24, 1), 3), (3, (24, 1), 5), (3, (8, 3), 1), (3, (24, 1), 1)]
    network = _network(2, shapes)
    first, series, image, again = network.layers
    added = replace(
        again, index=4, operator=Operator.NONE, weights=None, weight_bits=0, kernel=(1, 1),
        pad=(0, 0), sources=(1, 3), combination=Combination.ADD, operands=2,
    )  # fmt: skip
    order = tuple(range(5))
    layers = (first, series, replace(image, sources=(0,)), again, added)
    network = replace(network, layers=layers, order=order, simulated=order)
    made = rows_plan(fuse(lower(network)))
    assert len(made.tasks) == 1
    (found,) = Executor(made).run(network.sample)
    expected = simulate(network, average_rounding=False).outputs[4]
    assert np.array_equal(found, expected) and len(np.unique(expected)) > 10
    assert made.rings[1] % 3 == 0 and made.rings[1] < 24

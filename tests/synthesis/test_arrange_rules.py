"""Rules of the arrangement, one by one: what is read, what reaches it, what is told of it."""

from __future__ import annotations

from dataclasses import replace
from itertools import combinations, product
from random import Random
from typing import Any

import pytest

from ai8xtools.diagnostics import DiagnosticError
from ai8xtools.synthesis.arrange.arranging import attempted, fits
from ai8xtools.synthesis.arrange.bounds import _names
from ai8xtools.synthesis.arrange.construct import _sizes
from ai8xtools.synthesis.arrange.decode import Try, decode, orders_of_cells
from ai8xtools.synthesis.arrange.defaults import complete
from ai8xtools.synthesis.arrange.given import Given, unfit
from ai8xtools.synthesis.arrange.graph import Reading, reading
from ai8xtools.synthesis.arrange.problem import problem_of
from ai8xtools.synthesis.arrange.reasons import _why_not
from ai8xtools.synthesis.arrange.rewrites import merged
from ai8xtools.synthesis.arrange.streams import obstacle
from ai8xtools.synthesis.arrange.tensors import tensors_of
from ai8xtools.synthesis.arrange.values import Choice
from ai8xtools.synthesis.layout import InputPort, LayerLayout, Layout
from ai8xtools.synthesis.network import Combination, Network, Operator, Pooling
from ai8xtools.synthesis.options import PlaceOptions
from device import MAX78000
from tests.arranging.loads import network_of as chain_of
from tests.synthesis.test_arrange_places import open_layout, problems

FIFO = InputPort.FIFO
PASSES: dict[str, Any] = {"operator": Operator.NONE, "weights": None}


def changed(network: Network, index: int, **keys: Any) -> Network:
    """Return a network with one layer changed."""
    layers = tuple(replace(x, **keys) if x.index == index else x for x in network.layers)
    return replace(network, layers=layers)


def test_only_samples_that_are_not_interleaved_in_memory_need_processors_that_reach_them() -> None:
    network = chain_of([3, 3, 4], [False, True])
    masks = [sum(1 << p for p in ps) for ps in combinations((0, 1, 2, 4, 8, 16, 32), 3)]
    for planar, port in product((False, True), (InputPort.MEMORY, FIFO)):
        choice = Choice(planar=planar, port=port)
        sample, result, _ = tensors_of(network, choice, {0: 8})
        for mask in masks:
            given = Given(0, network.first, "processors", mask, hex(mask))
            reached = [sample.pattern << start for start in sample.starts]
            free = choice == Choice() or mask in reached
            assert (unfit(given, sample, choice) is None) == free
            assert unfit(given, result, choice) is None
            for other in (mask | 1 << 63, mask & mask - 1):
                assert unfit(replace(given, value=other), result, choice) is not None


def test_units_need_the_part_of_kernels_and_data_that_their_instances_hold() -> None:
    tied = 0
    for problem in problems(Random(21), 30):
        kernels, data = 64 * problem.chip.kernel_columns, 16 * problem.capacity
        for unit, size in zip(problem.units, _sizes(problem), strict=True):
            columns = words = 0
            for number in unit.members:
                tensor = problem.tensors[number]
                words += tensor.words * len({p // 4 for p in range(tensor.width)})
            for load in problem.loads:
                widths = [problem.tensors[t].width for t in load.reads if t in unit.members]
                columns += load.columns * max([0, *widths])
            assert size == pytest.approx(columns / kernels + words / data)
            tied += len(unit.members) > 1
    assert tied > 10


def test_what_is_left_open_follows_the_layer_executed_before_or_the_number_before() -> None:
    network = chain_of([4] * 5, [True] * 4)
    places = {i: LayerLayout(processors=15, out_offset=16 * (i + 1)) for i in range(4)}
    for order in ((0, 1, 2, 3), (2, 3), (0, 2), (1, 3), (3, 1, 0, 2)):
        done = complete(network.layers, order, Layout(layers=places)).layers
        for index in range(4):
            before = order[order.index(index) - 1] if index in order else index - 1
            begins = order[0] == index or before < 0
            assert done[index].in_offset == (0 if begins else 16 * (before + 1))


def test_parts_that_are_joined_have_as_many_pixels_and_all_channels_of_the_layer() -> None:
    plain = chain_of([4, 8, 8, 16, 4], [False, False, False, True])
    plain = changed(plain, 2, sources=(0, 1), in_channels=16)
    assert reading(plain, plain.layers[2]) is Reading.SIDE_BY_SIDE
    for network in (
        changed(plain, 1, out_dim=(2, 1)),
        changed(plain, 0, out_dim=(1, 2)),
        changed(plain, 2, in_channels=12),
        changed(plain, 2, in_channels=20),
    ):
        with pytest.raises(DiagnosticError):
            reading(network, network.layers[2])


def test_a_network_that_is_refused_does_not_fit_and_others_do_as_memories_permit() -> None:
    network = chain_of([4, 4, 4], [False, True])
    fixed, options = open_layout(network), PlaceOptions()
    assert fits(network, fixed, MAX78000, options, 20)
    assert not fits(network, fixed, replace(MAX78000, instance_bytes=12), options, 20)
    keys: dict[str, Any] = {**PASSES, "operands": 2, "sources": (0,)}
    sums = changed(network, 1, combination=Combination.ADD, **keys)
    assert not fits(sums, fixed, MAX78000, options, 20)


def test_a_sample_that_cannot_arrive_so_is_a_proof() -> None:
    for channels, proven in ((16, False), (17, True)):
        network = chain_of([channels, 4], [True])
        choice = Choice(planar=True)
        assert (obstacle(network, MAX78000, choice) is not None) == proven
        attempt = attempted(network, open_layout(network), MAX78000, PlaceOptions(), choice)
        assert attempt.proven == proven and (attempt.decoded is None) == proven


def test_poolings_become_one_wherever_layers_stand_that_cannot() -> None:
    """The third of four poolings has a given place: those around it stay, the others go."""
    network = chain_of([4] * 7, [False] * 5 + [True])
    halves: dict[str, Any] = {"pooling": Pooling((2, 2), (1, 1)), **PASSES}
    for index in (1, 2, 3, 4):
        network = changed(network, index, **halves)
    for given in (None, 1, 2, 3, 4):
        fixed = open_layout(network)
        if given is not None:
            fixed = replace(
                fixed, layers={**fixed.layers, given: LayerLayout(output_processors=15)}
            )
        found, layout = merged(network, fixed, MAX78000)
        assert len(found.layers) == (2 if given is None else 3)
        kept = [x for x in layout.layers.values() if x != LayerLayout()]
        assert len(kept) == (given is not None)


def test_a_few_of_many_layers_are_named() -> None:
    network = chain_of([4] * 13, [False] * 11 + [True])
    problem = problem_of(network, open_layout(network), MAX78000, Choice(), {})
    for count in range(1, 13):
        text = _names(problem, tuple(range(count)))
        shown = [i for i in range(12) if f"layer {i}" in text.replace(" and", ",").split(", ")]
        assert shown == [*range(min(count, 8))]
        assert (f"{count - 8} more" in text) == (count > 8)
    starts = tuple(min(unit.starts) for unit in problem.units)
    found = decode(problem, Try(starts, orders_of_cells(problem)[0]))
    text = _why_not(problem, found, replace(found, over=(5, 6, 7, 8, 9)))
    assert [i for i in range(12) if str(network.layers[i]) in text] == [5, 6, 7]

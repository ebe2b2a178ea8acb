"""What is said of places, found or not: compared with what can be counted of them."""

from __future__ import annotations

from dataclasses import replace
from itertools import product
from random import Random

import numpy as np
import pytest

from ai8xtools.synthesis.arrange.arranging import _nearest_miss
from ai8xtools.synthesis.arrange.bounds import _names, witness_of
from ai8xtools.synthesis.arrange.construct import _sizes
from ai8xtools.synthesis.arrange.decode import DecodedPlaces, decode
from ai8xtools.synthesis.arrange.polish import cycles
from ai8xtools.synthesis.arrange.problem import problem_of
from ai8xtools.synthesis.arrange.reasons import _neighbour, _reasons_of_starts, _why_not
from ai8xtools.synthesis.arrange.result import _is_over
from ai8xtools.synthesis.arrange.streams import obstacle
from ai8xtools.synthesis.arrange.values import BLOCK, BiasLoad, Choice, Problem
from ai8xtools.synthesis.layout import InputPort, LayerLayout, Layout
from device import MAX78000, MAX78002, Chip
from device.chip import PROCESSORS
from tests.arranging.loads import network_of
from tests.synthesis.test_arrange_memory import meeting, random_try, small_problem


def decoded(seed: int, count: int) -> list[tuple[Problem, DecodedPlaces]]:
    """Return small problems with the places of any try."""
    random = Random(seed)
    problems = [small_problem(random, MAX78000) for _ in range(count)]
    return [(x, decode(x, random_try(x, random))) for x in problems]


def test_a_reason_is_given_for_each_start_that_is_not_the_lowest() -> None:
    seen = set()
    for problem, found in decoded(1, 80):
        if found.cost:
            continue
        reasons = _reasons_of_starts(problem, found)
        for number, unit in enumerate(problem.units):
            lowest = found.tried.starts[number] == min(unit.starts)
            for member in unit.members:
                assert (member in reasons) == (not lowest)
                if lowest:
                    continue
                starts = list(found.tried.starts)
                starts[number] = min(unit.starts)
                lower = decode(problem, replace(found.tried, starts=tuple(starts)))
                said = reasons[member]
                assert ("kernels" in said) == bool(lower.over)
                if not lower.cost:
                    slower = cycles(problem, lower) > cycles(problem, found)
                    assert ("fit" in said, "steps" in said) == (not slower, slower)
                elif not lower.over:
                    name = problem.name(problem.cells[lower.lost[0]].members[0])
                    assert name in said
                seen.add((bool(lower.cost), bool(lower.over)))
    assert len(seen) == 3


def test_biases_are_the_reason_where_more_of_them_have_no_place() -> None:
    problem, found = next(x for x in decoded(2, 40) if not x[1].cost)
    found = replace(found, bias_bytes=5)
    for count in range(4, 8):
        said = _why_not(problem, found, replace(found, bias_bytes=count, cost=count))
        assert ("biases" in said) == (count > 5)


def test_the_neighbours_below_are_those_that_end_where_a_result_begins() -> None:
    some = 0
    for plain, places in decoded(3, 150):
        tensors = tuple(replace(t, words=1 + t.words % 3) for t in plain.tensors)  # many touch
        sizes = [max(tensors[i].words for i in cell.members) for cell in plain.cells]
        cells = tuple(replace(c, words=n) for c, n in zip(plain.cells, sizes, strict=True))
        problem = replace(plain, tensors=tensors, cells=cells, overlaps={})
        found = decode(problem, places.tried)
        if found.lost:
            continue
        for result, tensor in enumerate(problem.tensors):
            offset = found.offsets[problem.cell_of[result]]
            below = [
                problem.name(other)
                for other, x in enumerate(problem.tensors)
                if other != result
                and meeting(problem, list(found.masks), result, other)
                and found.offsets[problem.cell_of[other]] + x.words == offset
            ]
            said = _neighbour(problem, found, result)
            assert (said is not None) == bool(below), tensor
            named = str(said).removeprefix("behind ").split(" and ") if said else []
            assert len(named) == min(len(below), 3) and set(named) <= set(below)
            some += len(below)
    assert some > 20


def test_the_best_try_names_all_that_had_no_room() -> None:
    several = 0
    for problem, found in decoded(4, 60):
        said, layers = _nearest_miss(problem, found, 17)
        owners = [
            max(problem.tensors[problem.cells[cell].members[0]].owner, 0) for cell in found.lost
        ]
        assert list(layers) == [*found.over, *owners]
        for index in found.over:
            assert str(problem.layer(index)) in said
        assert said.count("columns") == len(found.over)
        for count in (0, 5):
            text, _ = _nearest_miss(problem, replace(found, bias_bytes=count), 17)
            assert (f"{count} bytes of biases" in text) == (count > 0)
            assert text.count("biases") == (count > 0)
        several += len(layers) > 1
    assert several > 5


def test_two_maps_that_share_an_instance_are_too_large_together_or_fit() -> None:
    """Of two maps alone it is known: they meet somewhere, or one can stand beside the other."""
    random, outcomes = Random(5), set()
    for pair in product(range(4, 65, 4), repeat=2):
        first, second = (most - random.choice((0, 3)) for most in pair)  # 3: one lane of the last
        network = network_of([first, second], [True])
        plain = problem_of(network, Layout(layers={0: LayerLayout()}), MAX78000, Choice(), {})
        have = plain.capacity
        one = random.randint(1, have)
        for other in (have - one, have - one + 1):
            words = one, max(other, 1)
            tensors = tuple(replace(t, words=w) for t, w in zip(plain.tensors, words, strict=True))
            cells = tuple(replace(c, words=tensors[c.members[0]].words) for c in plain.cells)
            found = witness_of(replace(plain, tensors=tensors, cells=cells))
            meet = sum(pair) > 64
            assert (found is not None) == (meet and sum(words) > have)
            assert found is None or found.of_data
            outcomes.add((meet, found is None))
    assert len(outcomes) == 3


@pytest.mark.parametrize("chip", [MAX78000, MAX78002])
def test_kernels_and_biases_are_too_many_from_the_first_one_on_that_finds_no_room(
    chip: Chip,
) -> None:
    """Four channels stand in any instance, biases in any group: only the sum counts."""
    network = network_of([4, 4], [True])
    plain = problem_of(network, Layout(layers={0: LayerLayout()}), chip, Choice(), {})
    (load,) = plain.loads
    total = sum(map(chip.kernel_capacity, range(PROCESSORS)))
    each, rest = divmod(total // (4 * BLOCK), 16)
    for more in (-1, 0, 1):
        blocks = [*[each] * 15, each + rest + more]
        loads = tuple(replace(load, columns=4 * b, content=i) for i, b in enumerate(blocks))
        assert (witness_of(replace(plain, loads=loads)) is not None) == (more > 0)
    for more in (-1, 0, 1):
        sizes = [*[chip.bias_bytes] * 3, chip.bias_bytes - 1, 1 + more]
        biases = tuple(BiasLoad(0, n, False, None, None, 1) for n in sizes)
        assert (witness_of(replace(plain, biases=biases)) is not None) == (more > 0)


def test_a_unit_that_fills_both_memories_has_the_size_of_both() -> None:
    network = network_of([64, 64], [True])
    plain = problem_of(network, Layout(layers={0: LayerLayout()}), MAX78000, Choice(), {})
    (load,) = plain.loads
    for columns, words in ((1, 0), (0, 1), (1, 1), (0.25, 0.5)):
        tensors = tuple(replace(t, words=int(words * plain.capacity)) for t in plain.tensors)
        loads = (replace(load, columns=int(columns * MAX78000.kernel_columns)),)
        read, written = _sizes(replace(plain, tensors=tensors, loads=loads))
        assert (read, written) == (columns + words, words)


def test_an_output_is_over_its_input_where_they_share_words() -> None:
    random, seen = Random(6), set()
    for problem, found in decoded(7, 30):
        steps = tuple(random.randint(1, 2) for _ in problem.step)
        largest = max(t.words for t in problem.tensors)
        problem = replace(
            problem,
            step=steps,
            tensors=tuple(replace(t, words=t.words * 8 // largest + 1) for t in problem.tensors),
        )
        for _ in range(20):
            offsets = tuple(random.randint(0, 24) for _ in found.offsets)
            found = replace(found, offsets=offsets)
            for source in range(len(problem.tensors) - 1):
                held = []
                for tensor in (source, source + 1):
                    start = offsets[problem.cell_of[tensor]]
                    words = problem.tensors[tensor].words * steps[tensor]
                    lanes = found.masks[tensor]
                    instances = [i for i in range(16) if lanes >> 4 * i & 15]
                    held.append(set(product(instances, range(start, start + words))))
                over = _is_over(problem, found, source + 1, source)
                assert over is (True if held[0] & held[1] else None)
                seen.add(over)
    assert seen == {True, None}


@pytest.mark.parametrize("chip", [MAX78000, MAX78002], ids=lambda chip: chip.name)
def test_only_the_last_layer_of_a_stream_needs_padding_and_only_on_one_chip(chip: Chip) -> None:
    plain = network_of([3, 8, 8, 8, 8], [False, False, False, True])
    for pads in product((0, 1), repeat=4):
        layers = tuple(
            replace(
                layer, kernel=(3, 3), pad=(pad, pad),
                weights=np.ones((8, layer.in_channels, 3, 3), np.int8),
            )
            for layer, pad in zip(plain.layers, pads, strict=True)
        )  # fmt: skip
        network = replace(plain, layers=layers)
        for count in range(1, 5):
            said = obstacle(network, chip, Choice(port=InputPort.FIFO, streamed=count))
            wrong = chip is MAX78000 and not pads[count - 1]
            assert (said is not None) == wrong
            assert said is None or str(layers[count - 1]) in said


def test_as_many_layers_are_named_as_can_be_read_and_the_others_counted() -> None:
    network = network_of([4] * 13, [False] * 11 + [True])
    layout = Layout(layers=dict.fromkeys(network.order, LayerLayout()))
    problem = problem_of(network, layout, MAX78000, Choice(), {})
    for count in range(1, 13):
        said = _names(problem, tuple(range(count)))
        assert [i for i in range(count) if f"layer {i}" in said.split(", ")] or count > 8
        assert said.count("layer") == min(count, 8)
        assert (f"{count - 8} more" in said) == ("more" in said) == (count > 8)

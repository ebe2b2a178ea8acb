"""Words and heights of places against sets of words and blocks that are counted one by one."""

from __future__ import annotations

from dataclasses import replace
from itertools import product
from random import Random

import pytest

from ai8xtools.diagnostics import DiagnosticError
from ai8xtools.synthesis.arrange.bounds import witness_of
from ai8xtools.synthesis.arrange.construct import LayoutConstructor
from ai8xtools.synthesis.arrange.decode import DecodedPlaces, instance_mask
from ai8xtools.synthesis.arrange.given import given_offsets
from ai8xtools.synthesis.arrange.packing import packer_of
from ai8xtools.synthesis.arrange.result import layout_of
from ai8xtools.synthesis.arrange.tensors import owner_of, skipped_words, widens, words_in_front
from ai8xtools.synthesis.arrange.values import Choice, Problem
from ai8xtools.synthesis.layout import BufferLayout, LayerLayout, Layout
from ai8xtools.synthesis.network import DATA_BUFFER, DataBuffer, Operator
from device.masks import bits
from tests.arranging.loads import network_of as chain_of
from tests.synthesis.test_arrange_places import open_layout, problems, tries
from tests.synthesis.test_arrange_search import rectangles


def scattered(problem: Problem, random: Random) -> Problem:
    """Return a problem whose cells have tensors at any word, with any words in front of them.

    The layers leave out rows, and one of them writes into a rolling buffer.
    """
    buffer, chosen = DataBuffer("b", 4, 9, 3), random.choice(problem.network.order)
    layers = tuple(
        replace(x, in_crop=(random.randrange(3), 0), buffer_insert=2 * (x.index == chosen))
        for x in problem.network.layers
    )
    return replace(
        problem,
        network=replace(problem.network, layers=layers, buffer=buffer),
        slot=tuple(random.randrange(8) for _ in problem.tensors),
        step=tuple(random.randint(1, 3) for _ in problem.tensors),
        tensors=tuple(
            replace(
                t, leading=random.randrange(8), owner=DATA_BUFFER if t.owner == chosen else t.owner
            )
            for t in problem.tensors
        ),
    )


def moved(problem: Problem, found: DecodedPlaces, random: Random) -> DecodedPlaces:
    """Return places with other offsets, some of them right beside each other."""
    offsets = [random.randrange(40) for _ in found.offsets]
    for result, source in problem.overlaps:
        a, b = random.sample([result, source], 2)  # often one begins where the other one ends
        end = offsets[problem.cell_of[a]] + problem.tensors[a].words * problem.step[a]
        offsets[problem.cell_of[b]] = random.choice([end - 1, end, end + 1])
    return replace(found, offsets=tuple(offsets))


def words_of(problem: Problem, found: DecodedPlaces, tensor: int) -> set[tuple[int, int]]:
    """Return instance and word of all that a tensor covers, gaps included."""
    begin = found.offsets[problem.cell_of[tensor]]
    size = problem.tensors[tensor].words * problem.step[tensor]
    held = bits(instance_mask(found.masks[tensor]))
    return {(i, w) for i in held for w in range(begin, begin + size)}


def test_offsets_lead_to_the_first_words_that_are_valid() -> None:
    random, over = Random(21), [0, 0]
    for plain in problems(random, 60):
        (first,) = tries(plain, random, 1)
        problem = scattered(plain, random)
        found = moved(problem, first, random)
        fixed = open_layout(problem.network)
        layers = layout_of(problem, found, fixed).layers

        def valid(tensor: int, problem: Problem = problem, found: DecodedPlaces = found) -> int:
            where = found.offsets[problem.cell_of[tensor]]
            return sum([where, problem.slot[tensor], problem.tensors[tensor].leading])

        for layer, reads in zip(problem.network.executed(), problem.reads, strict=True):
            made, result = layers[layer.index], problem.tensor_of(owner_of(layer))
            skipped = skipped_words(problem.network, layer)
            assert made.in_offset == 4 * sum([min(map(valid, reads)), skipped])
            front = words_in_front(problem.network, layer)
            assert made.out_offset == 4 * sum([valid(result), front])
            if len(reads) == 1 and (result, reads[0]) in problem.overlaps:
                shared = words_of(problem, found, result) & words_of(problem, found, reads[0])
                assert bool(made.in_place) == bool(shared)
                over[bool(shared)] += 1
    assert min(over) > 3, over


def test_given_offsets_are_those_of_whole_cells() -> None:
    random, seen, refused = Random(22), 0, 0
    for plain in problems(random, 40):
        problem = scattered(plain, random)
        number = {t.owner: i for i, t in enumerate(problem.tensors)}
        for layer, reads in zip(problem.network.executed(), problem.reads, strict=True):
            words, more = random.randrange(60), random.choice([0, 0, 0, 1, 2, 3])
            key = random.choice(["in_offset", "out_offset"])
            keys = LayerLayout(**{key: 4 * words + more})
            layout = Layout(layers={**open_layout(problem.network).layers, layer.index: keys})
            tensor = number[owner_of(layer)]
            front = words_in_front(problem.network, layer)
            if key == "in_offset":
                tensor = sorted(reads, key=lambda t: problem.slot[t])[0]
                front = skipped_words(problem.network, layer)
            wanted = words - sum([front, problem.tensors[tensor].leading, problem.slot[tensor]])
            made = given_offsets(
                problem.network, layout, number, problem.reads, problem.slot, problem.tensors
            )
            if more or wanted < 0:
                refused += 1
                with pytest.raises(DiagnosticError):
                    list(made)
                continue
            (given,) = made
            assert (given.tensor, given.key, given.value) == (tensor, key, wanted)
            seen += 1
    assert seen > 30 and refused > 10


def test_a_given_offset_of_the_rolling_buffer_counts_in_words() -> None:
    for problem in problems(Random(25), 5):
        made, open_ends = scattered(problem, Random(26)), open_layout(problem.network)
        number = {t.owner: i for i, t in enumerate(made.tensors)}
        for words in range(40):
            layout = replace(open_ends, buffer_place=BufferLayout(None, 4 * words))
            rest = made.network, layout, number, made.reads, made.slot, made.tensors
            (given,) = given_offsets(*rest)
            assert (given.tensor, given.value) == (number[DATA_BUFFER], words)
        assert not [*given_offsets(made.network, open_ends, *rest[2:])]


def test_kernels_of_all_readers_whose_processors_are_known_count() -> None:
    """Also those behind one that waits; each goes above what is taken and the ones before it."""
    random, waiting = Random(23), 0
    for problem in problems(random, 60):
        if any(load.fixed is not None for load in problem.loads):
            continue
        made = LayoutConstructor(problem)
        blocks = problem.chip.kernel_columns // 4
        taken = [(1 << random.randrange(4)) - 1 << random.randrange(4) for _ in range(16)]
        (found,) = tries(problem, random, 1)
        known = {i for i in range(len(problem.tensors)) if random.random() < 0.7}
        held = {i: instance_mask(found.masks[i]) for i in known}
        for unit in range(len(problem.units)):
            members = set(problem.units[unit].members)
            top, stacked, open_ones = 0.0, 0, False
            for load in problem.loads:
                if not members & set(load.reads):
                    continue
                if not known >= set(load.reads):
                    open_ones = True
                    continue
                waiting += open_ones
                instances = {i for t in load.reads for i in bits(held[t])}
                free = [
                    at for at in range(2 * blocks - load.blocks + 1)
                    if not any(taken[i] >> b & 1
                               for i in instances for b in range(at, at + load.blocks))
                ]  # fmt: skip
                stacked += load.blocks
                top = max(top, (free[0] + stacked) / blocks if free else 4.0)
            assert made._kernel_top(unit, held, taken) == pytest.approx(top)
    assert waiting > 3


def test_what_closes_a_gap_most_evenly_is_packed_first() -> None:
    """Four rectangles in a gap of eight instances between walls of eight and four blocks."""
    problem = rectangles([(2, 2, 0), (2, 1, 1), (1, 2, 2), (1, 3, 3)])
    packer = packer_of(problem, Random(1))
    assert packer is not None
    state = packer._beginning()
    unit = min(block.height for block in packer.blocks)
    for left_wall, right_wall in ((2, 2), (2, 1), (1, 2), (3, 2), (9, 9)):
        state.heights = [left_wall * unit] * 4 + [0] * 8 + [right_wall * unit] * 4
        packer._flush = True
        packer._sizes = {b.load: 1 / (b.width * b.height) for b in packer.blocks}
        found = packer._candidates(state, 0, 4, 12)
        assert {b.load for b, _ in found} == {0, 1, 2, 3}

        def even(block: object, at: int, left: int = left_wall, right: int = right_wall) -> int:
            high, wide = block.height, block.width  # type: ignore[attr-defined]
            closed = [at == 4 and high == left * unit, at + wide == 12 and high == right * unit]
            return sum([wide == 8, *closed])

        ranks = [even(block, at) for block, at in found]
        assert ranks == sorted(ranks, reverse=True)
        assert len(set(ranks)) > 1


def test_tied_data_that_can_begin_nowhere_is_named_by_its_last_layer() -> None:
    for problem in problems(Random(24), 20):
        for number, unit in enumerate(problem.units):
            nowhere = replace(unit, starts=())
            units = (*problem.units[:number], nowhere, *problem.units[number + 1 :])
            found = witness_of(replace(problem, units=units))
            owner = problem.tensors[unit.members[-1]].owner
            assert found is not None and found.layers == (0 if owner < 0 else owner,)


def test_only_small_kernels_of_a_stream_and_right_behind_it_are_widened() -> None:
    network = chain_of([4, 4], [True])
    kinds = (Operator.NONE, Operator.CONV1D, Operator.CONV2D, Operator.LINEAR)
    for operator, kernel, bypass in product(kinds, ((1, 1), (3, 3), (1, 3)), (False, True)):
        for index, streamed in product(range(12), range(12)):
            layer = replace(
                network.layers[0], index=index, operator=operator, kernel=kernel, bypass=bypass
            )
            small = operator.two_dimensional and kernel == (1, 1) and not bypass
            behind = index <= streamed and index <= 8 and streamed > 0
            assert widens(layer, Choice(streamed=streamed)) == (small and behind)

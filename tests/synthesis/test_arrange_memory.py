"""Kernel, bias and data memory while places are tried: compared with slow models of their own."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import replace
from itertools import compress, product
from pathlib import Path
from random import Random

import pytest

from ai8xtools.synthesis.arrange.construct import LayoutConstructor
from ai8xtools.synthesis.arrange.decode import (
    DecodedPlaces,
    Try,
    decode,
    instance_mask,
    lowest_offset,
)
from ai8xtools.synthesis.arrange.keeping import leave_gaps
from ai8xtools.synthesis.arrange.linking import Links
from ai8xtools.synthesis.arrange.links import Distances, Offsets, Role, TiedError
from ai8xtools.synthesis.arrange.memory import (
    KernelBlocks,
    bias_surplus,
    highest_run,
    loader_order,
    lowest_run,
)
from ai8xtools.synthesis.arrange.problem import columns_of, problem_of
from ai8xtools.synthesis.arrange.search import search
from ai8xtools.synthesis.arrange.values import BiasLoad, Choice, Problem
from ai8xtools.synthesis.layout import LayerLayout, Layout
from ai8xtools.synthesis.place.packing import pack_layer
from device import MAX78000, MAX78002, Chip
from device.chip import GROUPS, PROCESSORS
from tests.arranging.loads import network_of
from tests.synthesis.networks import build, describe, mask, sample, weights

BOTH = pytest.mark.parametrize("chip", [MAX78000, MAX78002], ids=lambda chip: chip.name)


@pytest.mark.parametrize("count", range(1, 10))
def test_runs_are_the_lowest_and_the_highest_of_their_length(count: int) -> None:
    for free in range(1 << 9):
        begins = [i for i in range(10 - count) if all(free >> i + k & 1 for k in range(count))]
        assert lowest_run(free, count) == min(begins, default=None)
        assert highest_run(free, count) == max(begins, default=None)


class Columns:
    """Kernel memory column by column, as docs/placement.md has it."""

    def __init__(self, chip: Chip) -> None:
        self.chip = chip
        self.taken: set[tuple[int, int]] = set()

    def begins(self, mask: int, columns: int) -> Iterator[int]:
        """Yield where columns are free in all processors, in whole blocks of four."""
        used = [p for p in range(PROCESSORS) if mask >> p & 1]
        end = min(map(self.chip.kernel_capacity, used))
        whole = -(-columns // 4) * 4
        busy = {c for p, c in self.taken if p in used}
        for first in range(0, end - whole + 1, 4):
            if busy.isdisjoint(range(first, first + whole)):
                yield first

    def find(self, mask: int, columns: int, depthwise: bool) -> int | None:
        """Return the first column that the loader takes."""
        chip, found = self.chip, list(self.begins(mask, columns))
        part = chip.kernel_columns // chip.kernel_parts
        if depthwise and chip.kernel_parts > 1:
            found = [f for f in found if (f + 1) // part == (f + columns) // part]
            return min(found, default=None)
        extra = chip.kernel_columns_first - chip.kernel_columns
        first_ones = all(p % 16 == 0 for p in range(PROCESSORS) if mask >> p & 1)
        last = extra and first_ones and columns <= extra
        return (max if last else min)(found, default=None)

    def take(self, mask: int, first: int, columns: int) -> None:
        """Take whole blocks."""
        for p in range(PROCESSORS):
            if mask >> p & 1:
                self.taken |= {(p, c) for c in range(first, first + -(-columns // 4) * 4)}


SMALL = replace(MAX78000, kernel_columns=48, kernel_columns_first=48)
SMALL_PARTS = replace(MAX78002, kernel_columns=64, kernel_columns_first=96, kernel_parts=4)
TWO_PARTS = replace(SMALL_PARTS, kernel_parts=2)
FEW_MORE = replace(SMALL_PARTS, kernel_columns_first=80)
"""Some kernels are too large for what the first processors have besides."""


@pytest.mark.parametrize(
    "chip",
    [SMALL, SMALL_PARTS, TWO_PARTS, FEW_MORE],
    ids=["one part", "four parts", "two parts", "few more"],
)
def test_kernels_get_the_columns_that_a_slow_model_gives_them(chip: Chip) -> None:
    random = Random(1)
    masks = [1, 1 << 16, 1 | 1 << 32, 2, 0xF, 0xFF0, 0xFFFF << 16, (1 << 64) - 1]
    found_some = 0
    for _ in range(60):
        memory, slow = KernelBlocks(chip), Columns(chip)
        for _ in range(14):
            mask, columns = random.choice(masks), random.randint(1, 22)
            depthwise = random.random() < 0.5
            found = memory.find(mask, columns, depthwise=depthwise)
            wanted = slow.find(mask, columns, depthwise)
            assert (None if found is None else 4 * found) == wanted
            free = set(slow.begins(mask, columns))
            for block in range(chip.kernel_columns_first // 4 + 2):
                assert memory.fits(mask, block, columns) == (4 * block in free)
            if found is not None:
                found_some += 1
                memory.take(mask, found, columns)
                slow.take(mask, 4 * found, columns)
    assert found_some > 300


def test_kernels_of_all_processors_come_first() -> None:
    everywhere = (1 << 64) - 1
    masks = [3, everywhere, everywhere >> 1, everywhere, 5]
    assert loader_order(masks) == [1, 3, 0, 2, 4]


def slow_surplus(chip: Chip, loads: list[BiasLoad], masks: dict[int, int], used: int) -> int:
    """Fill groups with biases as docs/placement.md has it: depth-wise ones, then long ones."""
    groups = [g for g in range(GROUPS) if any(used >> 16 * g + i & 1 for i in range(16))]
    filled = dict.fromkeys(range(GROUPS), 0)
    if not groups:
        return 0
    for load in loads:
        if load.by_channel is not None:
            for g in range(GROUPS):
                if masks[load.layer] >> 16 * g:
                    filled[g] += -filled[g] % 4 + 16 * load.passes
    others = [load for load in loads if load.by_channel is None]
    bound = [x for x in others if not x.first and len(x.groups or groups) == 1]
    first = [x for x in others if x.first]
    free = [x for x in others if x not in first and x not in bound]
    lost = 0
    for load in [*first, *bound, *sorted(free, key=lambda x: -x.count)]:
        allowed = sorted(set(load.groups or groups) & set(groups)) or groups
        best = min(allowed, key=lambda g: (filled[g], g))
        if filled[best] + load.count <= chip.bias_bytes:
            filled[best] += load.count
        else:
            lost += load.count
    return lost + sum(max(0, n - chip.bias_bytes) for n in filled.values())


def test_bias_bytes_without_a_place_are_those_of_a_slow_model() -> None:
    random = Random(2)
    chip = replace(MAX78000, bias_bytes=100)
    results = set()
    for _ in range(2000):
        loads, masks = [], {}
        for layer in range(random.randint(1, 7)):
            by_channel = random.random() < 0.3
            groups = tuple(sorted(random.sample(range(4), random.randint(1, 3))))
            loads.append(
                BiasLoad(
                    layer, random.randint(1, 64), random.random() < 0.2,
                    groups if random.random() < 0.4 else None,
                    (0,) if by_channel else None, random.randint(1, 3),
                )
            )  # fmt: skip
            if by_channel:
                masks[layer] = random.choice([1, 0xF000, 0x10000, 0xFFFF8000, 1 << 63 | 1])
        used = sum(0x8001 << 16 * g for g in range(4) if random.random() < 0.6)
        surplus = bias_surplus(chip, loads, masks, used)
        assert surplus == slow_surplus(chip, loads, masks, used)
        results.add(surplus > 0)
    assert results == {True, False}


def test_offsets_are_the_lowest_that_are_far_enough_from_all_others() -> None:
    random = Random(3)
    for _ in range(3000):
        rivals = [
            (random.randint(0, 12), random.randint(1, 6), random.randint(1, 6))
            for _ in range(random.randint(0, 4))
        ]
        clear = (
            c
            for c in range(40)
            if all(c <= o - below or c >= o + above for o, below, above in rivals)
        )
        assert lowest_offset(rivals) == next(clear)


def test_distances_are_those_between_numbers() -> None:
    """Items are hidden numbers; whatever has been said about them, nothing else is known."""
    random = Random(4)
    for _ in range(200):
        hidden = [random.randint(-9, 9) for _ in range(6)]
        known, sets = Distances(6), [{i} for i in range(6)]
        for _ in range(12):
            a, b = random.randrange(6), random.randrange(6)
            together = next(s for s in sets if a in s)
            if b in together:
                with pytest.raises(TiedError):
                    known.tie(a, b, hidden[b] - hidden[a] + random.choice([-1, 1]))
            else:
                other = next(s for s in sets if b in s)
                sets.remove(other)
                together |= other
            known.tie(a, b, hidden[b] - hidden[a])
            for i in range(6):
                for j in range(6):
                    (one, near), (two, far) = known.find(i), known.find(j)
                    assert (one == two) == any({i, j} <= s for s in sets)
                    assert one != two or far - near == hidden[j] - hidden[i]


def test_gaps_are_left_in_all_results_that_nothing_else_has_placed() -> None:
    network = network_of([4, 4, 4, 4], [False, False, True])
    layout = Layout(layers={i: LayerLayout(write_gap=i) for i in network.order})
    for placed in product([False, True], repeat=3):
        links = Links(4)
        for result in compress(range(1, 4), placed):
            links.offsets.join({0: Role(), result: Role()})
        leave_gaps(network, layout, {owner: owner + 1 for owner in range(-1, 3)}, links)
        roles = [links.offsets.role(result) for result in range(1, 4)]
        assert roles == [Role(1 if held else 1 + gap) for gap, held in enumerate(placed)]


def test_items_that_share_an_offset_keep_their_roles() -> None:
    offsets = Offsets(5)
    assert offsets.role(3) == Role(1, 0)
    offsets.join({1: Role(2, 0), 3: Role(2, 1)})
    offsets.join({3: Role(2, 1), 4: Role(2, 0)})
    assert len({offsets.find(i) for i in (1, 3, 4)}) == 1
    assert len({offsets.find(i) for i in range(5)}) == 3
    assert [offsets.role(i) for i in range(5)] == [
        Role(), Role(2, 0), Role(), Role(2, 1), Role(2, 0)
    ]  # fmt: skip
    with pytest.raises(TiedError):
        offsets.join({0: Role(), 3: Role(2, 0)})
    assert offsets.find(0) != offsets.find(3)


def small_problem(random: Random, chip: Chip) -> Problem:
    """Return a chain of a few layers whose kernels and results are large parts of the memories."""
    channels = [random.choice(range(4, 65, 4)) for _ in range(random.randint(3, 6))]
    network = network_of(channels, [random.random() < 0.3 for _ in channels[1:]])
    layout = Layout(layers={i: LayerLayout() for i in network.order})
    plain = problem_of(network, layout, chip, Choice(), {})
    largest = int(random.uniform(0.2, 0.9) * plain.capacity)
    tensors = tuple(replace(t, words=random.randint(1, largest)) for t in plain.tensors)
    cells = tuple(
        replace(
            cell,
            words=tensors[cell.members[0]].words,
            fixed=random.randrange(largest) if random.random() < 0.15 else None,
        )
        for cell in plain.cells
    )
    most = chip.kernel_columns // random.randint(1, 6)
    loads = tuple(
        replace(
            load,
            columns=random.randint(1, most),
            content=random.choice([load.content, load.content, 0]),
            fixed=4 * random.randrange(most // 4) if random.random() < 0.15 else None,
        )
        for load in plain.loads
    )
    return replace(plain, tensors=tensors, cells=cells, loads=loads)


def random_try(problem: Problem, random: Random) -> Try:
    """Return any starts and orders."""
    cells, kernels = list(range(len(problem.cells))), list(range(len(problem.loads)))
    random.shuffle(cells)
    random.shuffle(kernels)
    starts = tuple(random.choice(unit.starts) for unit in problem.units)
    return Try(starts, tuple(cells), random.choice([None, tuple(kernels)]))


def masks_of(problem: Problem, tried: Try) -> list[int]:
    """Return the processors of tensors of their own units."""
    return [
        t.pattern << tried.starts[u] for t, u in zip(problem.tensors, problem.unit_of, strict=True)
    ]


def meeting(problem: Problem, masks: list[int], a: int, b: int) -> bool:
    """Whether two tensors are in one instance at the same time."""
    x, y = problem.tensors[a], problem.tensors[b]
    alive = max(x.born, y.born) <= min(x.dies, y.dies)
    return alive and any(masks[a] >> 4 * i & 15 and masks[b] >> 4 * i & 15 for i in range(16))


def apart(problem: Problem, offsets: Sequence[int] | Mapping[int, int], a: int, b: int) -> bool:
    """Whether the words of two tensors are different ones."""
    x, y = (offsets[problem.cell_of[i]] for i in (a, b))
    return x + problem.tensors[a].words <= y or y + problem.tensors[b].words <= x


def data_fits(problem: Problem, masks: list[int], offsets: tuple[int, ...]) -> bool:
    """Whether all tensors are in memory and none stands in another one's place."""
    count = len(problem.tensors)
    inside = all(
        offsets[problem.cell_of[i]] + t.words <= problem.capacity
        for i, t in enumerate(problem.tensors)
    )
    return inside and all(
        apart(problem, offsets, a, b)
        for a in range(count)
        for b in range(a)
        if meeting(problem, masks, a, b)
    )


def kernels_fit(problem: Problem, masks: list[int], found: DecodedPlaces) -> bool:
    """Whether all kernels are in memory, and none stands in another one's place."""
    blocks: dict[tuple[int, int], tuple[int, int]] = {}
    for load in problem.loads:
        first = found.columns.get(load.layer)
        if first is None or (load.fixed is not None and load.fixed != first):
            return False
        mask = masks[load.reads[0]]
        if first % 4 or first + load.columns > problem.chip.kernel_columns:
            return False
        for p in (p for p in range(PROCESSORS) if mask >> p & 1):
            for block in range(first // 4, -(-(first + load.columns) // 4)):
                owner = load.content, mask
                if blocks.setdefault((p, block), owner) != owner:
                    return False
    return True


@BOTH
def test_a_try_costs_nothing_exactly_if_everything_has_a_place(chip: Chip) -> None:
    random = Random(5)
    costs = set()
    for _ in range(80):
        problem = small_problem(random, chip)
        problem = replace(
            problem,
            loads=tuple(replace(x, fixed=None, content=x.layer) for x in problem.loads),
        )
        tried = random_try(problem, random)
        found, masks = decode(problem, tried), masks_of(problem, tried)
        assert list(found.masks) == masks
        fits = data_fits(problem, masks, found.offsets)
        assert bool(found.lost) == (not fits)
        assert bool(found.over) == (not kernels_fit(problem, masks, found))
        read = 0
        for parts in problem.reads:
            read |= masks[parts[0]]
        used = read | masks[-1]
        unread = not used & 0xFFFF
        assert (found.cost == 0) == (fits and not found.over and not unread)
        over = {load.layer: load.blocks for load in problem.loads}
        assert sorted((*found.columns, *found.over)) == sorted(over)
        known = 50 * sum(over[i] for i in found.over) + 1_000_000 * unread
        assert found.cost >= known and (found.cost == known) == fits
        costs.add(found.cost > 0)
    assert costs == {True, False}


def test_kernels_with_given_columns_are_there_or_nowhere() -> None:
    random = Random(6)
    seen = set()
    for _ in range(300):
        problem = small_problem(random, MAX78000)
        tried = random_try(problem, random)
        found, masks = decode(problem, tried), masks_of(problem, tried)
        for load in problem.loads:
            if load.layer in found.over:
                assert load.layer not in found.columns
        twins = {(x.content, masks[x.reads[0]]) for x in problem.loads}
        if len(twins) == len(problem.loads):
            assert (not found.over) == kernels_fit(problem, masks, found)
            seen.add(bool(found.over))
        else:
            for load in problem.loads:
                same = [
                    x for x in problem.loads
                    if (x.content, x.reads, masks[x.reads[0]])
                    == (load.content, load.reads, masks[load.reads[0]])
                ]  # fmt: skip
                assert len({found.columns.get(x.layer) for x in same}) == 1
    assert seen == {True, False}


def test_data_with_given_offsets_is_lost_by_as_many_words_as_are_shared_or_beyond() -> None:
    """Two maps that are alive together, in all instances: moved by so much they would fit."""
    network = network_of([64, 64], [True])
    layout = Layout(layers={0: LayerLayout()})
    plain = problem_of(network, layout, replace(MAX78000, instance_bytes=48), Choice(), {})
    for *words, first, second in product((1, 2, 5), (1, 2, 5), range(13), range(13)):
        tensors = tuple(replace(t, words=w) for t, w in zip(plain.tensors, words, strict=True))
        cells = tuple(
            replace(c, words=w, fixed=f)
            for c, w, f in zip(plain.cells, words, (first, second), strict=True)
        )
        found = decode(replace(plain, tensors=tensors, cells=cells), Try((0, 0), (0, 1)))
        beyond = [max(0, first + words[0] - 12), max(0, second + words[1] - 12)]
        shared = max(0, min(first + words[0] - second, second + words[1] - first))
        assert found.cost == sum(beyond) + shared
        assert bool(found.lost) == (found.cost > 0)
        assert (0 in found.lost) == (beyond[0] > 0)
        assert found.offsets == (first, second)


def test_a_result_that_may_overwrite_its_input_stands_so_many_words_below_it() -> None:
    """Or above all of it; whichever of the two has a given offset."""
    network = network_of([64, 64], [True])
    plain = problem_of(network, Layout(layers={0: LayerLayout()}), MAX78000, Choice(), {})
    read, written = both = (0, 1)
    for words, below, fixed, free in product(range(1, 4), range(4), range(8), both):
        tensors = tuple(replace(t, words=w) for t, w in zip(plain.tensors, (words, 3), strict=True))
        cells = tuple(
            replace(c, words=t.words, fixed=None if i == free else fixed)
            for i, (c, t) in enumerate(zip(plain.cells, tensors, strict=True))
        )
        given = replace(plain, tensors=tensors, cells=cells, overlaps={(written, read): below})
        found = decode(given, Try((0, 0), (0, 1))).offsets
        fits = (
            i for i in range(20) for low, high in [(i, fixed) if free == written else (fixed, i)]
            if low + below <= high or high + words <= low
        )  # fmt: skip
        assert found[free] == next(fits)


def test_cells_get_the_lowest_offsets_in_their_order() -> None:
    random = Random(7)
    for _ in range(100):
        problem = small_problem(random, MAX78000)
        tried = random_try(problem, random)
        masks, offsets = masks_of(problem, tried), decode(problem, tried).offsets
        member = [cell.members[0] for cell in problem.cells]
        placed = [c for c in tried.cells if problem.cells[c].fixed is not None]
        assert all(offsets[c] == problem.cells[c].fixed for c in placed)
        for cell in (c for c in tried.cells if problem.cells[c].fixed is None):
            rivals = [x for x in placed if meeting(problem, masks, member[cell], member[x])]
            # the lowest place is 0 or right behind one of the others
            ends = {0, *(offsets[x] + problem.cells[x].words for x in rivals)}
            ends |= {offsets[x] - problem.cells[cell].words for x in rivals}
            free = [
                e for e in ends if e >= 0 and all(
                    apart(problem, {**dict(enumerate(offsets)), cell: e}, member[cell], member[x])
                    for x in rivals
                )
            ]  # fmt: skip
            assert offsets[cell] == min(free)
            placed.append(cell)


def heights(problem: Problem, found: DecodedPlaces) -> list[float]:
    """Return for each tensor how high it, and the kernels that read it, reach in their memory."""
    tops = []
    for i, tensor in enumerate(problem.tensors):
        top = (found.offsets[problem.cell_of[i]] + tensor.words) / problem.capacity
        for load in problem.loads:
            if load.reads == (i,):
                last = found.columns[load.layer] + 4 * load.blocks
                top = max(top, last / problem.chip.kernel_columns)
        tops.append(top)
    return tops


def test_places_that_are_built_up_reach_least_high_at_each_step() -> None:
    """The last one that is placed has no start at which it would reach less high."""
    random = Random(8)
    fitting = 0
    for _ in range(60):
        problem = small_problem(random, MAX78000)
        problem = replace(
            problem,
            cells=tuple(replace(cell, fixed=None) for cell in problem.cells),
            loads=tuple(replace(x, fixed=None, content=x.layer) for x in problem.loads),
        )
        order = list(range(len(problem.units)))
        random.shuffle(order)
        built = LayoutConstructor(problem).build(order)
        assert sorted(built.tried.cells) == list(range(len(problem.cells)))
        assert sorted(built.tried.kernels or ()) == list(range(len(problem.loads)))
        found = decode(problem, built.tried)
        assert (built.surplus == 0) == (not found.over and not found.lost)
        if built.surplus:
            continue
        fitting += 1
        last = order[-1]
        (tensor,) = problem.units[last].members
        reached = heights(problem, found)[tensor]
        for start in problem.units[last].starts:
            starts = list(built.tried.starts)
            starts[last] = start
            other = decode(problem, replace(built.tried, starts=tuple(starts)))
            if not other.over:
                assert reached <= heights(problem, other)[tensor] + 1e-9
    assert fitting > 20


@pytest.mark.parametrize("readers", [1, 2, 3])
def test_what_is_built_up_has_a_surplus_from_one_block_or_word_too_many_on(readers: int) -> None:
    """Layers read one result, or follow each other, in all processors."""
    for chained, more in product((False, True), (-4, 0, 1, 4)):
        plain = network_of([64] * (readers + 1), [False] * (readers - 1) + [True])
        if not chained:
            layers = tuple(replace(x, sources=(-1,)) for x in plain.layers)
            plain = replace(plain, layers=layers)
        layout = Layout(layers={i: LayerLayout() for i in plain.order})
        problem = problem_of(plain, layout, MAX78000, Choice(), {})
        each = MAX78000.kernel_columns // readers // 4 * 4
        columns = [each] * readers
        columns[-1] = MAX78000.kernel_columns - sum(columns[:-1]) + more
        loads = tuple(replace(x, columns=n) for x, n in zip(problem.loads, columns, strict=True))
        built = LayoutConstructor(replace(problem, loads=loads)).build([*range(len(problem.units))])
        assert (not built.surplus) == (more <= 0)
        if chained or readers > 1:
            continue
        words = problem.capacity // 2, problem.capacity - problem.capacity // 2 + more
        tensors = tuple(replace(t, words=n) for t, n in zip(problem.tensors, words, strict=True))
        cells = tuple(replace(x, words=n) for x, n in zip(problem.cells, words, strict=True))
        large = replace(problem, tensors=tensors, cells=cells)
        assert (not LayoutConstructor(large).build([0, 1]).surplus) == (more <= 0)


def test_units_that_need_more_of_the_memories_come_first() -> None:
    random = Random(9)
    for _ in range(30):
        problem = small_problem(random, MAX78000)

        def share(unit: int, problem: Problem = problem) -> float:
            (number,) = problem.units[unit].members
            tensor = problem.tensors[number]
            columns = sum(x.columns for x in problem.loads if x.reads == (number,))
            kernels = columns * tensor.pattern.bit_count() / (64 * problem.chip.kernel_columns)
            instances = instance_mask(tensor.pattern).bit_count()
            return kernels + tensor.words * instances / (16 * problem.capacity)

        shares = [share(u) for u in LayoutConstructor(problem).order_by_size()]
        assert shares == sorted(shares, reverse=True)


def test_the_search_finds_what_trying_everything_finds() -> None:
    """Two wide results of half a memory each fit only apart from each other."""
    random = Random(10)
    solved = 0
    for _ in range(25):
        problem = small_problem(random, MAX78000)
        loads = tuple(replace(x, fixed=None, content=x.layer) for x in problem.loads)
        cells = tuple(replace(cell, fixed=None) for cell in problem.cells)
        problem = replace(problem, loads=loads, cells=cells)
        exists = any(not decode(problem, random_try(problem, random)).cost for _ in range(150))
        found, tries = search(problem, 400)
        assert not (exists and found.cost)
        assert tries >= 1 and found == decode(problem, found.tried)
        solved += exists
    assert solved > 5


@pytest.mark.parametrize("map_shape", [(2, 4), (3, 1), (1, 5), (4, 4)])
@pytest.mark.parametrize("bits", [8, 2])
def test_columns_of_flattened_maps_are_those_of_the_packed_kernels(
    map_shape: tuple[int, int], bits: int, tmp_path: Path
) -> None:
    rows, columns = map_shape
    layer = {"op": "MLP", "flatten": True, "processors": mask(4), "quantization": bits}
    kernels = [weights(5, 4 * rows * columns)]
    network, _ = build(tmp_path, describe(layer), sample(4, rows, columns), kernels)
    packed = pack_layer(network.layer(0), 0, 0)
    assert columns_of(network.network.layers[0]) == packed.columns

"""The search and the packing of kernels: against slow models and all ways of small problems."""

from __future__ import annotations

from collections import Counter, defaultdict
from collections.abc import Sequence
from dataclasses import replace
from functools import cache
from itertools import islice, pairwise, permutations, product
from random import Random
from typing import Any

import pytest

from ai8xtools.synthesis.arrange import search as searching
from ai8xtools.synthesis.arrange.blocks import Group, Held, groups_of
from ai8xtools.synthesis.arrange.construct import BuiltTry, LayoutConstructor
from ai8xtools.synthesis.arrange.decode import (
    DecodedPlaces,
    Try,
    decode,
    misplaced,
    orders_of_cells,
)
from ai8xtools.synthesis.arrange.packing import Packer, _held, _luby, packer_of
from ai8xtools.synthesis.arrange.problem import problem_of
from ai8xtools.synthesis.arrange.search import (
    _build,
    _changed,
    _first_starts,
    _first_tries,
    _improve,
    _moved,
    _pack,
    _spread,
    repaired,
    search,
)
from ai8xtools.synthesis.arrange.values import Choice, Problem
from ai8xtools.synthesis.layout import LayerLayout, Layout
from device import MAX78000
from tests.arranging.loads import instance, network_of
from tests.synthesis.test_arrange_memory import masks_of, random_try, small_problem


def joining(widths: Sequence[int]) -> Problem:
    """Return a problem in which one layer joins results of these widths."""
    plain = network_of([4, *widths, 8], [False] * len(widths) + [True])
    parts = [replace(x, sources=(-1,), in_channels=4) for x in plain.layers[:-1]]
    read = tuple(range(len(widths)))
    last = replace(plain.layers[-1], sources=read, in_channels=sum(widths))
    network = replace(plain, layers=(*parts, last))
    layout = Layout(layers=dict.fromkeys(network.order, LayerLayout()))
    return problem_of(network, layout, MAX78000, Choice(), {})


def rooms(problem: Problem, parts: Sequence[int], starts: Sequence[int]) -> list[tuple[int, int]]:
    """Return where parts of a join begin and end, in whole instances."""
    begins = [starts[problem.unit_of[p]] + problem.distance[p] for p in parts]
    return [
        (b, b + -(-problem.tensors[p].span // 4) * 4)
        for b, p in zip(begins, parts, strict=True)
    ]  # fmt: skip


def test_parts_of_a_join_come_to_stand_behind_each_other() -> None:
    random, kept = Random(1), 0
    for _ in range(150):
        widths: list[int] = []
        while sum(-(-w // 4) * 4 for w in widths) <= 60 and len(widths) < 5:
            widths.append(random.choice([1, 4, 5, 8, 12, 17, 24]))
        widths = widths if sum(-(-w // 4) * 4 for w in widths) <= 60 else widths[:-1]
        if len(widths) < 2:
            continue
        problem = joining(widths)
        (parts,) = problem.joins
        # what a part is tied to may begin before it
        distance = tuple(
            random.choice([0, 4]) if i in parts else 0 for i in range(len(problem.tensors))
        )
        units = tuple(
            replace(u, starts=tuple(s for s in u.starts if s + distance[u.members[0]] in u.starts))
            for u in problem.units
        )
        problem = replace(problem, distance=distance, units=units)
        starts = [random.choice(unit.starts) for unit in problem.units]
        found = repaired(problem, list(starts))
        assert all(s in u.starts for s, u in zip(found, problem.units, strict=True))
        before, after = rooms(problem, parts, starts), rooms(problem, parts, found)
        assert all(end <= begin for (_, end), (begin, _) in pairwise(after)) and after[-1][1] <= 64
        sizes = [end - begin for begin, end in before]
        for i, ((old, _), (new, _)) in enumerate(zip(before, after, strict=True)):
            lowest = after[i - 1][1] if i else 0
            if lowest <= old <= 64 - sum(sizes[i:]):
                assert new == old
                kept += 1
            else:  # as low as it can be
                assert new == max(lowest, distance[parts[i]])
        others = [u for u in range(len(starts)) if u not in {problem.unit_of[p] for p in parts}]
        assert all(found[u] == starts[u] for u in others)
        assert repaired(problem, list(found)) == found
    assert kept > 50


def test_parts_of_several_joins_move_until_all_of_them_are_in_order() -> None:
    problem = joining([8, 8, 8])
    a, b, c = problem.joins[0]
    problem = replace(problem, joins=((a, b), (c, a)))
    found = repaired(problem, [0] * len(problem.units))
    assert [found[problem.unit_of[p]] for p in (c, a, b)] == [0, 8, 16]


def test_parts_of_two_joins_come_in_order_from_most_of_all_places() -> None:
    """Moving one of them for one join breaks another one, which is mended again."""
    problem = joining([8, 8, 8])
    a, b, c = problem.joins[0]
    for joins in (((a, b), (b, c)), ((b, c), (a, b)), ((a, b), (c, a)), ((a, b), (a, c))):
        problem, wrong = replace(problem, joins=joins), 0
        for places in product(range(0, 57, 8), repeat=3):
            starts = [0] * len(problem.units)
            for part, place in zip((a, b, c), places, strict=True):
                starts[problem.unit_of[part]] = place
            found = repaired(problem, starts)
            spans = [rooms(problem, parts, found) for parts in joins]
            wrong += any(end > begin for (_, end), (begin, _) in spans)
        assert wrong <= 8**3 // 8


def test_parts_of_three_joins_come_in_order_from_most_places_whatever_join_is_first() -> None:
    problem = joining([8, 8, 8, 8])
    a, b, c, d = problem.joins[0]
    for joins in (((c, d), (b, c), (a, b)), ((a, b), (b, c), (c, d))):
        problem, wrong = replace(problem, joins=joins), 0
        for places in product(range(0, 57, 16), repeat=4):
            starts = [0] * len(problem.units)
            for part, place in zip((a, b, c, d), places, strict=True):
                starts[problem.unit_of[part]] = place
            found = repaired(problem, starts)
            spans = [rooms(problem, parts, found) for parts in joins]
            wrong += any(end > begin for (_, end), (begin, _) in spans)
        assert wrong <= 112  # of 256


def test_what_is_in_the_same_words_stands_in_other_instances() -> None:
    problem = replace(joining([8, 8]), joins=(), twins=((1, 2),))
    for one, other in product(range(0, 57, 2), repeat=2):
        masks = [1 << 60, 0xFF << one, 0xFF << other]
        shared = {p // 4 for p in range(one, one + 8)} & {p // 4 for p in range(other, other + 8)}
        assert bool(misplaced(problem, masks)) == bool(shared)


def test_a_unit_begins_where_its_processors_hold_least_so_far() -> None:
    random = Random(2)
    for _ in range(40):
        problem = small_problem(random, MAX78000)
        order = list(range(len(problem.units)))
        random.shuffle(order)
        load = [random.randint(0, 5) for _ in order]
        filled = [0] * 64
        for u, start in zip(order, [_spread(problem, order, load)[u] for u in order], strict=True):
            (member,) = problem.units[u].members
            width = problem.tensors[member].span
            heights = {s: max(filled[s : s + width]) for s in problem.units[u].starts}
            assert start == min(s for s, h in heights.items() if h == min(heights.values()))
            for p in range(start, start + width):
                filled[p] += load[u]


def test_the_first_tries_begin_low_and_spread_the_widest_the_largest_and_all_in_order() -> None:
    """The fullest processor is lower than where all units stand at the bottom, often by much."""
    random, lower = Random(3), 0
    for _ in range(60):
        problem = small_problem(random, MAX78000)
        starts = [*_first_starts(problem)]
        assert starts[0] == tuple(u.starts[0] for u in problem.units)
        assert starts[-1] == tuple(
            u.starts[-1] if i % 2 == 0 else u.starts[0] for i, u in enumerate(problem.units)
        )
        fullest = [highest(problem, s) for s in starts]
        assert max(fullest[1:4]) <= fullest[0]
        lower += min(fullest[1:4]) < fullest[0]
        tries = [*_first_tries(problem)]
        assert [t.starts for t in tries] == [s for s in starts for _ in range(7)]
        for number in range(0, len(tries), 7):
            cells = [t.cells for t in tries[number : number + 5]]
            assert cells == orders_of_cells(problem)
            for given in tries[number + 5 : number + 7]:
                assert given.cells == orders_of_cells(problem)[3]
                assert given.kernels is not None
                columns = [problem.loads[i].columns for i in given.kernels]
                widths = [problem.tensors[problem.loads[i].reads[0]].width for i in given.kernels]
                by = [(-w, -c) for w, c in zip(widths, columns, strict=True)]
                if number + 6 < len(tries) and given is tries[number + 6]:
                    by = [(-c, 0) for c in columns]
                assert by == sorted(by)
    assert lower > 30


def test_cells_are_tried_by_size_by_lifetime_and_by_both_as_well_as_in_order() -> None:
    random = Random(9)
    for _ in range(30):
        problem = small_problem(random, MAX78000)
        cells, last = range(len(problem.cells)), len(problem.network.order)
        words = [problem.cells[c].words for c in cells]
        life = []
        for c in cells:
            members = [problem.tensors[i] for i in problem.cells[c].members]
            alive = [
                p for p in range(-1, last + 1) if any(t.born <= p <= t.dies for t in members)
            ]  # fmt: skip
            life.append(len(alive))
        found = orders_of_cells(problem)
        assert found[:2] == [tuple(cells), tuple(reversed(cells))]
        assert [words[c] for c in found[2]] == sorted(words, reverse=True)
        areas = [w * n for w, n in zip(words, life, strict=True)]
        assert [areas[c] for c in found[3]] == sorted(areas, reverse=True)
        assert [life[c] for c in found[4]] == sorted(life, reverse=True)


def highest(problem: Problem, starts: Sequence[int]) -> int:
    """Return the columns that the fullest processor reads."""
    masks = masks_of(problem, Try(tuple(starts), ()))
    return max(
        sum(x.columns for x in problem.loads if masks[x.reads[0]] >> p & 1) for p in range(64)
    )


def rising(order: Sequence[int]) -> int:
    """Return the length of the longest rising sequence in an order."""
    best: list[int] = []
    for i, x in enumerate(order):
        best.append(1 + max((b for b, y in zip(best, order[:i], strict=True) if y < x), default=0))
    return max(best)


def test_one_or_several_numbers_of_an_order_move_anywhere() -> None:
    random = Random(4)
    seen = {_moved((0, 1, 2), random) for _ in range(300)}
    assert seen == {*permutations(range(3))}
    kept = set()
    for _ in range(300):
        found = _moved(tuple(range(9)), random)
        assert sorted(found) == [*range(9)]
        kept.add(rising(found))
    assert kept >= {6, 7, 8, 9}


def test_changes_of_a_try_are_legal_and_of_every_kind() -> None:
    random = Random(5)
    kinds: set[tuple[Any, ...]] = set()
    for _ in range(15):
        problem = small_problem(random, MAX78000)
        for _ in range(60):
            tried = random_try(problem, random)
            found = _changed(problem, tried, random)
            assert all(s in u.starts for s, u in zip(found.starts, problem.units, strict=True))
            assert sorted(found.cells) == [*range(len(problem.cells))]
            assert found.kernels is None or sorted(found.kernels) == [*range(len(problem.loads))]
            moved = sum(a != b for a, b in zip(found.starts, tried.starts, strict=True))
            kinds |= {("starts", min(moved, 3)), ("cells", found.cells == tried.cells)}
            kinds.add(("kernels", tried.kernels is None, found.kernels == tried.kernels))
    assert len(kinds) == 4 + 2 + 4


def test_the_search_returns_the_best_try_and_ends_with_the_first_that_fits(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    costs: list[int] = []

    def counted(problem: Problem, tried: Try) -> DecodedPlaces:
        found = decode(problem, tried)
        costs.append(found.cost)
        return found

    monkeypatch.setattr(searching, "decode", counted)
    random, solved, later = Random(6), 0, 0
    for _ in range(30):
        problem = small_problem(random, MAX78000)
        costs.clear()
        found, count = search(problem, 60)
        assert (found.cost, count) == (min(costs), len(costs))
        assert all(costs[:-1])
        simple = 7 * 5
        if found.cost and any(load.fixed is not None for load in problem.loads):
            assert count == simple + 60  # nothing to pack
        solved += not found.cost
        later += not found.cost and count > simple
    assert solved > 5 and later > 0


def test_changes_are_as_many_as_tries_or_a_share_of_them() -> None:
    random, seen = Random(13), 0
    for _ in range(3):
        problem = small_problem(random, MAX78000)
        problem = replace(problem, loads=tuple(replace(x, columns=2000) for x in problem.loads))
        begin = decode(problem, next(_first_tries(problem)))
        for tries, share in product((8, 40), (1, 3, 20)):
            found, count = _improve(problem, begin, 5, tries, share)
            if found.cost:
                assert count == 5 + tries // share
                assert found.cost <= begin.cost
                seen += 1
    assert seen > 10


def test_changes_go_on_from_the_last_of_the_best_tries(monkeypatch: pytest.MonkeyPatch) -> None:
    problem = small_problem(Random(14), MAX78000)
    tries: list[DecodedPlaces] = []
    begun_from: list[Try] = []

    def unfitting(problem: Problem, tried: Try) -> DecodedPlaces:
        tries.append(replace(decode(problem, tried), cost=7 - len(tries) // 3))
        return tries[-1]

    def changed(problem: Problem, tried: Try, random: Random) -> Try:
        begun_from.append(tried)
        return _changed(problem, tried, random)

    begin = unfitting(problem, next(_first_tries(problem)))
    monkeypatch.setattr(searching, "decode", unfitting)
    monkeypatch.setattr(searching, "_changed", changed)
    monkeypatch.setattr(searching, "_build", lambda _, best, count, *__: (best, count))
    found, count = _improve(problem, begin, 5, 12, 1)
    assert (found, count) == (tries[12], 17)
    assert begun_from == [one.tried for one in tries[:-1]]


def test_orders_of_units_are_kept_where_memories_overflow_no_more_than_before(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    built: list[tuple[float, tuple[int, ...], tuple[int, ...] | None]] = []
    rounds = 0

    class Watched(LayoutConstructor):
        def build(self, order: Sequence[int]) -> BuiltTry:
            found = super().build(order)
            built.append((-found.surplus, found.tried.cells, found.tried.kernels))
            return found

    def checked(problem: Problem, tried: Try) -> DecodedPlaces:
        nonlocal rounds
        rounds += 1
        least = max(surplus for surplus, *_ in built)
        assert (tried.cells, tried.kernels) == [b[1:] for b in built if b[0] == least][-1]
        return decode(problem, tried)

    monkeypatch.setattr(searching, "LayoutConstructor", Watched)
    monkeypatch.setattr(searching, "decode", checked)
    for seed in (0, 1, 2):
        problem = instance(Random(seed), 0.93, 0.5, Counter())
        built.clear()
        begin = decode(problem, next(_first_tries(problem)))
        best, count = _build(problem, begin, 5, 4, Random(seed))
        assert best.cost <= begin.cost and (not best.cost or count == 9)
        assert len({b[0] for b in built}) > 10
    assert rounds > 6


# Packing


def test_runs_become_longer_as_the_sequence_says() -> None:
    """1; then always the sequence so far twice, and twice the last number."""
    sequence = [1]
    for power in range(1, 8):
        sequence += [*sequence, 2**power]
    assert [_luby(i + 1) for i in range(len(sequence))] == sequence


def test_words_of_a_group_are_held_from_the_writer_on_until_the_last_reader() -> None:
    random, outcomes = Random(7), set()
    for _ in range(300):
        born = random.randint(-1, 3)
        held = [
            Held(random.randint(0, 2), random.randint(1, 2), random.randint(1, 5), born, d)
            for d in random.sample(range(born, 5), 2)
        ]  # fmt: skip
        group = Group(((0, 0),), (0,), (), tuple(held))
        start = random.randint(0, 3)
        words = defaultdict(list, {
            position: [random.randint(0, 5) for _ in range(8)] for position in range(-1, 6)
        })  # fmt: skip
        wanted = {
            position: [
                before
                + sum(
                    h.words
                    for h in held
                    if h.born <= position <= h.dies and h.left <= i - start < h.left + h.width
                )
                for i, before in enumerate(row)
            ]
            for position, row in words.items()
        }
        before = {position: list(row) for position, row in words.items()}
        changed = {
            new for position, row in wanted.items()
            for new, old in zip(row, words[position], strict=True) if new != old
        }  # fmt: skip
        fits = _held(words, group, start, 9, 1)
        assert words == wanted
        # what no one adds to was judged before
        assert fits == (max(changed) <= 9) or not fits
        assert fits is False or max(changed) <= 9
        outcomes.add(fits)
        _held(words, group, start, 9, -1)
        assert words == before
    assert outcomes == {True, False}


@pytest.mark.parametrize("surplus", [0, 1])
def test_data_that_fill_an_instance_are_packed_and_a_word_more_is_not(surplus: int) -> None:
    """The sample and the first result are everywhere at the same time."""
    plain = network_of([64, 64, 64], [False, True])
    layout = Layout(layers=dict.fromkeys(plain.order, LayerLayout()))
    problem = problem_of(plain, layout, MAX78000, Choice(), {})
    half = problem.capacity // 2
    sizes = (half, problem.capacity - half + surplus, half)
    tensors = tuple(replace(t, words=n) for t, n in zip(problem.tensors, sizes, strict=True))
    packer = packer_of(replace(problem, tensors=tensors), Random(1))
    assert packer is not None
    assert bool(next(packer.packings(100), None)) == (not surplus)


UNIT = 32
"""Blocks of columns: six high, as four times four instances are wide, is the whole memory."""
STEPS = 7000
"""Of all packings below together; they take 6700."""


Sizes = tuple[tuple[int, int, int], ...]
"""Width, height and group of rectangles; those of a group have one width and begin together."""


def rectangles(sizes: Sequence[tuple[int, int, int]]) -> Problem:
    """Return kernels that are so many times 16 processors wide and 128 columns high."""
    kept = [False] * (len(sizes) - 1) + [True]
    plain = network_of([16 * w for w, _, _ in sizes] + [4], kept)
    layout = Layout(layers=dict.fromkeys(plain.order, LayerLayout()))
    problem = problem_of(plain, layout, MAX78000, Choice(), {})
    sixteen = tuple(range(0, 64, 16))
    units = tuple(
        replace(u, starts=tuple(s for s in u.starts if s in sixteen)) for u in problem.units
    )
    loads = tuple(
        replace(x, columns=4 * UNIT * h, reads=problem.loads[group].reads)
        for x, (_, h, group) in zip(problem.loads, sizes, strict=True)
    )
    return replace(problem, units=units, loads=loads)


def packable(sizes: Sequence[tuple[int, int, int]]) -> bool:
    """Whether rectangles fit into 4 x 6, by trying every place."""
    order = tuple(sorted(sizes, key=lambda s: (-s[0] * s[1], s[2])))

    @cache
    def fits(taken: int, number: int, begins: tuple[int, ...]) -> bool:
        if number == len(order):
            return True
        width, height, group = order[number]
        for x in range(5 - width) if begins[group] < 0 else (begins[group],):
            for y in range(7 - height):
                cells = [4 * r + c for r in range(y, y + height) for c in range(x, x + width)]
                area = sum(1 << cell for cell in cells)
                begun = (*begins[:group], x, *begins[group + 1 :])
                if not taken & area and fits(taken | area, number + 1, begun):
                    return True
        return False

    return fits(0, 0, (-1,) * len(order))


def drawn(random: Random) -> Sizes:
    """Return rectangles that fill most of the memory, some of them in groups."""
    sizes: list[tuple[int, int, int]] = []
    while sum(w * h for w, h, _ in sizes) < 20:
        number = len(sizes)
        width, group = random.randint(1, 4), number
        if number and random.random() < 0.3:
            width, _, group = random.choice(sizes)
        sizes.append((width, random.randint(1, 5), group))
    return tuple(sizes)


def test_all_that_can_be_packed_is_packed_and_the_rest_is_given_up_soon() -> None:
    random, outcomes, steps = Random(8), [0, 0], 0
    for _ in range(80):
        sizes = drawn(random)
        problem = rectangles(sizes)
        packer = packer_of(problem, Random(1))
        assert packer is not None
        found = next(packer.packings(20_000), None)
        possible = packable(sizes)
        assert (found is not None) == possible, sizes
        outcomes[possible] += 1
        steps += packer.steps
        if found is not None:
            places = decode(problem, Try(found.starts, orders_of_cells(problem)[0], found.loads))
            assert not places.over
    assert min(outcomes) > 10
    assert steps < STEPS


def packable_with(sizes: Sizes, words: Sequence[int], capacity: int) -> bool:
    """Whether rectangles fit so that the data of their groups fits into each sixteen processors."""
    groups = sorted({group for _, _, group in sizes})
    width = {group: w for w, _, group in sizes}
    for begins in product(*(range(5 - width[g]) for g in groups)):
        held = [0] * 4
        for group, begin in zip(groups, begins, strict=True):
            for x in range(begin, begin + width[group]):
                held[x] += words[group]
        if max(held) <= capacity and _fits_at(sizes, dict(zip(groups, begins, strict=True))):
            return True
    return False


def _fits_at(sizes: Sizes, begins: dict[int, int]) -> bool:
    """Whether rectangles that begin at known places fit into 6 rows, each as low as it goes."""
    for order in permutations(sizes):
        tops = [0] * 4
        for width, height, group in order:
            across = slice(begins[group], begins[group] + width)
            tops[across] = [max(tops[across]) + height] * width
        if max(tops) <= 6:
            return True
    return False


def test_packings_whose_data_fits_are_found_among_many_others() -> None:
    random, outcomes, steps = Random(12), [0, 0], 0
    for _ in range(60):
        sizes = tuple(
            (random.randint(1, 3), random.randint(1, 4), i) for i in range(random.randint(3, 5))
        )
        plain = rectangles(sizes)
        words = [random.randint(1, plain.capacity) for _ in sizes]
        tensors = tuple(
            replace(t, words=words[i] if i < len(words) else 1, born=0, dies=i < len(words))
            for i, t in enumerate(plain.tensors)
        )
        problem = replace(plain, tensors=tensors)
        packer = packer_of(problem, Random(1))
        assert packer is not None
        found = next(packer.packings(4000), None)
        possible = packable_with(sizes, words, plain.capacity)
        assert (found is not None) == possible
        outcomes[possible] += 1
        steps += packer.steps if possible else 0
    assert min(outcomes) > 10
    assert steps < 128  # they take 124


def test_other_packings_follow_where_there_are_some() -> None:
    """Data may find no room in the first one."""
    for sizes in (((1, 1, 0), (1, 2, 1)), ((2, 3, 0), (2, 3, 1), (4, 1, 2))):
        packer = packer_of(rectangles(sizes), Random(1))
        assert packer is not None
        assert len({packed.starts for packed in packer.packings(2000)}) >= 2


def test_the_best_order_of_cells_of_all_packings_is_kept(monkeypatch: pytest.MonkeyPatch) -> None:
    problem = rectangles(((2, 3, 0), (2, 3, 1), (4, 1, 2)))
    begin = decode(problem, next(_first_tries(problem)))
    for seed in range(5):
        costs: list[int] = []
        random, packer = Random(seed), packer_of(problem, Random(1))
        assert packer is not None

        def costly(
            _: Problem, tried: Try, costs: list[int] = costs, random: Random = random
        ) -> DecodedPlaces:
            costs.append(random.randint(10, 99))
            return replace(begin, cost=costs[-1], tried=tried)

        monkeypatch.setattr(searching, "decode", costly)
        best, count = _pack(problem, packer, replace(begin, cost=100), 7, 120, Random(1))
        assert (best.cost, count) == (min(costs), 7 + len(costs))
        assert len(costs) > 100


def test_further_packings_follow_a_found_one_without_a_new_beginning() -> None:
    for count in (4, 12):
        packer = packer_of(rectangles([(1, 1, i) for i in range(count)]), Random(1))
        assert packer is not None
        assert len([*islice(packer.packings(2000), 12)]) == 12
        assert packer.steps < count + 3 * 12  # twelve beginnings take 12 * (count + 1)


def test_data_that_has_no_room_beside_each_other_is_kept_apart() -> None:
    """Two wide maps of more than half a memory, alive together, of small kernels."""
    for words, capacity in ((4097, 8192), (4096, 8192)):
        problem = rectangles([(2, 1, 0), (2, 1, 1), (2, 1, 2)])
        tensors = tuple(replace(t, words=words, born=-1, dies=3) for t in problem.tensors[:3])
        tensors = (*tensors, *problem.tensors[3:])
        problem = replace(problem, tensors=tensors)
        assert problem.capacity == capacity
        packer = packer_of(problem, Random(1))
        assert packer is not None
        found = next(packer.packings(5000), None)
        assert (found is None) == (words > capacity // 2)
        pair = replace(problem, loads=problem.loads[:2])
        packer = packer_of(pair, Random(1))
        assert packer is not None
        packed = next(packer.packings(5000))
        alone = {packed.starts[pair.unit_of[x.reads[0]]] for x in pair.loads}
        assert words <= capacity // 2 or len(alone) == 2


def test_starts_and_loads_of_a_packing_are_complete_and_go_from_the_lowest_upward() -> None:
    problem = rectangles([(1, 2, 0), (2, 3, 1), (4, 1, 2), (1, 1, 3)])
    groups = groups_of(problem)
    assert groups is not None
    for seed in range(10):
        found = next(Packer(problem, groups, Random(seed)).packings(1000))
        assert sorted(found.loads) == [0, 1, 2, 3]
        assert all(s in u.starts for s, u in zip(found.starts, problem.units, strict=True))
        heights = [0] * 4
        for number in found.loads:
            load: Any = problem.loads[number]
            width = problem.tensors[load.reads[0]].span // 16
            at = found.starts[problem.unit_of[load.reads[0]]] // 16
            top = max(heights[at : at + width]) + load.blocks // UNIT
            heights[at : at + width] = [top] * width
        assert max(heights) <= 6

"""Places of blocks, rows on demand and lifetimes, against exhaustive searches."""

from __future__ import annotations

import random
from collections.abc import Mapping, Sequence
from dataclasses import replace
from itertools import permutations, product

import pytest

from ai8xtools.software.cores import CORES
from ai8xtools.software.fuse import fuse
from ai8xtools.software.graph import Convolution, Pool, Step, StepGraph, sources_of
from ai8xtools.software.kernels import Kernel, choose
from ai8xtools.software.lower import lower
from ai8xtools.software.memory import Block, Overlap, aligned
from ai8xtools.software.plan.arena import conflict, lower_bound, place
from ai8xtools.software.plan.layers import (
    scratch_bytes,
    sums_bytes,
    window_bytes,
    windows_at_once,
)
from ai8xtools.software.plan.lines import in_lines
from ai8xtools.software.plan.plan import PlanError
from ai8xtools.software.plan.planner import plan
from ai8xtools.software.plan.schemes import SINGLE, Scheme
from ai8xtools.software.plan.streaming import Pull, parts_of, rows_of, streams
from ai8xtools.software.plan.tensors import outputs_of
from tests.software.networks import random_network
from tests.software.oracle.whole import Executor

SEEDS = range(100, 150)
_GRAPHS: dict[int, StepGraph] = {}


def _graph(seed: int) -> StepGraph:
    if seed not in _GRAPHS:
        _GRAPHS[seed] = fuse(lower(random_network(seed)))
    return _GRAPHS[seed]


def _blocks(choice: random.Random, count: int) -> list[Block]:
    found = []
    for number in range(count):
        first = choice.randint(0, 5)
        last = min(first + choice.randint(0, 3), 6)
        size = choice.choice((1, 4, 6, 8, 12, 20, 33))
        found.append(Block(name=str(number), size=size, first=first, last=last, tensor=number))
    return found


def _overlaps(choice: random.Random, blocks: Sequence[Block]) -> list[Overlap]:
    """Return, for some blocks that end where another begins, by how much that may lie below."""
    found: dict[int, Overlap] = {}
    for one, other in permutations(blocks, 2):
        if one.last == other.first and one.first < other.first and choice.random() < 0.5:
            distance = min(choice.choice((0, 0, 4, 9, -3)), other.size)
            found[one.last] = Overlap(int(one.name), int(other.name), distance)
    return [*found.values()]


def _disturb(one: Block, other: Block, allowed: Mapping[tuple[int, int], int]) -> bool:
    """Whether two blocks share a byte at the same time that is still needed, moment by moment."""
    bytes_of = [{*range(b.offset, b.offset + b.size)} for b in (one, other)]
    if not bytes_of[0] & bytes_of[1]:
        return False
    moments = {*range(one.first, one.last + 1)} & {*range(other.first, other.last + 1)}
    if not moments:
        return False
    for data, result in ((one, other), (other, one)):
        distance = allowed.get((int(data.name), int(result.name)))
        if distance is not None and moments == {data.last} == {result.first}:
            return data.offset - result.offset < distance
    return True


def _problems() -> list[tuple[list[Block], list[Overlap]]]:
    made = []
    for seed in range(150):
        choice = random.Random(seed)
        blocks = _blocks(choice, choice.randint(0, 7))
        made.append((blocks, _overlaps(choice, blocks) if seed % 2 else []))
    return made


def test_blocks_disturb_each_other_where_they_share_bytes_that_are_needed() -> None:
    met = set()
    for blocks, overlaps in _problems():
        allowed = {(o.data, o.result): o.distance for o in overlaps}
        for one, other in permutations(blocks, 2):
            for start in range(0, 44, 3):
                moved = one.at(start), other.at(12)
                expected = _disturb(*moved, allowed)
                assert conflict(*moved, allowed) == expected
                met.add(((int(one.name), int(other.name)) in allowed, expected))
    assert len(met) == 4


def test_places_are_aligned_and_nobody_is_disturbed() -> None:
    for blocks, overlaps in _problems():
        placed, peak = place(blocks, overlaps)
        allowed = {(o.data, o.result): o.distance for o in overlaps}
        assert [b.at(0) for b in placed] == blocks
        assert peak == max((b.offset + b.size for b in placed), default=0)
        for number, one in enumerate(placed):
            assert one.offset >= 0 and one.offset % 4 == 0
            for other in placed[number + 1 :]:
                assert not _disturb(one, other, allowed)
        assert peak >= lower_bound(blocks, allowed)


def _alive(blocks: Sequence[Block]) -> int:
    """Return the most bytes that live at a moment."""
    return max((sum(b.size for b in blocks if b.first <= t <= b.last) for t in range(8)), default=0)


def test_the_lower_bound_is_what_lives_at_once() -> None:
    for blocks, _ in _problems():
        assert lower_bound(blocks, {}) == _alive(blocks)
    data = Block(name="0", size=20, first=0, last=1, tensor=0)
    for size, distance in product((6, 20, 33), (-3, 0, 4)):
        result = Block(name="1", size=size, first=1, last=2, tensor=1)
        both = lower_bound([data, result], {(0, 1): distance})
        lowest = min(max(at + 20, size) for at in range(60) if at - 0 >= distance)
        assert both == max(lowest, 20, size)


def _fewest(blocks: Sequence[Block]) -> int:
    """Return the bytes of the best arrangement, by every order of lowest places."""
    best = 1 << 30
    for order in permutations(blocks):
        placed: list[Block] = []
        for block in order:
            near = [b for b in placed if b.lives_with(block)]
            at = next(
                at
                for at in sorted({0, *(aligned(b.end) for b in near)})
                if not any(b.touches(block.at(at)) for b in near)
            )
            placed.append(block.at(at))
        best = min(best, max(b.end for b in placed))
    return best


def test_few_blocks_take_as_little_memory_as_any_arrangement() -> None:
    for seed in range(60):
        choice = random.Random(seed)
        blocks = _blocks(choice, choice.randint(1, 5))
        assert place(blocks, ())[1] <= aligned(_fewest(blocks))


def test_many_blocks_take_hardly_more_than_live_at_once() -> None:
    shares = []
    for seed in range(12):
        choice = random.Random(seed)
        blocks = [
            Block(name=str(n), size=4 * choice.randint(1, 40), first=first,
                  last=first + choice.randint(0, 4), tensor=n)
            for n in range(18) for first in (choice.randint(0, 12),)
        ]  # fmt: skip
        shares.append(place(blocks, ())[1] / lower_bound(blocks, {}))
    assert max(shares) <= 1.16 and sum(shares) / len(shares) <= 1.03


@pytest.mark.parametrize("to", [1, 4, 8, 16])
def test_sizes_are_rounded_up(to: int) -> None:
    for size in range(70):
        assert aligned(size, to) == next(n for n in range(size, size + to) if n % to == 0)


def _reads(step: Step, row: int) -> list[set[int]]:
    """Return the source rows that each part of a row of a result is made from."""
    match step:
        case Convolution():
            sums = [row]
            if step.pool is not None:
                sums = [row * step.pool.stride[0] + n for n in range(step.pool.window[0])]
            found = []
            for y in sums:
                taps = {y * step.stride[0] - step.pad[0] + i * step.dilation
                        for i in range(step.kernel[0])}  # fmt: skip
                whole = range(min(taps), max(taps) + 1)
                found.append({n // step.spread[0] for n in whole if n % step.spread[0] == 0}
                             & {*range(step.in_size[0])})  # fmt: skip
            return found
        case Pool():
            rows = {row * step.stride[0] + n * step.dilation[0] for n in range(step.window[0])}
            return [{*range(min(rows), max(rows) + 1)}]
        case _:
            return [{row}]


def test_parts_of_a_row_read_the_rows_under_the_window() -> None:
    for seed in SEEDS:
        graph = _graph(seed)
        for step in graph.steps:
            rows = graph.tensors[step.target].rows
            assert rows_of(step, graph) == rows or isinstance(step, Convolution | Pool)
            for row in range(rows_of(step, graph)):
                parts = parts_of(step, row)
                assert [{*range(part.first, part.end)} for part in parts] == _reads(step, row)
                assert all(part.first <= part.end for part in parts)


def _needed(graph: StepGraph, steps: Sequence[Step], roots: Sequence[int]) -> dict[int, int]:
    """Return the rows that rings must hold, found by following every read and write.

    A list of what happens is made first; then each row of a tensor has to stay from when it is
    written to when it was read for the last time.
    """
    maker = {step.target: step for step in steps}
    done: dict[int, int] = {}
    events: list[tuple[str, int, int]] = []

    def demand(tensor: int, count: int) -> None:
        while done.get(tensor, 0) < count:
            row = done.get(tensor, 0)
            if tensor in maker:
                step = maker[tensor]
                for number, part in enumerate(parts_of(step, row)):
                    for source in dict.fromkeys(sources_of(step)):
                        demand(source, part.end)
                    for source in dict.fromkeys(sources_of(step)):
                        events.extend(("read", source, n) for n in range(part.first, part.end))
                    events.append(("write" if not number else "keep", tensor, row))
            else:
                events.append(("write", tensor, row))
            done[tensor] = row + 1

    for root in roots:
        demand(root, rows_of(maker[root], graph))
    last = {(tensor, row): when for when, (act, tensor, row) in enumerate(events) if act == "read"}
    most: dict[int, int] = {}
    for when, (act, tensor, row) in enumerate(events):
        if act == "write":
            staying = [n for n in range(row) if last.get((tensor, n), -1) > when]
            most[tensor] = max(most.get(tensor, 1), row - min(staying, default=row) + 1)
    return most


def test_rings_hold_what_is_read_later_and_no_more_than_windows_are_high() -> None:
    checked = exact = 0
    for seed in SEEDS:
        graph = _graph(seed)
        made = plan(graph, CORES["cortex-m4"], Scheme.ROWS)
        for task in made.tasks:
            steps = made.steps_of(task)
            if len(steps) < 2 or not all(streams(step, graph) for step in steps):
                continue
            whole = {t: graph.tensors[t].rows for s in steps for t in sources_of(s)
                     if t not in {s.target for s in steps}
                     and made.rings.get(t, graph.tensors[t].rows) == graph.tensors[t].rows
                     and t != graph.input}  # fmt: skip
            least = _needed(graph, steps, task.roots)
            pull = Pull(graph, steps, whole)
            for root in task.roots:
                maker = next(step for step in steps if step.target == root)
                for row in range(rows_of(maker, graph)):
                    pull.demand(root, row + 1)
            for tensor, rows in made.rings.items():
                if tensor in least and rows < graph.tensors[tensor].rows:
                    checked += 1
                    exact += rows == least[tensor]
                    assert least[tensor] <= rows == pull.rows[tensor]
    assert checked > 20 and exact > 0.6 * checked


def _conv(seed: int) -> list[tuple[Convolution, Kernel]]:
    graph = _graph(seed)
    return [
        (step, choose(step, core))
        for step in graph.steps
        if isinstance(step, Convolution)
        for core in (CORES["cortex-m4"], CORES["cortex-m0plus"])
    ]


def test_pooled_rows_have_room_for_whole_blocks_of_windows() -> None:
    pooled = 0
    for seed in SEEDS:
        for step, kernel in _conv(seed):
            windows, pool = windows_at_once(step, kernel), step.pool
            kernels = {step.target: kernel}
            if pool is None:
                assert (windows, window_bytes(step, kernel), sums_bytes(step)) == (1, 0, 0)
                assert scratch_bytes(step, kernels) == aligned(kernel.scratch_bytes(step))
                continue
            pooled += 1
            apart = pool.stride[1] != pool.window[1]
            pixels = windows * pool.window[1]
            whole = next(n for n in range(1, 99) if n * pool.window[1] % kernel.pixels == 0)
            assert windows == (1 if apart else min(whole, pool.out_size[1]))
            assert window_bytes(step, kernel) == aligned(pixels * step.filters)
            assert scratch_bytes(step, kernels) == (
                aligned(pixels * step.filters) + aligned(kernel.scratch_bytes(step))
            )
            sums = 0 if pool.kind == "max" else 2 * pool.out_size[1] * step.filters
            assert sums_bytes(step) == sums
    assert pooled > 10


def test_outputs_follow_each_other_and_are_made_in_place_once() -> None:
    """Also a tensor that is delivered twice, the input, and 32 bits at an odd place."""
    for seed in SEEDS:
        graph = _graph(seed)
        targets = [step.target for step in graph.steps]
        delivered = (graph.input, *targets[:2], targets[-1], targets[-1])
        wide = replace(graph, outputs=delivered)
        at, met = 0, set()
        for output, tensor in zip(outputs_of(wide), delivered, strict=True):
            one = graph.tensors[tensor]
            assert (output.tensor, output.offset) == (tensor, at)
            odd = one.bytes_per_value == 4 and at % 4 != 0
            assert output.copied == (tensor == graph.input or tensor in met or odd)
            met.add(tensor)
            at += one.size_bytes


def test_one_column_becomes_one_row_and_other_data_stay() -> None:
    lines = 0
    for seed in SEEDS:
        graph = _graph(seed)
        turned = in_lines(graph)
        assert turned.tensors == graph.tensors
        for before, after in zip(graph.steps, turned.steps, strict=True):
            size = getattr(before, "in_size", getattr(before, "size", (1, 1)))
            if size[1] > 1 or size[0] == 1:
                assert after is before
            elif after is not before:
                lines += 1
                assert getattr(after, "in_size", getattr(after, "size", (1, 1)))[0] == 1
                assert in_lines(replace(graph, steps=(after,))).steps == (after,)
            elif isinstance(before, Pool):
                assert before.window[1] != 1
    assert lines > 10


def _distances(height: int, made: int, reads: Sequence[set[int]], data: int) -> int:
    """Return by how much a result has to lie below its data: no row may reach what is needed."""
    most = -(1 << 30)
    for y in range(len(reads)):
        first = min(set().union(*reads[y:]) or {height}) * data
        most = max(most, (y + 1) * made - first)
    return most


def test_results_in_the_memory_of_their_data_end_before_what_is_needed() -> None:
    met = 0
    for seed in SEEDS:
        graph = _graph(seed)
        for scheme in SINGLE:
            made = plan(graph, CORES["cortex-m4"], scheme)
            lives = {block.tensor: block for block in made.blocks}
            for overlap in made.overlaps:
                step = next(s for s in made.graph.steps if s.target == overlap.result)
                data, result = lives[overlap.data], lives[overlap.result]
                assert overlap.data in sources_of(step) and data.last == result.first
                if isinstance(step, Convolution):
                    met += 1
                    size = step.pool.out_size if step.pool else step.out_size
                    reads = [set().union(*_reads(step, y)) for y in range(size[0])]
                    least = _distances(step.in_size[0], size[1] * step.filters, reads,
                                       step.in_size[1] * step.channels)  # fmt: skip
                    assert overlap.distance >= least
                else:
                    assert overlap.distance == 0
    assert met > 10


def test_whole_tensors_take_no_more_than_twice_what_a_step_needs() -> None:
    for seed in SEEDS:
        graph = _graph(seed)
        made = [plan(graph, CORES["cortex-m4"], scheme) for scheme in SINGLE]
        for one in made:
            assert one.lower_bound <= one.arena_bytes <= 1.25 * one.lower_bound + 8
            assert one.arena_bytes % 4 == 0
            assert one.data_bytes == sum(b.size for b in one.blocks if b.name != "scratch")
            for number, task in enumerate(one.tasks):
                works = [scratch_bytes(step, one.kernels) for step in one.steps_of(task)
                         if isinstance(step, Convolution)]  # fmt: skip
                here = [b.size for b in one.blocks if b.name == "scratch" and b.first == number]
                assert here == [most for most in [max(works, default=0)] if most]
            inside = {b.tensor for b in one.blocks}
            assert one.takes_rows == (graph.input in inside)
            kept = [o.tensor for o in one.outputs if not o.copied]
            assert not inside & {*kept}


def test_plans_without_a_place_or_a_kernel_are_refused() -> None:
    graph = next(g for seed in SEEDS if len((g := _graph(seed)).steps) > 3)
    made = plan(graph, CORES["cortex-m4"], Scheme.RESIDENT)
    made.validate()
    blocks = [*made.blocks]
    high = replace(made, blocks=(blocks[0].at(made.arena_bytes - blocks[0].size + 1), *blocks[1:]))
    low = replace(made, blocks=(blocks[0].at(-1), *blocks[1:]))
    tensor = next(iter(made.rings))
    homeless = replace(made, places={t: p for t, p in made.places.items() if t != tensor})
    without = replace(made, kernels={})
    for wrong in (high, low, homeless, without):
        with pytest.raises(PlanError):
            wrong.validate()
    together = replace(made, overlaps=(), blocks=tuple(b.at(0) for b in blocks))
    with pytest.raises(PlanError):
        together.validate()
    assert Executor(made)

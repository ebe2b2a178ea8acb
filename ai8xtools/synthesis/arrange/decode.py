"""Places of one try: starts of the units and orders become columns, offsets and a cost.

Source: docs/placement.md, "The search".
"""

from __future__ import annotations

import itertools
from collections.abc import Sequence
from functools import lru_cache

from ai8xtools.synthesis.arrange.memory import KernelBlocks, bias_surplus, loader_order
from ai8xtools.synthesis.arrange.values import BLOCK, Problem
from ai8xtools.values import frozen
from device.chip import GROUPS, PROCESSORS_PER_GROUP
from device.masks import instances, mask_of

_BLOCK_COST = 50
_WRONG_PLACE = 1_000_000
_GROUPS = tuple(0xFFFF << PROCESSORS_PER_GROUP * g for g in range(GROUPS))


@lru_cache(maxsize=8192)
def instance_mask(mask: int) -> int:
    """Return a bit for each data memory instance in which a processor mask has lanes."""
    return mask_of(instances(mask))


@frozen
class Try:
    """What is varied: starts by unit, the order of the cells, that of the kernels (None: loader's).

    `kernels` are positions in the problem's loads.
    """

    starts: tuple[int, ...]
    cells: tuple[int, ...]
    kernels: tuple[int, ...] | None = None


@frozen
class DecodedPlaces:
    """The places of a try, and its cost: 0 where everything fits.

    `masks` are the processors by tensor, `columns` the first column by layer, `offsets` the words
    by cell. `over` are layers whose kernels found no room, `lost` cells without a place, with the
    blocks, words and bytes that are too many.
    """

    tried: Try
    cost: int
    masks: tuple[int, ...]
    columns: dict[int, int]
    offsets: tuple[int, ...]
    over: tuple[int, ...]
    lost: tuple[int, ...]
    bias_bytes: int

    def processors(self, problem: Problem, layer_position: int) -> int:
        """Return the processors of a layer, by its position in the order of execution."""
        mask = 0
        for tensor in problem.reads[layer_position]:
            mask |= self.masks[tensor]
        return mask


def decode(problem: Problem, tried: Try) -> DecodedPlaces:
    """Place kernels, biases and data for some starts and orders."""
    masks = tuple(
        tensor.pattern << tried.starts[unit] + distance
        for tensor, unit, distance in zip(
            problem.tensors, problem.unit_of, problem.distance, strict=True
        )
    )
    cost = misplaced(problem, masks)
    columns, over, blocks = _kernels(problem, masks, tried.kernels)
    offsets, lost, words = _data(problem, masks, tried.cells)
    read = [_union(masks, parts) for parts in problem.reads]
    used = masks[_final(problem)]
    for mask in read:
        used |= mask
    by_channel = {
        load.layer: _union(masks, load.by_channel)
        for load in problem.biases
        if load.by_channel is not None
    }
    surplus = bias_surplus(problem.chip, problem.biases, by_channel, used)
    cost += _unused_groups(masks, used) * _WRONG_PLACE
    cost += _BLOCK_COST * blocks + words + surplus
    return DecodedPlaces(tried, cost, masks, columns, offsets, over, lost, surplus)


def _final(problem: Problem) -> int:
    """Return the tensor that the last layer writes."""
    final = problem.network.final
    if final.buffer_shift or final.buffer_insert:
        return 1
    return len(problem.tensors) - 1


def _union(masks: Sequence[int], parts: Sequence[int]) -> int:
    union = 0
    for part in parts:
        union |= masks[part]
    return union


def misplaced(problem: Problem, masks: Sequence[int]) -> int:
    """Return the cost of parts of joins that are out of order, and of shared words."""
    wrong = 0
    for parts in problem.joins:
        for before, after in itertools.pairwise(parts):
            low, high = masks[before], masks[after]
            behind = (low.bit_length() + 3) // 4 * 4
            wrong += max(0, behind - ((high & -high).bit_length() - 1))
    for a, b in problem.twins:
        if instance_mask(masks[a]) & instance_mask(masks[b]):
            wrong += 1
    return wrong * _WRONG_PLACE


def _unused_groups(masks: Sequence[int], used: int) -> int:
    """Count groups that hold a result but have no registers, and group 0 if it is unused."""
    wrong = int(not used & _GROUPS[0])
    held = 0
    for mask in masks:
        held |= mask
    return wrong + sum(bool(held & group and not used & group) for group in _GROUPS)


def _kernels(
    problem: Problem, masks: Sequence[int], order: Sequence[int] | None
) -> tuple[dict[int, int], tuple[int, ...], int]:
    """Return the columns by layer, the layers without room, and the blocks these lack."""
    memory = KernelBlocks(problem.chip, problem.occupied)
    loads = problem.loads
    read = [_union(masks, load.reads) for load in loads]
    columns: dict[int, int] = {}
    shared: dict[tuple[int, int], int] = {}
    over: list[int] = []
    lacking = 0
    sequence = list(order) if order is not None else loader_order(read)
    fixed = [i for i in sequence if loads[i].fixed is not None]
    for i in [*fixed, *(i for i in sequence if loads[i].fixed is None)]:
        load, mask = loads[i], read[i]
        source = shared.setdefault((load.content, mask), load.layer)
        if source != load.layer:
            if source in columns:
                columns[load.layer] = columns[source]
            continue
        if load.fixed is None:
            first = memory.find(mask, load.columns, depthwise=load.depthwise)
        else:
            block = load.fixed // BLOCK
            first = block if memory.fits(mask, block, load.columns) else None
        if first is None:
            over.append(load.layer)
            lacking += load.blocks
            continue
        memory.take(mask, first, load.columns)
        columns[load.layer] = first * BLOCK
    return columns, tuple(over), lacking


def _data(
    problem: Problem, masks: Sequence[int], order: Sequence[int]
) -> tuple[tuple[int, ...], tuple[int, ...], int]:
    """Return the offset of each cell, those without a place, and the words that are too many."""
    conflicts = _conflicts(problem, masks)
    offsets = [cell.fixed if cell.fixed is not None else -1 for cell in problem.cells]
    placed = [i for i in order if problem.cells[i].fixed is not None]
    lost, beyond = [], 0
    for i in placed:
        surplus = offsets[i] + problem.cells[i].words - problem.capacity
        beyond += max(0, surplus)
        lost += [i] if surplus > 0 else []
        for other, (below, above) in conflicts[i].items():
            fixed = problem.cells[other].fixed
            if fixed is not None and other < i:
                wrong = min(offsets[i] + below - fixed, fixed + above - offsets[i])
                beyond += max(0, wrong)
                lost += [i] if wrong > 0 else []
    for i in order:
        if problem.cells[i].fixed is not None:
            continue
        rivals = [
            (offsets[j], below, above)
            for j, (below, above) in conflicts[i].items()
            if offsets[j] >= 0
        ]
        offsets[i] = offset = lowest_offset(rivals)
        surplus = offset + problem.cells[i].words - problem.capacity
        if surplus > 0:
            beyond += surplus
            lost.append(i)
    return tuple(offsets), tuple(lost), beyond


def lowest_offset(rivals: Sequence[tuple[int, int, int]]) -> int:
    """Return the lowest offset that is far enough from the others: (offset, below, above) each."""
    candidates = [0, *(o + above for o, _, above in rivals)]
    candidates += [o - below for o, below, _ in rivals if o >= below]
    for candidate in sorted(candidates):
        for o, below, above in rivals:
            if o - below < candidate < o + above:
                break
        else:
            return candidate
    raise AssertionError("behind the last one there is always room")


def _conflicts(problem: Problem, masks: Sequence[int]) -> list[dict[int, tuple[int, int]]]:
    """Return, by cell, how far it must stay below and above each other cell that it may meet."""
    conflicts: list[dict[int, tuple[int, int]]] = [{} for _ in problem.cells]
    held = [instance_mask(mask) for mask in masks]
    step, overlaps = problem.step, problem.overlaps
    for a, b in problem.pairs:
        if not held[a] & held[b]:
            continue
        under = overlaps.get((a, b), problem.tensors[a].words * step[a])
        over = overlaps.get((b, a), problem.tensors[b].words * step[b])
        x, y = problem.cell_of[a], problem.cell_of[b]
        below, above = conflicts[x].get(y, (under, over))
        below, above = max(below, under), max(above, over)
        conflicts[x][y], conflicts[y][x] = (below, above), (above, below)
    return conflicts


def orders_of_cells(problem: Problem) -> list[tuple[int, ...]]:
    """Return orders that are tried first: of execution, reverse, by size and by lifetime."""
    cells = range(len(problem.cells))

    def life(cell: int) -> int:
        members = [problem.tensors[i] for i in problem.cells[cell].members]
        return max(t.dies for t in members) - min(t.born for t in members) + 1

    def words(cell: int) -> int:
        return problem.cells[cell].words

    return [
        tuple(cells),
        tuple(reversed(cells)),
        tuple(sorted(cells, key=lambda c: -words(c))),
        tuple(sorted(cells, key=lambda c: -words(c) * life(c))),
        tuple(sorted(cells, key=lambda c: -life(c))),
    ]


def processors_of_unit(problem: Problem, unit: int) -> int:
    """Return the processors from the first to the last of a unit."""
    members = problem.units[unit].members
    return max(problem.distance[i] + problem.tensors[i].span for i in members)

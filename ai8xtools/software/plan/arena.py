"""Places in one array for blocks that live at different times.

Blocks are put at the lowest free place one after the other, the large ones first; other orders are
tried until the bound is reached that no arrangement can beat.
"""

from __future__ import annotations

import random
from collections.abc import Iterable, Mapping, Sequence

from ai8xtools.software.memory import ALIGNMENT, Block, Overlap, aligned

_ATTEMPTS = 150


def place(blocks: Sequence[Block], overlaps: Iterable[Overlap]) -> tuple[tuple[Block, ...], int]:
    """Return the blocks with their offsets, and the bytes that they take together."""
    allowed = {(one.data, one.result): one.distance for one in overlaps}
    pairs = _pairs(blocks, allowed)
    numbers = range(len(blocks))
    order = sorted(numbers, key=lambda i: (-blocks[i].size, blocks[i].first, i))
    orders = [
        sorted(numbers, key=lambda i: (blocks[i].first, -blocks[i].size, i)),
        sorted(numbers, key=lambda i: (-blocks[i].last, -blocks[i].size, i)),
    ]
    best = _placed(blocks, order, pairs)
    peak, least = _peak(blocks, best), lower_bound(blocks, allowed)
    generator = random.Random(1)
    for attempt in range(len(orders) + _ATTEMPTS):
        if peak <= aligned(least) or len(blocks) < 2:
            break
        tried = orders[attempt] if attempt < len(orders) else _swapped(order, generator)
        placed = _placed(blocks, tried, pairs)
        if _peak(blocks, placed) <= peak:
            best, peak, order = placed, _peak(blocks, placed), tried
    return tuple(b.at(offset) for b, offset in zip(blocks, best, strict=True)), peak


def lower_bound(blocks: Sequence[Block], allowed: Mapping[tuple[int, int], int]) -> int:
    """Return the most bytes that live at the same time, whatever the arrangement."""
    by_tensor = {block.tensor: block for block in blocks if block.tensor is not None}
    most = 0
    for moment in {block.first for block in blocks}:
        total = sum(b.size for b in blocks if b.first <= moment <= b.last)
        for (data, result), distance in allowed.items():
            one, other = by_tensor[data], by_tensor[result]
            if one.last == moment == other.first:
                total -= one.size + other.size - max(one.size + max(distance, 0), other.size)
                break  # a step consumes the data of one source only, as far as this can tell
        most = max(most, total)
    return most


def conflict(one: Block, other: Block, allowed: Mapping[tuple[int, int], int]) -> bool:
    """Whether two blocks with offsets disturb each other."""
    if not one.lives_with(other) or not one.touches(other):
        return False
    for data, result in ((one, other), (other, one)):
        distance = allowed.get((_tensor(data), _tensor(result)))
        if distance is not None and data.last == result.first:
            return result.offset + distance > data.offset
    return True


def _tensor(block: Block) -> int:
    return -1 if block.tensor is None else block.tensor


_Pairs = list[list[tuple[int, int | None, int | None]]]
"""For each block those that live with it, with the distance at which it may begin below them as
their result, and that at which they may begin below it."""


def _pairs(blocks: Sequence[Block], allowed: Mapping[tuple[int, int], int]) -> _Pairs:
    def distance(data: Block, result: Block) -> int | None:
        at_once = data.last == result.first
        return allowed.get((_tensor(data), _tensor(result))) if at_once else None

    return [
        [
            (number, distance(other, one), distance(one, other))
            for number, other in enumerate(blocks)
            if other is not one and one.lives_with(other)
        ]
        for one in blocks
    ]


def _placed(blocks: Sequence[Block], order: Sequence[int], pairs: _Pairs) -> list[int]:
    """Return the offsets of blocks that are put at the lowest free place in this order."""
    offsets = [-1] * len(blocks)
    for index in order:
        size = blocks[index].size
        near = [
            (offsets[n], offsets[n] + blocks[n].size, down, up)
            for n, down, up in pairs[index]
            if offsets[n] >= 0
        ]
        candidates = {0}
        for start, end, down, up in near:
            candidates.add(aligned(end))
            if down is not None and start >= down:
                candidates.add((start - down) // ALIGNMENT * ALIGNMENT)
            if up is not None:
                candidates.add(aligned(start + max(up, 0)))
        offsets[index] = next(
            at
            for at in sorted(candidates)
            if all(
                at >= end
                or start >= at + size
                or (down is not None and at + down <= start)
                or (up is not None and start + up <= at)
                for start, end, down, up in near
            )
        )
    return offsets


def _peak(blocks: Sequence[Block], offsets: Sequence[int]) -> int:
    ends = (o + block.size for block, o in zip(blocks, offsets, strict=True))
    return max(ends, default=0)


def _swapped(order: Sequence[int], generator: random.Random) -> list[int]:
    result = list(order)
    one, other = generator.sample(range(len(order)), 2)
    result[one], result[other] = result[other], result[one]
    return result

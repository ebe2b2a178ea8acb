"""Places in one array for blocks that live at different times.

Blocks are put at the lowest free place one after the other, the large ones first; other orders are
tried until the bound is reached that no arrangement can beat.
"""

from __future__ import annotations

import random
from collections.abc import Iterable, Mapping, Sequence

from software.memory import Block, Overlap

ALIGNMENT = 4
_ATTEMPTS = 150


def place(blocks: Sequence[Block], overlaps: Iterable[Overlap]) -> tuple[tuple[Block, ...], int]:
    """Return the blocks with their offsets, and the bytes that they take together."""
    allowed = {(one.data, one.result): one.distance for one in overlaps}
    orders = [
        sorted(range(len(blocks)), key=lambda i: (-blocks[i].size, blocks[i].first, i)),
        sorted(range(len(blocks)), key=lambda i: (blocks[i].first, -blocks[i].size, i)),
        sorted(range(len(blocks)), key=lambda i: (-blocks[i].last, -blocks[i].size, i)),
    ]
    best = _placed(blocks, orders[0], allowed)
    peak = _peak(best)
    least = lower_bound(blocks) if not allowed else 0
    generator = random.Random(1)
    order = orders[0]
    for attempt in range(len(orders) - 1 + _ATTEMPTS):
        if peak <= least or len(blocks) < 2:
            break
        tried = orders[attempt + 1] if attempt + 1 < len(orders) else _swapped(order, generator)
        placed = _placed(blocks, tried, allowed)
        if _peak(placed) <= peak:
            best, peak, order = placed, _peak(placed), tried
    return best, peak


def lower_bound(blocks: Sequence[Block]) -> int:
    """Return the most bytes that live at the same time."""
    moments = {block.first for block in blocks}
    return max((sum(b.size for b in blocks if b.first <= m <= b.last) for m in moments), default=0)


def aligned(size: int, to: int = ALIGNMENT) -> int:
    """Round a size up."""
    return -(-size // to) * to


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


def _placed(
    blocks: Sequence[Block], order: Sequence[int], allowed: Mapping[tuple[int, int], int]
) -> tuple[Block, ...]:
    placed: dict[int, Block] = {}
    for index in order:
        block = blocks[index]
        near = [other for other in placed.values() if block.lives_with(other)]
        candidates = {0, *(aligned(other.end) for other in near)}
        for other in near:
            down = allowed.get((_tensor(other), _tensor(block)))
            up = allowed.get((_tensor(block), _tensor(other)))
            if down is not None:
                candidates.add((other.offset - down) // ALIGNMENT * ALIGNMENT)
            if up is not None:
                candidates.add(aligned(other.offset + up))
        tried = (block.at(offset) for offset in sorted(candidates) if offset >= 0)
        placed[index] = next(
            at for at in tried if not any(conflict(at, other, allowed) for other in near)
        )
    return tuple(placed[index] for index in range(len(blocks)))


def _peak(blocks: Sequence[Block]) -> int:
    return max((block.end for block in blocks), default=0)


def _swapped(order: Sequence[int], generator: random.Random) -> list[int]:
    result = list(order)
    one, other = generator.sample(range(len(order)), 2)
    result[one], result[other] = result[other], result[one]
    return result

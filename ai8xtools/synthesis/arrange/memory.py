"""Kernel and bias memory while places are tried: as the loader fills them, in fast arithmetic.

A set of free or taken blocks of four columns is one number with a bit for each block.
Source: docs/placement.md, "Kernels: order of the layers", "Kernels: finding columns", "Biases".
"""

from __future__ import annotations

from collections.abc import Sequence
from functools import lru_cache

from ai8xtools.synthesis.arrange.values import BLOCK, BiasLoad
from ai8xtools.synthesis.options import NOTHING, Occupied
from device import Chip
from device.chip import GROUPS, PROCESSORS, PROCESSORS_PER_GROUP
from device.masks import bits, mask_of

_EVERYWHERE = (1 << PROCESSORS) - 1


@lru_cache(maxsize=4096)
def _numbers(mask: int) -> tuple[int, ...]:
    return bits(mask)


def _runs(free: int, count: int) -> int:
    """Return a bit for each place at which a run of `count` set bits begins."""
    length = 1
    while length < count:
        step = min(length, count - length)
        free &= free >> step
        length += step
    return free


def lowest_run(free: int, count: int) -> int | None:
    """Return where the lowest run of `count` set bits begins; None if there is none."""
    runs = _runs(free, count)
    return (runs & -runs).bit_length() - 1 if runs else None


def highest_run(free: int, count: int) -> int | None:
    """Return where the highest run of `count` set bits begins; None if there is none."""
    runs = _runs(free, count)
    return runs.bit_length() - 1 if runs else None


@lru_cache(maxsize=8)
def _blocks(occupied: Occupied) -> tuple[int, ...]:
    return tuple(mask_of(c // BLOCK for c in bits(columns)) for columns in occupied.columns)


class KernelBlocks:
    """Which blocks of each processor are taken."""

    def __init__(self, chip: Chip, occupied: Occupied = NOTHING) -> None:
        self.chip = chip
        self.taken = [*_blocks(occupied)]
        self.whole = (1 << chip.kernel_columns // BLOCK) - 1
        self.larger = (1 << chip.kernel_columns_first // BLOCK) - 1

    def _free(self, mask: int) -> tuple[int, bool]:
        """Return the blocks that are free in all processors, and whether all have more of them."""
        taken = 0
        for processor in _numbers(mask):
            taken |= self.taken[processor]
        large = self.larger != self.whole and all(
            p % PROCESSORS_PER_GROUP == 0 for p in _numbers(mask)
        )
        return (self.larger if large else self.whole) & ~taken, large

    def find(self, mask: int, columns: int, *, depthwise: bool = False) -> int | None:
        """Return the first block of the range that the loader takes; None if there is none."""
        count = -(-columns // BLOCK)
        free, large = self._free(mask)
        extra = self.chip.kernel_columns_first - self.chip.kernel_columns
        if depthwise and self.chip.kernel_parts > 1:
            return self._within_part(free, columns)
        if large and columns <= extra:
            block = highest_run(free, count)
            if block is not None:
                return block
        return lowest_run(free, count)

    def _within_part(self, free: int, columns: int) -> int | None:
        """Return the lowest range of a depth-wise layer, which must not cross two parts."""
        count, part = -(-columns // BLOCK), self.chip.kernel_part_columns
        while True:
            first = lowest_run(free, count)
            if first is None:
                return None
            column = first * BLOCK
            if (column + 1) // part == (column + columns) // part:
                return first
            free &= -1 << (column // part + 1) * part // BLOCK

    def fits(self, mask: int, first: int, columns: int) -> bool:
        """Whether a range from a given block on is free in all processors."""
        count = -(-columns // BLOCK)
        blocks = (1 << count) - 1 << first
        return self._free(mask)[0] & blocks == blocks

    def take(self, mask: int, first: int, columns: int) -> None:
        """Take a range in all processors."""
        blocks = (1 << -(-columns // BLOCK)) - 1 << first
        for processor in _numbers(mask):
            self.taken[processor] |= blocks


def loader_order(masks: Sequence[int]) -> list[int]:
    """Return in which order the loader places layers that read from these processors."""
    everywhere = [i for i, mask in enumerate(masks) if mask == _EVERYWHERE]
    return everywhere + [i for i, mask in enumerate(masks) if mask != _EVERYWHERE]


def bias_surplus(chip: Chip, biases: Sequence[BiasLoad], masks: dict[int, int], used: int) -> int:
    """Return the bytes that find no place where groups with processors in `used` take part.

    `masks` has the processors of depth-wise layers, by layer.
    """
    groups = [g for g in range(GROUPS) if used >> PROCESSORS_PER_GROUP * g & 0xFFFF]
    if not groups:
        return 0
    filled = [0] * GROUPS
    for load in biases:
        if load.by_channel is not None:
            for g in range((masks[load.layer].bit_length() - 1) // PROCESSORS_PER_GROUP + 1):
                filled[g] = -(-filled[g] // 4) * 4 + PROCESSORS_PER_GROUP * load.passes
    ordinary = [load for load in biases if load.by_channel is None]

    def priority(load: BiasLoad) -> int:
        if load.first:
            return -1
        return 0 if len(load.groups or groups) == 1 else chip.bias_bytes - load.count

    lost = 0
    for load in sorted(ordinary, key=priority):
        permitted = [g for g in load.groups or groups if g in groups] or groups
        group = min(permitted, key=lambda g: filled[g])
        if filled[group] + load.count > chip.bias_bytes:
            lost += load.count
        else:
            filled[group] += load.count
    return lost + sum(max(0, count - chip.bias_bytes) for count in filled)

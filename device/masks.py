"""Sets of processors, groups or FIFOs as registers and descriptions hold them: one bit for each."""

from __future__ import annotations

from collections.abc import Iterable

from device.chip import INSTANCES, PROCESSORS_PER_GROUP, PROCESSORS_PER_INSTANCE


def mask_of(numbers: Iterable[int]) -> int:
    """Return the mask in which the bits of these numbers are set."""
    mask = 0
    for number in numbers:
        mask |= 1 << number
    return mask


def bits(mask: int) -> tuple[int, ...]:
    """Return the numbers of the bits that are set, ascending."""
    return tuple(i for i in range(mask.bit_length()) if mask >> i & 1)


def lowest_bit(mask: int) -> int:
    """Return the number of the lowest set bit; the mask is not zero."""
    return (mask & -mask).bit_length() - 1


def group_slice(mask: int, group: int) -> int:
    """Return the 16 bits of a processor mask that belong to a group."""
    return mask >> PROCESSORS_PER_GROUP * group & (1 << PROCESSORS_PER_GROUP) - 1


def instances(mask: int) -> tuple[int, ...]:
    """Return the data memory instances (0 to 15) in which a processor mask has lanes."""
    lanes = (1 << PROCESSORS_PER_INSTANCE) - 1
    return tuple(i for i in range(INSTANCES) if mask >> PROCESSORS_PER_INSTANCE * i & lanes)

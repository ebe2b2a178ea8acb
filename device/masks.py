"""Sets of processors, groups or FIFOs as registers and descriptions hold them: one bit for each."""

from __future__ import annotations

from collections.abc import Iterable


def mask_of(numbers: Iterable[int]) -> int:
    """Return the mask in which the bits of these numbers are set."""
    mask = 0
    for number in numbers:
        mask |= 1 << number
    return mask

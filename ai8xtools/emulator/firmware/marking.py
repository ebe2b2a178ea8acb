"""Finding out where bytes go: each is given a number, digit by digit, and looked for afterwards."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np
from numpy.typing import NDArray

Integers = NDArray[np.int64]
Bytes = NDArray[np.uint8]

TRIALS = 2
"""How often random bytes must arrive unchanged before a place counts as certain."""
_VALUES = 256  # of a byte


def numbers_delivered(deliver: Callable[[Bytes], Bytes], count: int) -> Integers:
    """Return which of `count` bytes, numbered from 1, is delivered at each place; 0: none.

    `deliver` takes the values of the bytes and returns those at the places, which follow one
    another in the same order every time.
    """
    numbers, delivered, unit = np.arange(1, count + 1), np.zeros(0, np.int64), 1
    while unit <= count:
        digits = deliver((numbers // unit % _VALUES).astype(np.uint8)).astype(np.int64)
        size = max(len(delivered), len(digits))
        delivered, digits = (np.pad(part, (0, size - len(part))) for part in (delivered, digits))
        delivered = delivered + unit * digits
        unit *= _VALUES
    return delivered


def random_bytes(count: int, trial: int) -> Bytes:
    """Return random bytes, the same for each number of a trial."""
    return np.random.default_rng(trial).integers(0, _VALUES, count, np.uint8)

"""Parts of words that are no registers: bytes on the bus, signed values, sets of numbers.

Fields of registers have names in `device/registers.py`; no bit of a register is picked out by hand.
"""

from __future__ import annotations

from typing import TypeVar

import numpy as np
from numpy.typing import NDArray

Address = TypeVar("Address", int, NDArray[np.int64])

WORD_BITS = 32
WORD_LIMIT = 1 << WORD_BITS
"""The first number that is too large for a word."""


def word_address(address: Address) -> Address:
    """Return the address of the word that holds the byte at an address."""
    return address & ~3


def byte_number(address: Address) -> Address:
    """Return the place of a byte in its word, 0 to 3."""
    return address & 3


def truncated(value: int, bits: int = WORD_BITS) -> int:
    """Return the lowest bits of a number."""
    return value & (1 << bits) - 1


def signed(value: int, bits: int) -> int:
    """Return the lowest bits of a number as two's complement."""
    value = truncated(value, bits)
    return value - (value >> bits - 1 << bits)


def bytes_at(word: int, address: int, size: int) -> int:
    """Return `size` bytes of a word from an address on, the lowest first."""
    return truncated(word >> 8 * byte_number(address), 8 * size)


def with_bytes(word: int, address: int, size: int, value: int) -> int:
    """Return a word in which a store of `size` bytes at an address has changed these bytes."""
    shift, mask = 8 * byte_number(address), truncated(-1, 8 * size)
    return word & ~(mask << shift) | (value & mask) << shift


def changed(word: int, actual: int, expected: int) -> int:
    """Return a word with those bits inverted in which two values differ."""
    return word ^ actual ^ expected


def numbers_in(mask: int) -> tuple[int, ...]:
    """Return the numbers of the bits that are set, ascending."""
    return tuple(number for number in range(mask.bit_length()) if mask >> number & 1)


def signed_parts(data: NDArray[np.uint8], bits: int) -> NDArray[np.int64]:
    """Return the integers of `bits` bits (1, 2, 4 or 8) in bytes [..., n]: [..., 8 // bits, n].

    The lowest bits of a byte come first; values are two's complement.
    """
    low = bits * np.arange(8 // bits)[:, None]
    values = data[..., None, :].astype(np.int64) >> low
    sign = 1 << bits - 1
    return ((values & (1 << bits) - 1) ^ sign) - sign

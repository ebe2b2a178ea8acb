"""Bytes become words: numpy views arrays of bytes as words, no bit is shifted.

Data memory holds the byte of a lane at that place of a word, lane 0 lowest. Kernel columns are
packed with the first byte in the most significant place.
Source: docs/hardware/memory.md, "Writing kernels" and "Data memory".
"""

from __future__ import annotations

from collections.abc import Mapping

import numpy as np
from numpy.typing import NDArray

from device.chip import KERNEL_COLUMN_BYTES

Bytes = NDArray[np.uint8]
Words = NDArray[np.uint32]

_WORD_BYTES = 4


def as_bytes(values: NDArray[np.integer]) -> Bytes:
    """Return signed values of 8 bits as bytes (two's complement)."""
    return values.astype(np.uint8)


def data_words(stream: Bytes) -> Words:
    """Return four bytes a word, the first one lowest; the last word is filled with zeros."""
    return _filled(stream).view("<u4").astype(np.uint32)


def lane_words(lanes: Mapping[int, NDArray[np.integer]], count: int) -> Words:
    """Return `count` words from the values of their lanes, with zeros in the other lanes."""
    stream = np.zeros((count, _WORD_BYTES), np.uint8)
    for lane, values in lanes.items():
        stream[:, lane] = as_bytes(values)
    return data_words(stream.reshape(-1))


def lane_mask(first: int, count: int) -> int:
    """Return the mask that covers `count` bytes from a lane on, as far as the word goes."""
    covered = np.zeros(_WORD_BYTES, np.uint8)
    covered[first : first + count] = np.iinfo(np.uint8).max
    return int(data_words(covered)[0])


def express_words(columns: Bytes) -> Words:
    """Pack kernel columns [column, 9] without gaps."""
    return _filled(columns.reshape(-1)).view(">u4").astype(np.uint32)


def plain_words(columns: Bytes) -> Words:
    """Return four words per column: byte 0, bytes 1 to 4, bytes 5 to 8, and zero to store them."""
    words = np.zeros((len(columns), 4), np.uint32)
    words[:, 0] = columns[:, 0]
    tail = np.ascontiguousarray(columns[:, 1:KERNEL_COLUMN_BYTES])
    words[:, 1:3] = tail.view(">u4").astype(np.uint32)
    return words.reshape(-1)


def _filled(stream: Bytes) -> Bytes:
    """Return the bytes with zeros up to a whole word."""
    padded = np.zeros(-(-stream.size // _WORD_BYTES) * _WORD_BYTES, np.uint8)
    padded[: stream.size] = stream
    return padded

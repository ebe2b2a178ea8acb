"""Hashes of words and pixels that also tell which word is wrong.

A hash is a sum of words, each multiplied by an odd weight, modulo 2^64. If one word of a block
differs by d, the hash differs by d times its weight; as d has no more than 33 bits, only one of the
16 weights leads to such a number (but for one case in 2^27). So the position and the right word
follow from the hash. Words that differ in several places are noticed, but not located.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

BLOCK_WORDS = 16
"""Words under one hash."""
_MODULUS = 1 << 64
_WORD_LIMIT = 1 << 32

Hashes = NDArray[np.uint64]


class WordFault(NamedTuple):
    """The only wrong word of a block: its index in the block, and its correct value."""

    number: int
    expected: int


def weights(count: int) -> Hashes:
    """Return the first odd weights of the format (the sequence splitmix64)."""
    step, first, second = (
        np.uint64(number) for number in (0x9E3779B97F4A7C15, 0xBF58476D1CE4E5B9, 0x94D049BB133111EB)
    )
    mixed = np.arange(1, count + 1, dtype=np.uint64) * step
    mixed = (mixed ^ (mixed >> np.uint64(30))) * first
    mixed = (mixed ^ (mixed >> np.uint64(27))) * second
    return (mixed ^ (mixed >> np.uint64(31))) | np.uint64(1)


_WEIGHTS = weights(BLOCK_WORDS)
_INVERSES = tuple(pow(weight, -1, _MODULUS) for weight in _WEIGHTS.tolist())


def padded(words: NDArray[np.integer]) -> NDArray[np.uint32]:
    """Return words with zeros behind them up to whole blocks."""
    whole = np.zeros(len(words) + -len(words) % BLOCK_WORDS, np.uint32)
    whole[: len(words)] = words
    return whole


def block_hashes(words: NDArray[np.uint32]) -> Hashes:
    """Return the hash of each block; the words are whole blocks."""
    products = words.reshape(-1, BLOCK_WORDS).astype(np.uint64) * _WEIGHTS
    sums: Hashes = products.sum(axis=1, dtype=np.uint64)
    return sums


def run_hashes(runs: Sequence[NDArray[np.uint32]]) -> Hashes:
    """Return the hashes of all blocks of runs of words, each of which begins a block."""
    if not runs:
        return np.zeros(0, np.uint64)
    lengths = np.array([len(run) for run in runs], np.int64)
    starts = np.cumsum(lengths) - lengths
    whole = lengths + -lengths % BLOCK_WORDS
    shifts = np.cumsum(whole) - whole - starts
    words = np.zeros(int(whole.sum()), np.uint32)
    words[np.arange(lengths.sum()) + np.repeat(shifts, lengths)] = np.concatenate(runs)
    return block_hashes(words)


def find_word(block: NDArray[np.uint32], expected_hash: int) -> WordFault | None:
    """Return the one word of a block that explains its hash; None if more than one is wrong."""
    difference = int(block_hashes(block)[0]) - expected_hash
    faults: list[WordFault] = []
    for number, inverse in enumerate(_INVERSES):
        change = difference * inverse % _MODULUS
        change -= _MODULUS if change >= _MODULUS // 2 else 0
        expected = int(block[number]) - change
        if change and 0 <= expected < _WORD_LIMIT:
            faults.append(WordFault(number, expected))
    return faults[0] if len(faults) == 1 else None


def line_hashes(values: NDArray[np.integer], axis: int) -> NDArray[np.uint32]:
    """Return a hash of 32 bits for each line of integers along an axis, which disappears."""
    length = values.shape[axis]
    factors = (weights(length) >> np.uint64(31)).astype(np.uint32) | np.uint32(1)
    moved = np.moveaxis(values, axis, -1).astype(np.int32).view(np.uint32)
    sums: NDArray[np.uint32] = (moved * factors).sum(axis=-1, dtype=np.uint32)
    return sums

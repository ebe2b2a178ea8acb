"""Random numbers in place of expressions: equal expressions have equal ones, others do not.

An expression is a value of the input, a constant, a sum of expressions with whole coefficients, or
a function of other expressions that is not looked into. Its fingerprint has LANES numbers modulo
PRIME: sums are computed with those of their terms, functions by a keyed pseudorandom function.
Two different sums are equal in one lane for one of PRIME choices of the terms; see docs/proof.md.
"""

from __future__ import annotations

import secrets

import numpy as np
from numpy.typing import NDArray

Fingerprints = NDArray[np.int64]
"""Integers from 0 to PRIME - 1, the last axis counts the lanes."""
Words = NDArray[np.uint64]

LANES = 4
PRIME = 2**31 - 1
LARGEST_MAGNITUDE = 2**22
"""Of the coefficients of a sum, all together: then float64 holds it exactly."""

_BLOCK = 1 << 15  # values that are mixed at once, so that they stay in the cache
_ROUNDS = 2  # for each word, and twice as many at the end: SipHash-2-4 with 128 bits
_INITIAL = (0x736F6D6570736575, 0x646F72616E646F6D, 0x6C7967656E657261, 0x7465646279746573)


class Mixer:
    """Fingerprints of functions, for a key that is new each time."""

    def __init__(self) -> None:
        self._key = [secrets.randbits(64) for _ in range(2)]
        self._names: dict[object, int] = {}
        self.one = self.of("one", np.zeros(LANES, np.int64))
        """The fingerprint of the constant 1."""

    def of(self, function: object, arguments: Fingerprints) -> Fingerprints:
        """Return the fingerprints of a function, which anything hashable names, of arguments."""
        name = self._names.setdefault(function, len(self._names))
        flat = arguments.reshape(-1, LANES).astype(np.uint64)
        result = np.empty(flat.shape, np.int64)
        for first in range(0, len(flat), _BLOCK):
            part = flat[first : first + _BLOCK]
            words = [part[:, i] << np.uint64(32) | part[:, i + 1] for i in range(0, LANES, 2)]
            for i, word in enumerate(self._mixed([np.full(len(part), name, np.uint64), *words])):
                result[first : first + _BLOCK, 2 * i] = word >> np.uint64(33)
                result[first : first + _BLOCK, 2 * i + 1] = word & np.uint64(PRIME)
        return result.reshape(arguments.shape) % PRIME

    def numbered(self, function: object, *shape: int) -> Fingerprints:
        """Return fingerprints of a function of the numbers 0, 1, ... in this shape."""
        numbers = np.zeros((int(np.prod(shape)), LANES), np.int64)
        numbers[:, 0] = np.arange(len(numbers))
        return self.of(function, numbers).reshape(*shape, LANES)

    def constants(self, values: NDArray[np.integer]) -> Fingerprints:
        """Return the fingerprints of constants."""
        return np.asarray(values.astype(np.int64)[..., None] * self.one % PRIME)

    def _mixed(self, message: list[Words]) -> list[Words]:
        """Return 128 bits for each message of words."""
        state = [
            np.full(len(message[0]), start ^ self._key[i % 2], np.uint64)
            for i, start in enumerate(_INITIAL)
        ]
        state[1] ^= np.uint64(0xEE)
        for word in [*message, np.full(len(message[0]), 8 * len(message) << 56, np.uint64)]:
            state[3] ^= word
            _rounds(state, _ROUNDS)
            state[0] ^= word
        halves = []
        for place, number in ((2, 0xEE), (1, 0xDD)):
            state[place] ^= np.uint64(number)
            _rounds(state, 2 * _ROUNDS)
            halves.append(state[0] ^ state[1] ^ state[2] ^ state[3])
        return halves


def _rounds(state: list[Words], count: int) -> None:
    for _ in range(count):
        for first, second, turn, half in ((0, 1, 13, True), (2, 3, 16, False),
                                          (0, 3, 21, False), (2, 1, 17, True)):  # fmt: skip
            state[first] += state[second]
            state[second] = _turned(state[second], turn) ^ state[first]
            if half:
                state[first] = _turned(state[first], 32)


def _turned(words: Words, count: int) -> Words:
    return words << np.uint64(count) | words >> np.uint64(64 - count)

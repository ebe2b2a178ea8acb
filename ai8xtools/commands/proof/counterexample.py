"""An input for which the accelerator delivers something else than the network."""

from __future__ import annotations

import itertools
import time
from collections.abc import Iterator, Sequence

import numpy as np
from numpy.typing import NDArray

from ai8xtools.commands.proof.comparison import Question
from ai8xtools.values import frozen

Integers = NDArray[np.int64]
_RANDOM, _COARSE, _SECONDS = 64, 4, 20.0
LOWEST, HIGHEST = -128, 127


@frozen
class Counterexample:
    """An input, how it is made with NumPy; a byte of the result, and what it is on both sides."""

    recipe: str
    byte: int
    expected: int
    found: int

    @classmethod
    def of(
        cls, recipe: str, expected: NDArray[np.uint8], found: NDArray[np.uint8]
    ) -> Counterexample | None:
        """Return the first byte that differs, or None."""
        length = min(len(expected), len(found))
        differs = np.flatnonzero(expected[:length] != found[:length])
        if not len(differs):
            return None
        byte = int(differs[0])
        return cls(recipe, byte, int(expected[byte]), int(found[byte]))


def counterexample(question: Question, orders: Sequence[Integers]) -> Counterexample | None:
    """Return an input for which a byte of the result differs, or None if none of those tried is.

    They are tried for a limited time.
    """
    shape, size = question.wanted.network.sample.shape, question.batch.size
    named, end = _inputs(shape), time.monotonic() + _SECONDS
    while time.monotonic() < end and (some := list(itertools.islice(named, size))):
        for (recipe, image), found in zip(some, question.found([i for _, i in some]), strict=True):
            example = Counterexample.of(recipe, question.wanted.result(image, orders), found)
            if example is not None:
                return example
    return None


def _inputs(shape: tuple[int, ...]) -> Iterator[tuple[str, Integers]]:
    """Yield inputs with the NumPy that makes them: extreme and random ones, coarse and fine."""
    channels, rows, columns = shape
    size, plain = f"({channels}, {rows}, {columns})", np.zeros(shape, np.int64)
    for value in (LOWEST, 0, HIGHEST):
        yield f"numpy.full({size}, {value})", plain + value
    coarse = channels, -(-rows // _COARSE), -(-columns // _COARSE)
    for seed in range(_RANDOM):
        made = f"numpy.random.default_rng({seed})"
        ends = f"{made}.choice([{LOWEST}, {HIGHEST}],"

        def drawn(*size: int, seed: int = seed) -> Integers:
            return np.random.default_rng(seed).choice([LOWEST, HIGHEST], size)

        yield f"{ends} {size})", drawn(*shape)
        random = np.random.default_rng(seed).integers(LOWEST, HIGHEST + 1, shape)
        yield f"{made}.integers({LOWEST}, {HIGHEST + 1}, {size})", random
        blocks = drawn(*coarse).repeat(_COARSE, 1).repeat(_COARSE, 2)[:, :rows, :columns]
        repeated = f"repeat({_COARSE}, 1).repeat({_COARSE}, 2)[:, :{rows}, :{columns}]"
        yield f"{ends} {coarse}).{repeated}", blocks
        yield (
            f"{ends} ({channels}, 1, 1)) + numpy.zeros({size}, int)",
            plain + drawn(channels, 1, 1),
        )

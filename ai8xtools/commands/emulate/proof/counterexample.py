"""An input for which the accelerator delivers something else than the network."""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np
from numpy.typing import NDArray

from ai8xtools.commands.emulate.proof.comparison import Comparison, Question
from ai8xtools.values import frozen

Integers = NDArray[np.int64]
_RANDOM = 60
_LOWEST, _HIGHEST = -128, 127


@frozen
class Counterexample:
    """An input [channel, row, column], how it is made again with NumPy, and a byte that differs."""

    image: Integers
    recipe: str
    byte: int
    expected: int
    found: int


def counterexample(question: Question, comparison: Comparison) -> Counterexample | None:
    """Return an input for which a byte of the result differs, or None if none of those tried is."""
    named = list(_inputs(question))
    for first in range(0, len(named), question.batch.size):
        some = named[first : first + question.batch.size]
        for (recipe, image), found in zip(some, question.found([i for _, i in some]), strict=True):
            expected = question.expected(image, comparison.orders)
            length = min(len(expected), len(found))
            differs = np.flatnonzero(expected[:length] != found[:length])
            if len(differs):
                byte = int(differs[0])
                return Counterexample(image, recipe, byte, int(expected[byte]), int(found[byte]))
    return None


def _inputs(question: Question) -> Iterator[tuple[str, Integers]]:
    """Yield inputs with the NumPy that makes them: the sample, extreme and random ones."""
    sample = question.simulation.network.sample
    shape = "(" + ", ".join(map(str, sample.shape)) + ")"
    yield "the sample", sample
    for value in (_LOWEST, 0, _HIGHEST):
        yield f"numpy.full({shape}, {value})", np.full_like(sample, value)
    for seed in range(_RANDOM):
        random = np.random.default_rng(seed)
        made = f"numpy.random.default_rng({seed})"
        if seed % 2:
            yield (f"{made}.integers(-128, 128, {shape})",
                   random.integers(_LOWEST, _HIGHEST + 1, sample.shape))  # fmt: skip
        else:
            yield f"{made}.choice([-128, 127], {shape})", random.choice([-128, 127], sample.shape)

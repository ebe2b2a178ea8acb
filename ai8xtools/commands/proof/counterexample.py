"""An input for which the accelerator delivers something else than the network."""

from __future__ import annotations

import itertools
import time
from collections.abc import Iterator, Sequence
from typing import Protocol

import numpy as np
from numpy.typing import NDArray

from ai8xtools.commands.proof.reference import Expected
from ai8xtools.emulator.errors import StoppedError
from ai8xtools.reading.progress import progress
from ai8xtools.values import frozen

Integers = NDArray[np.int64]
Bytes = NDArray[np.uint8]
_RANDOM, _COARSE, _KEPT, _SECONDS = 32, 4, 12, 20.0
LOWEST, HIGHEST = -128, 127


@frozen
class Counterexample:
    """An input [channel, row, column], and how it is made with NumPy if that is known; a byte of
    the result, and what it is on both sides; `stopped` tells why there is no result.
    """

    image: Integers
    recipe: str
    byte: int
    expected: int
    actual: int
    stopped: str = ""

    @classmethod
    def stopping(cls, image: Integers, recipe: str, reason: str) -> Counterexample:
        """Return that there is no result."""
        return cls(image, recipe, 0, 0, 0, reason)

    @classmethod
    def of(
        cls, image: Integers, recipe: str, expected: Bytes, actual: Bytes
    ) -> Counterexample | None:
        """Return the first byte that differs, or None."""
        length = min(len(expected), len(actual))
        differs = np.flatnonzero(expected[:length] != actual[:length])
        if not len(differs):
            return None
        byte = int(differs[0])
        return cls(image, recipe, byte, int(expected[byte]), int(actual[byte]))


@frozen
class _Trial:
    """An input, and how much the sums of all values of each layer differ, from the last layer on:
    the larger, the closer it is to a result that differs.
    """

    image: Integers
    distance: tuple[int, ...]


class Subject(Protocol):
    """What may compute a network, as `comparison.Question` does."""

    @property
    def reference(self) -> Expected:
        """The network."""

    @property
    def size(self) -> int:
        """How many inputs are computed at once."""

    def run(self, images: Sequence[Integers]) -> tuple[Bytes, list[Integers]]:
        """Return the bytes of the results, and the sums of all values of each layer, if known."""


def counterexample(question: Subject, orders: Sequence[Integers]) -> Counterexample | None:
    """Return an input for which a byte of the result differs, or None if none of those tried is.

    After extreme and random inputs, those with which the difference gets furthest are changed, for
    a limited time of the processor.
    """
    random, size = np.random.default_rng(0), question.size
    named = _inputs(question.reference.sample.shape)
    best: list[_Trial] = []
    for _ in _for_a_while():
        some = list(itertools.islice(named, size))
        if not some:
            some = [("", _changed(best, random)) for _ in range(size)]
        try:
            results, sums = question.run([image for _, image in some])
        except StoppedError as error:  # of a program, which computes one at a time
            recipe, image = some[0]
            return Counterexample.stopping(image, recipe, error.message)
        for number, (recipe, image) in enumerate(some):
            outputs = question.reference.outputs_for(image)
            expected = question.reference.result(outputs, orders)
            example = Counterexample.of(image, recipe, expected, results[number])
            if example is not None:
                return example
            layers = question.reference.inner
            pairs = zip(layers, sums, strict=False)
            distance = [abs(int(outputs[one.index].sum() - other[number])) for one, other in pairs]
            best.append(_Trial(image, tuple(distance[::-1])))
        best = sorted(best, key=lambda trial: trial.distance, reverse=True)[:_KEPT]
    return None


def _for_a_while() -> Iterator[None]:
    """Yield again and again for `_SECONDS` of the processor."""
    begin = last = time.process_time()
    with progress("Searching for an input that differs", _SECONDS) as advance:
        while last < begin + _SECONDS:
            yield
            now = time.process_time()
            advance(now - last)
            last = now


def _changed(trials: Sequence[_Trial], random: np.random.Generator) -> Integers:
    """Return one of the inputs with a part of another one, or with a part that is random."""
    one, two = (trials[int(random.integers(len(trials)))].image for _ in range(2))
    starts = [int(random.integers(n)) for n in one.shape]
    place = tuple(
        slice(start, start + int(random.integers(1, n + 1)))
        for start, n in zip(starts, one.shape, strict=True)
    )
    image, kind = one.copy(), int(random.integers(3))
    if kind == 0:
        image[place] = two[place]
    elif kind == 1:
        image[place] = random.choice([LOWEST, 0, HIGHEST], image[place].shape)
    else:
        image[place] = random.integers(LOWEST, HIGHEST + 1)
    return image


def _inputs(shape: tuple[int, ...]) -> Iterator[tuple[str, Integers]]:
    """Yield inputs with the NumPy that makes them: extreme and random ones, coarse and fine."""
    channels, rows, columns = shape
    size, plain = f"({channels}, {rows}, {columns})", np.zeros(shape, np.int64)
    for value in (LOWEST, 0, HIGHEST):
        yield f"numpy.full({size}, {value})", plain + value
    coarse = channels, -(-rows // _COARSE), -(-columns // _COARSE)
    for seed in range(_RANDOM):
        generator = f"numpy.random.default_rng({seed})"
        ends = f"{generator}.choice([{LOWEST}, {HIGHEST}],"

        def drawn(*size: int, seed: int = seed) -> Integers:
            return np.random.default_rng(seed).choice([LOWEST, HIGHEST], size)

        yield f"{ends} {size})", drawn(*shape)
        random = np.random.default_rng(seed).integers(LOWEST, HIGHEST + 1, shape)
        yield f"{generator}.integers({LOWEST}, {HIGHEST + 1}, {size})", random
        blocks = drawn(*coarse).repeat(_COARSE, 1).repeat(_COARSE, 2)[:, :rows, :columns]
        repeated = f"repeat({_COARSE}, 1).repeat({_COARSE}, 2)[:, :{rows}, :{columns}]"
        yield f"{ends} {coarse}).{repeated}", blocks
        yield (
            f"{ends} ({channels}, 1, 1)) + numpy.zeros({size}, int)",
            plain + drawn(channels, 1, 1),
        )

"""Choosing at random, reproducibly."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TypeVar

from numpy.random import Generator

T = TypeVar("T")


def pick(rng: Generator, options: Sequence[T]) -> T:
    """Return one of the options."""
    return options[int(rng.integers(len(options)))]

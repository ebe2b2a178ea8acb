"""The time of a board, and what its sensors ask of it."""

from __future__ import annotations

from typing import Protocol

NEVER = 0xFFFFFFFF
"""Microseconds until something that does not happen."""
PATIENCE_US = 1000
"""Most time that passes while a program looks at something that is not there yet."""


_ROUNDING = 1e-6


def steps(microseconds: float, step: float) -> int:
    """Return how many steps of so many microseconds are over; rounding keeps none back."""
    return int(microseconds / step + _ROUNDING)


class Board(Protocol):
    """A board as sensors see it."""

    @property
    def now(self) -> float:
        """Microseconds since the start of the program."""

    def pass_time(self, microseconds: float) -> None:
        """Let time pass."""

    def store(self, address: int, data: bytes) -> None:
        """Write into the memory of the core, as DMA does."""

    def news(self) -> None:
        """Something new has come for the program."""

    @property
    def count(self) -> int:
        """How much came from all sensors."""

    def is_over(self, sensor: str) -> None:
        """A program waits for a sensor whose recording is over: it ends."""

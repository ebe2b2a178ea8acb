"""How long the accelerator takes, as measured on boards and published, with the spread.

Source: docs/hardware/execution.md, "Measured times".
"""

from __future__ import annotations

from ai8xtools.values import frozen
from device.chip import Chip

_WORD_CORE_CYCLES = 17.5
_WORD_CYCLES = 6.95
"""Cycles of the Arm core and of the accelerator in which a word is read and stored."""
_UNPIPELINED = (1.0, 0.98, 1.02)
_PIPELINED = (1.18, 1.03, 1.43)
"""Usual, least and largest measured time of an inference, by the estimate of its cycles."""
_CERTAIN = 1.05
"""Ranges below this ratio are not told."""


@frozen
class Estimate:
    """A quantity, and between which of its values measurements lie."""

    value: float = 0.0
    low: float = 0.0
    high: float = 0.0

    @classmethod
    def of(cls, value: float, factors: tuple[float, float, float]) -> Estimate:
        """Scale a value by the usual, the least and the largest factor that were measured."""
        return cls(*(value * factor for factor in factors))

    def __str__(self) -> str:
        """Two digits behind the point; the range unless it is that small."""
        spread = f" ({self.low:.2f} to {self.high:.2f})" if self.high > _CERTAIN * self.low else ""
        return f"{self.value:.2f} ms{spread}"


def word_microseconds(chip: Chip, mhz: float) -> float:
    """Return how long the Arm core takes to copy a word to or from an accelerator of this clock."""
    return _WORD_CORE_CYCLES / chip.core_clock_mhz + _WORD_CYCLES / mhz


def copying(words: int, chip: Chip, mhz: float) -> Estimate:
    """Return the milliseconds in which the Arm core copies words to or from the accelerator."""
    spread = chip.word_time_spread
    return Estimate.of(words * word_microseconds(chip, mhz) / 1000, (1.0, 1 - spread, 1 + spread))


def inference(cycles: int, mhz: float, *, pipelined: bool) -> Estimate:
    """Return the milliseconds of an inference of these estimated cycles."""
    return Estimate.of(cycles / (1000 * mhz), _PIPELINED if pipelined else _UNPIPELINED)

"""How long the accelerator takes, as measured on boards and published, with the spread.

Source: docs/hardware/execution.md, "Measured times".
"""

from __future__ import annotations

from ai8xtools.values.estimate import Estimate
from device.chip import Chip

_WORD_CORE_CYCLES = 17.5
_WORD_CYCLES = 6.95
"""Cycles of the Arm core and of the accelerator in which a word is read and stored."""
_UNPIPELINED = (1.0, 0.98, 1.02)
_PIPELINED = (1.18, 1.03, 1.43)
"""Usual, least and largest measured time of an inference, by the estimate of its cycles."""
MEASURED_SPREAD = 0.05
"""How far what a user measured may be from the next time."""


def word_microseconds(chip: Chip, mhz: float) -> float:
    """Return how long the Arm core takes to copy a word to or from an accelerator of this clock."""
    return _WORD_CORE_CYCLES / chip.core_clock_mhz + _WORD_CYCLES / mhz


def copying(words: int, chip: Chip, mhz: float, measured_ns: float | None = None) -> Estimate:
    """Return the milliseconds in which the Arm core copies words to or from the accelerator."""
    if measured_ns is not None:
        return Estimate.within(words * measured_ns / 1e6, MEASURED_SPREAD)
    spread = chip.word_time_spread
    return Estimate.within(words * word_microseconds(chip, mhz) / 1000, spread)


def inference(
    cycles: int, mhz: float, *, pipelined: bool, measured: float | None = None
) -> Estimate:
    """Return the milliseconds of an inference of these estimated cycles; `measured` is how many
    times as long one took as they say."""
    time = cycles / (1000 * mhz)
    if measured is not None:
        return Estimate.within(time * measured, MEASURED_SPREAD)
    return Estimate.of(time, _PIPELINED if pipelined else _UNPIPELINED)

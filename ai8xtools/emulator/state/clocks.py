"""How fast the accelerator runs, and how long words on their way to it take: estimates.

Other instructions of the program take no time. The core is clocked by its primary oscillator.
Source: docs/hardware/execution.md, "Power and clock"; docs/emulator.md, "Estimated time".
"""

from __future__ import annotations

from collections.abc import Mapping

from device import Chip, times
from device.fields import Field, Register

CLOCK_DIVIDER = 0x40000018
_REGISTER = Register(
    "PCLKDIV",
    0,
    "clock of the accelerator",
    (Field("divider", 14, 3, "divider"), Field("source", 17, 2, "source")),
)
_UNDIVIDED, _PLL = 4, 3


def accelerator_mhz(words: Mapping[int, int], chip: Chip) -> float:
    """Return the clock of the accelerator in MHz from the registers of the microcontroller."""
    fields = _REGISTER.unpack(words.get(CLOCK_DIVIDER, 0))
    divider = fields["divider"]
    divided_by = 1 if divider == _UNDIVIDED else 2 ** (divider + 1)
    pll = chip.pll_clock_mhz if fields["source"] == _PLL else None
    return (pll or chip.apb_clock_mhz) / divided_by


def word_microseconds(chip: Chip) -> float:
    """Return how long a word takes that the core copies, at the usual clock of loading."""
    return times.word_microseconds(chip, chip.max_unpipelined_mhz)

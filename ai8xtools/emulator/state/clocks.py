"""How fast the accelerator runs, and how long words on their way to it take: estimates.

Other instructions of the program take no time.
Source: docs/hardware/execution.md, "Power and clock"; docs/emulator.md, "Estimated time".
"""

from __future__ import annotations

from collections.abc import Mapping

from device import Chip, times
from device.fields import Field, Register

CLOCK_DIVIDER, CLOCK_CONTROL = 0x40000018, 0x40000008
_REGISTER = Register(
    "PCLKDIV",
    0,
    "clock of the accelerator",
    (Field("divider", 14, 3, "divider"), Field("source", 17, 2, "source")),
)
_UNDIVIDED, _ISO, _PLL = 4, 1, 3
_SYSTEM = Register("CLKCTRL", 0, "clock of the core", (Field("source", 9, 3, "oscillator"),))
_ISO_MHZ = 60
_PERIPHERALS_MHZ = {0: _ISO_MHZ / 2, 1: 50.0, 3: 0.015, 5: 3.6864, 6: 0.016384}
"""Half the clock of the core, by its source; the primary oscillator's is a fact of the chip."""


def accelerator_mhz(words: Mapping[int, int], chip: Chip) -> float:
    """Return the clock of the accelerator in MHz from the registers of the microcontroller."""
    fields = _REGISTER.unpack(words.get(CLOCK_DIVIDER, 0))
    divider = fields["divider"]
    divided_by = 1 if divider == _UNDIVIDED else 2 ** (divider + 1)
    if fields["source"] == _PLL and chip.pll_clock_mhz:
        return chip.pll_clock_mhz / divided_by
    if fields["source"] == _ISO:
        return _ISO_MHZ / divided_by
    return core_mhz(words, chip) / 2 / divided_by


def core_mhz(words: Mapping[int, int], chip: Chip) -> float:
    """Return the clock of the core in MHz."""
    core = words.get(CLOCK_CONTROL)  # without a program, the usual one
    source = -1 if core is None else _SYSTEM.unpack(core)["source"]
    return 2 * _PERIPHERALS_MHZ.get(source, chip.apb_clock_mhz)


def word_microseconds(chip: Chip) -> float:
    """Return how long a word takes that the core copies, at the usual clock of loading."""
    return times.word_microseconds(chip, chip.max_unpipelined_mhz)

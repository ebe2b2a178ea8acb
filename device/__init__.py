"""Facts about the chips, as data: sizes, limits, addresses and the register map.

Nothing here computes a network. `Chip` values hold the numbers, `registers` the bit fields, and
`Chip.registers` joins both. No other room states these numbers again.
Source: docs/hardware/chips.md, "Sizes" and "Addresses"; docs/hardware/registers.md, "Layer
registers, field by field"; docs/hardware/memory.md, "Addresses".
"""

from device.chip import Chip, MemoryTest
from device.family import (
    CHIPS,
    UnknownDeviceError,
    chip_named,
    chip_of_die,
    known_chips,
    names_where,
)
from device.max78000 import MAX78000
from device.max78002 import MAX78002
from device.registers import SNOOP_REGISTERS, SNOOP_RESULTS, Field, FieldOverflowError, Register

__all__ = [
    "CHIPS",
    "MAX78000",
    "MAX78002",
    "SNOOP_REGISTERS",
    "SNOOP_RESULTS",
    "Chip",
    "Field",
    "FieldOverflowError",
    "MemoryTest",
    "Register",
    "UnknownDeviceError",
    "chip_named",
    "chip_of_die",
    "known_chips",
    "names_where",
]

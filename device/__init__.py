"""Facts about the chips, as data: sizes, limits, addresses and the register map.

Nothing here computes a network. `Chip` values hold the numbers, `registers` the bit fields, and
`Chip.registers` joins both. Every other room asks here instead of writing a number down again.
Source: spec/registers.md sections 1, 2 and 4, spec/memory.md section 3.1.
"""

from device.chip import CHIPS, MAX78000, MAX78002, Chip, UnknownDeviceError, chip_named
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
    "Register",
    "UnknownDeviceError",
    "chip_named",
]

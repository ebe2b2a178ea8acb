"""The register map of the accelerator: each register once, with its named bit fields.

Types in `device.fields`, declarations in `device.control_registers` and `device.layer_registers`.
"""

from device.control_registers import SNOOP_REGISTERS, SNOOP_RESULTS, control_registers
from device.fields import Field, FieldOverflowError, Register
from device.layer_registers import MAX78000_LAYER_REGISTERS, MAX78002_LAYER_REGISTERS

__all__ = [
    "MAX78000_LAYER_REGISTERS",
    "MAX78002_LAYER_REGISTERS",
    "SNOOP_REGISTERS",
    "SNOOP_RESULTS",
    "Field",
    "FieldOverflowError",
    "Register",
    "control_registers",
]

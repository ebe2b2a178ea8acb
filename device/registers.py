"""The register map of the accelerator: each register once, with its named bit fields.

Types in `device.fields`, declarations in `device.control_registers`, `device.layer_registers`,
`device.snoop_registers` and `device.shared_registers`.
"""

from device.control_registers import CLEARED_REGISTERS, MEMORY_TIMING, control_registers
from device.fields import Field, FieldOverflowError, Register
from device.layer_registers import MAX78000_LAYER_REGISTERS, MAX78002_LAYER_REGISTERS
from device.shared_registers import FAST_FIFO_REGISTERS, SHARED_REGISTERS
from device.snoop_registers import SNOOP_CONDITION, SNOOP_REGISTERS, SNOOP_RESULTS

__all__ = [
    "CLEARED_REGISTERS",
    "FAST_FIFO_REGISTERS",
    "MAX78000_LAYER_REGISTERS",
    "MAX78002_LAYER_REGISTERS",
    "MEMORY_TIMING",
    "SHARED_REGISTERS",
    "SNOOP_CONDITION",
    "SNOOP_REGISTERS",
    "SNOOP_RESULTS",
    "Field",
    "FieldOverflowError",
    "Register",
    "control_registers",
]

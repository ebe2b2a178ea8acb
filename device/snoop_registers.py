"""Registers of conditional execution: units that watch what the network writes (MAX78002).

The conditions were derived from the published examples, with the emulated accelerator; what is not
known is marked as such.
Source: docs/hardware/registers.md, "Lists"; docs/hardware/execution.md, "Start".
"""

from __future__ import annotations

from device.fields import Field, Register, flag

SNOOP_ABOUT = {
    "A1": "Address that is watched, or the first of a range, as WPTR_BASE counts.",
    "A2": "Last address of a range.",
    "D1": "Value that a watched word is compared with, or the first of a range.",
    "D2": "Last value of a range.",
    "X1": "Not known.",
    "X2": "Not known.",
    "C1": "Condition: what is compared and what follows from a match.",
    "C2": "Condition, second word; its bits are not known.",
    "ACC": "Result: sum of the values that matched.",
    "HIT": "Result: number of matches.",
    "MAX": "Result: the largest value that matched.",
    "AM": "Result: the address of that value.",
}
"""What the registers of a unit are for."""

_RAW = Field("value", 0, 32, "raw value", "the whole word, as a list of raw values gives it")
_ADDRESS = (
    Field("pointer", 0, 21, "address as WPTR_BASE counts"),
    flag("writes", 21, "writes are watched"),
)
_CONDITION = (
    flag("enable", 0, "the unit is in use"),
    flag("stop", 1, "a match ends the network"),
    flag("jump", 2, "a match makes the jump of NXTLYR, otherwise there is none"),
    flag("accumulate", 3, "values that match are added up"),
    flag("count", 4, "matches are counted"),
    flag("maximum", 5, "the largest value that matches is kept with its address"),
    Field("compare_address", 12, 4, "2: equal to A1, 5: from A1 to A2"),
    Field("compare_data", 16, 4, "2: equal to D1, 5: from D1 to D2"),
    Field("compare_count", 20, 4, "0: not at all"),
    Field("mode", 24, 4, "not known"),
    Field("unit", 28, 4, "what is compared: 6 the uppermost byte, 8 the whole word"),
)
_FIELDS = {"A1": _ADDRESS, "A2": _ADDRESS, "C1": _CONDITION, "AM": _ADDRESS}

SNOOP_CONDITION = Register("SNPn_C1", 0, "Condition of a snoop unit", _CONDITION)
"""The first condition word of any unit."""
SNOOP_REGISTERS = tuple(f"SNP{unit}_{name}" for unit in (1, 2) for name in SNOOP_ABOUT)
"""Registers of conditional execution, in the order of the description's `snoop` list."""
SNOOP_RESULTS = tuple(
    f"SNP{unit}_{name}" for unit in (1, 2) for name in ("ACC", "HIT", "MAX", "AM")
)
"""Those that hold results; the rest of the `snoop` list gives the values expected there."""

SNOOP_LOOP_CONDITION = {
    "jump": 1, "count": 1, "compare_address": 2, "compare_data": 1, "compare_count": 4,
    "mode": 10, "unit": 8,
}  # fmt: skip
"""Fields of C1 with which a network starts again when its result is written; then `enable`."""
SNOOP_LOOP_C2 = 0x4000
"""C2 that belongs to it; the meaning is not known."""
SNOOP_LOOP_X1, SNOOP_LOOP_X1_WITHOUT_PIPELINE = 0x84D0, 0x2134
"""X1 that belongs to it; the meaning is not known."""


def snoop_registers(first: int) -> dict[str, Register]:
    """Return the registers by name; `first` is the number of the first one."""
    registers = {}
    for i, name in enumerate(SNOOP_REGISTERS):
        own = name.partition("_")[2]
        fields = (_RAW, *_FIELDS.get(own, ()))
        registers[name] = Register(name, first + i, f"Snoop {name}", fields, SNOOP_ABOUT[own])
    return registers

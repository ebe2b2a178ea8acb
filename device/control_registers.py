"""Registers of a group of processors, and those of conditional execution.

Source: spec/registers.md sections 2.1 and 5.1.
"""

from __future__ import annotations

from device.fields import Field, Register, flag

# Numbers that differ between the chips are filled in below.
_CONTROL_FIELDS = (
    flag("enable", 0, "run; in the master group: start"),
    Field("ready_select", 1, 2, "memory wait states"),
    flag("clock_enable", 3, "clock of the group"),
    flag("external_ready", 4, "external ready signal"),
    flag("pipeline_off", 5, "MAX78002: no pipeline"),
    flag("stream_chw", 6, "MAX78002: the start layer streams planar data"),
    flag("snoop", 7, "snoop registers in use"),
    flag("one_shot", 8, "stop after each layer"),
    Field("master", 9, 2, "group that synchronizes the others"),
    flag("external_sync", 11, "synchronized by another group"),
    flag("done", 12, "interrupt: the network has finished"),
    flag("average_rounding", 13, "average pooling rounds to nearest"),
    flag("streaming", 14, "some layer streams"),
    flag("fifo", 15, "input comes from the FIFO"),
    flag("mlator", 16, "byte transposing read port"),
    Field("mlator_lane", 17, 2, "byte lane of the transposing read port"),
    flag("fifo_streaming", 19, "FIFO input with streaming layers"),
    flag("express", 20, "packed kernel writes"),
    flag("simple_1bit", 21, "1-bit weights are combined by XOR"),
    flag("fast_fifo", 22, "the fast FIFO feeds this group"),
    flag("fast_fifo_group", 23, "fast FIFO group mode"),
    flag("binary", 30, "1-bit weights mean -1 and +1"),
    flag("fifo_quad", 31, "one FIFO word for all groups"),
)

_LAYER_COUNT_FIELDS = (
    Field("last", 0, 8, "last hardware layer"),
    Field("first", 8, 8, "first hardware layer"),
)


SNOOP_REGISTERS = tuple(
    f"SNP{unit}_{name}"
    for unit in (1, 2)
    for name in ("A1", "A2", "D1", "D2", "X1", "X2", "C1", "C2", "ACC", "HIT", "MAX", "AM")
)
"""Registers of conditional execution, in the order of the description's `snoop` list."""
SNOOP_RESULTS = tuple(
    f"SNP{unit}_{name}" for unit in (1, 2) for name in ("ACC", "HIT", "MAX", "AM")
)
"""Those that hold results; the rest of the `snoop` list gives the values expected there."""


def control_registers(
    frame_size_number: int, mlator_number: int, snoop_number: int | None = None
) -> dict[str, Register]:
    """Return the group control registers by name; some numbers differ between the chips."""
    registers = (
        Register("CTL", 0, "Control", _CONTROL_FIELDS),
        Register("SRAM", 1, "SRAM control", (Field("value", 0, 32, "timing of the memories"),)),
        Register("LCNT_MAX", 2, "Layer count", _LAYER_COUNT_FIELDS),
        Register("SRAM_TEST", 3, "Memory test", (Field("value", 0, 32, "self test"),)),
        Register(
            "IFRM", frame_size_number, "Input frame size", (Field("size", 0, 22, "FIFO words"),)
        ),
        Register("MLAT", mlator_number, "Transposing read port", (Field("value", 0, 32, "bytes"),)),
    )
    found = {r.name: r for r in registers}
    if snoop_number is not None:
        for i, name in enumerate(SNOOP_REGISTERS):
            fields = (Field("value", 0, 32, "raw value"),)
            found[name] = Register(name, snoop_number + i, f"Snoop {name}", fields)
    return found

"""Registers of a group of processors, and those of conditional execution.

Source: spec/registers.md sections 2.1 and 5.1.
"""

from __future__ import annotations

from device.fields import Field, Register, flag

_CONTROL_FIELDS = (
    flag(
        "enable",
        0,
        "run; in the master group: start",
        "at the start 1 in every used group, in the master group last: that write starts the "
        "network. Cleared by the interrupt handler",
    ),
    Field("ready_select", 1, 2, "memory wait states", "0"),
    flag("clock_enable", 3, "clock of the group", "always 1"),
    flag("external_ready", 4, "external ready signal", "0"),
    flag(
        "pipeline_off",
        5,
        "MAX78002: no pipeline",
        "MAX78002: 1 to run without the pipeline, which limits the clock to 50 MHz. MAX78000: 0",
    ),
    flag(
        "stream_chw",
        6,
        "MAX78002: the start layer streams planar data",
        "MAX78002: 1 if the first layer streams and its input is CHW. MAX78000: 0",
    ),
    flag("snoop", 7, "snoop registers in use", "MAX78002: 1 with conditional execution"),
    flag("one_shot", 8, "stop after each layer", "MAX78002: 1 to stop after each layer"),
    Field(
        "master",
        9,
        2,
        "group that synchronizes the others",
        "the lowest used group; 0 in the word that starts the network",
    ),
    flag(
        "external_sync",
        11,
        "synchronized by another group",
        "1 when the groups are enabled; in the word that starts the network only with FIFO input",
    ),
    flag(
        "done",
        12,
        "interrupt: the network has finished",
        "set by the hardware; cleared by the interrupt handler",
    ),
    flag(
        "average_rounding",
        13,
        "average pooling rounds to nearest",
        "1 for rounding, 0 for truncation toward zero",
    ),
    flag("streaming", 14, "some layer streams", "cleared by the interrupt handler"),
    flag("fifo", 15, "input comes from the FIFO"),
    flag("mlator", 16, "byte transposing read port", "1 while MLAT is read, else 0"),
    Field("mlator_lane", 17, 2, "byte lane of the transposing read port", "0 to 3"),
    flag("fifo_streaming", 19, "FIFO input with streaming layers"),
    flag(
        "express",
        20,
        "packed kernel writes",
        "1 if kernels are loaded packed; from the initialization on",
    ),
    flag("simple_1bit", 21, "1-bit weights are combined by XOR", "0"),
    flag("fast_fifo", 22, "the fast FIFO feeds this group"),
    flag(
        "fast_fifo_group",
        23,
        "fast FIFO group mode",
        "fast FIFO: 1 if the input is on processor 0 alone or on any of processors 1 to 3",
    ),
    flag("binary", 30, "1-bit weights mean -1 and +1", "MAX78002"),
    flag("fifo_quad", 31, "one FIFO word for all groups", "fast FIFO in quad mode"),
)

_CONTROL = (
    "Mode, start and end of a group. The same mode bits are written to every used group; see "
    "[Start](execution.md#start) for the order."
)
_LAYER_COUNT = "Layers at which execution begins and ends."
_MEMORY_TEST = (
    "Starts the built-in self test of a memory, which also fills the memory with zeros; see "
    "[Memory tests](execution.md#memory-tests)."
)
_TRANSPOSER = (
    "Each read gives the next four pixels of one channel, first pixel in the low byte; see "
    "[Unloading](execution.md#unloading)."
)

_LAYER_COUNT_FIELDS = (
    Field("last", 0, 8, "last hardware layer"),
    Field("first", 8, 8, "first hardware layer", "MAX78000: 0"),
)

SNOOP_ABOUT = {
    "A1": "Address that is watched, or the first of a range, as WPTR_BASE counts; bit 21 means "
    "writes.",
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
SNOOP_REGISTERS = tuple(f"SNP{unit}_{name}" for unit in (1, 2) for name in SNOOP_ABOUT)
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
        Register("CTL", 0, "Control", _CONTROL_FIELDS, _CONTROL),
        Register(
            "SRAM",
            1,
            "SRAM control",
            (Field("value", 0, 32, "timing of the memories", "always 0x40E"),),
            "Timing of the memories. The meaning of its bits is not known.",
        ),
        Register("LCNT_MAX", 2, "Layer count", _LAYER_COUNT_FIELDS, _LAYER_COUNT),
        Register(
            "SRAM_TEST", 3, "Memory test", (Field("value", 0, 32, "self test"),), _MEMORY_TEST
        ),
        Register(
            "IFRM",
            frame_size_number,
            "Input frame size",
            (Field("size", 0, 22, "FIFO words", "rows x columns; CHW: divided by 4, rounded up"),),
            "Words that each FIFO delivers for one input. Written with the registers of the first "
            "layer, for FIFO input only.",
        ),
        Register(
            "MLAT",
            mlator_number,
            "Transposing read port",
            (Field("value", 0, 32, "bytes", "read only"),),
            _TRANSPOSER,
        ),
    )
    found = {r.name: r for r in registers}
    if snoop_number is not None:
        for i, name in enumerate(SNOOP_REGISTERS):
            fields = (Field("value", 0, 32, "raw value"),)
            about = SNOOP_ABOUT[name.partition("_")[2]]
            found[name] = Register(name, snoop_number + i, f"Snoop {name}", fields, about)
    return found

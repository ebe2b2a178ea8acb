"""Registers of a group of processors.

Source: docs/hardware/registers.md, "Lists" and "Control registers, field by field".
"""

from __future__ import annotations

from device.fields import Field, Register, flag
from device.snoop_registers import snoop_registers

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

_MEMORY_TEST_FIELDS = (
    Field("value", 0, 32, "the whole word"),
    flag("test_data", 0, "test and clear the data memory"),
    flag("test_kernels", 2, "test and clear the kernel memory"),
    flag("test_line_buffers", 4, "test and clear the line buffers"),
    flag("test_biases", 6, "test and clear the bias memory"),
    flag("clear_registers", 7, "MAX78002: clear the layer registers"),
    flag("with_biases", 10, "MAX78002: the bias memory takes part"),
    Field(
        "memories",
        11,
        3,
        "MAX78002: what takes part",
        "data memory 2, kernel memory 4, line buffers 6, bias memory and registers 3",
    ),
    flag("cleared", 25, "MAX78002: the registers are clear", "read only"),
)
MEMORY_TIMING = 0x40E
"""The only value of SRAM that is in use; the meaning of its bits is not known."""
CLEARED_REGISTERS = 3
"""MAX78002: `memories` of SRAM_TEST for clearing the registers."""

_LAYER_COUNT_FIELDS = (
    Field("last", 0, 8, "last hardware layer"),
    Field("first", 8, 8, "first hardware layer", "MAX78000: 0"),
)


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
            (Field("value", 0, 32, "timing of the memories", f"always 0x{MEMORY_TIMING:X}"),),
            "Timing of the memories. The meaning of its bits is not known.",
        ),
        Register("LCNT_MAX", 2, "Layer count", _LAYER_COUNT_FIELDS, _LAYER_COUNT),
        Register("SRAM_TEST", 3, "Memory test", _MEMORY_TEST_FIELDS, _MEMORY_TEST),
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
    by_name = {r.name: r for r in registers}
    if snoop_number is not None:
        by_name |= snoop_registers(snoop_number)
    return by_name

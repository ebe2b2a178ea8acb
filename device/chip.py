"""The chips: sizes, limits and address arithmetic of the accelerator.

Source: spec/registers.md sections 1 and 2, spec/memory.md sections 1.8 and 3.1, spec/sdk-stubs.md
4.3 (flash and SRAM of the core).
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

from device.registers import (
    MAX78000_LAYER_REGISTERS,
    MAX78002_LAYER_REGISTERS,
    Register,
    control_registers,
)

GROUPS = 4
PROCESSORS_PER_GROUP = 16
PROCESSORS = GROUPS * PROCESSORS_PER_GROUP
PROCESSORS_PER_INSTANCE = 4
KERNEL_COLUMN_BYTES = 9
KERNEL_COLUMN_STRIDE_BYTES = 16
MEMORY_PART_COLUMNS = 1024
"""MAX78002: columns of each of the four ordinary parts of a processor's kernel memory."""
PART_BYTES = 0x4000
"""MAX78002: parts of a data memory instance that can be accessed at the same time."""
BIAS_UNIT = 128
FLASH_BASE = 0x10000000
SRAM_BASE = 0x20000000
DEFAULT_APB_BASE = 0x50000000
ACCELERATOR_BYTES = 0x6000000
"""Addresses from the APB base that belong to the accelerator."""
ACCELERATOR_ALIGNMENT = 0x1000
HIGHEST_APB_BASE = (1 << 32) - ACCELERATOR_BYTES
AON_CONTROL = 0x1000
FIFO_CONTROL, FIFO_STATUS, FIFO_DATA = 0x0, 0x4, 0x8
"""Standard FIFO block: byte offsets from the APB base; data registers follow each other."""
FIFOS = 4
FAST_FIFO_CONTROL = 0x400C0400
FAST_FIFO_STATUS = 0x400C0404
FAST_FIFO_INTERRUPT = 0x400C0408
FAST_FIFO_DATA = 0x400C0410
"""Fast FIFO: absolute addresses."""
FAST_FIFO_FULL = 2
POWER_CONTROL = 0x40005800
POWER_REGISTERS = 4
"""Power and isolation of the accelerator: absolute address of GCFR reg0, reg1 to reg3 follow."""
FIFO_LANES = 4
"""Each FIFO feeds the first processors of one group."""
STREAM_REGISTERS = ("STREAM1", "STREAM2", "FMAX")


@dataclass(frozen=True, slots=True)
class Chip:
    """One member of the family. Offsets are bytes from the APB base unless their name says more."""

    name: str
    die: int
    flash_bytes: int
    """Of the core, from FLASH_BASE on."""
    sram_bytes: int
    """Of the core, from SRAM_BASE on."""
    cnn_offset: int
    group_stride: int
    layer_registers_offset: int
    layer_register_stride: int
    layer_stride: int
    stream_layer_stride: int
    bias_offset: int
    bias_bytes: int
    tram_offset: int
    tram_stride: int
    tram_words: int
    kernel_offset: int
    kernel_stride: int
    kernel_columns: int
    kernel_columns_first: int
    data_offset: int
    instance_stride: int
    instance_bytes: int
    instance_words: int
    data_parts: int
    """Parts of a data memory instance; their size is PART_BYTES if there are several."""
    out_offset_limit: int
    write_pointer_shift: int
    max_layers: int
    max_start_layer: int
    max_dimension: int
    max_channels: int
    max_streaming_layers: int
    max_pool_dilation: int
    max_pool: int
    max_pool_stride: int
    max_frame_words: int
    passthrough_pool_passes: int
    apb_clock_mhz: int
    pll_clock_mhz: int | None
    max_unpipelined_mhz: int
    clock_dividers: tuple[int, ...]
    default_switch_delay_ms: int
    layer_registers: Mapping[str, Register]
    control_registers: Mapping[str, Register]

    # What a chip can do
    has_depthwise: bool
    has_binary_weights: bool
    has_next_layer: bool
    """Jumps between layers."""
    has_extended_modes: bool
    """Kernel bypass, reading ahead, four outputs at a time, one-shot, snooping, FIFO go."""
    has_read_gap: bool
    counts_by_step: bool
    """Registers count the steps of a row instead of its padded length."""
    streams_by_line: bool
    """Streams are set up by the line of the layer itself, not by the window of the one before."""
    pads_last_stream: bool
    """A stream ends with rows of padding, which the last streaming layer must have."""
    streams_passthrough: bool
    skips_stream_bias: bool
    """The first layer skips one bias byte when it streams."""
    places_flatten_bias_first: bool
    pads_series_of_passes: bool
    combines_with_bias: bool
    """Operands can be combined in front of a convolution with bias."""
    combines_passes_as_rows: bool
    """Combining many passes is done by taking them for more rows, which nothing can follow."""
    has_pipeline: bool
    clears_registers: bool
    estimates_latency: bool
    needs_average_reset: bool
    synchronizes_fifo: bool

    def group(self, group: int) -> int:
        """Byte offset of a group's block of registers and memories."""
        return group * self.group_stride + self.cnn_offset

    def control_address(self, group: int, register: str) -> int:
        """Byte offset of a group control register."""
        return self.group(group) + 4 * self.control_registers[register].number

    def layer_address(self, group: int, layer: int, register: str) -> int:
        """Byte offset of a per-layer register; `layer` counts hardware layers."""
        stride = self.stream_layer_stride if register in STREAM_REGISTERS else self.layer_stride
        return (
            self.group(group)
            + self.layer_registers_offset
            + self.layer_registers[register].number * self.layer_register_stride
            + layer * stride
        )

    def bias_address(self, group: int, index: int = 0) -> int:
        """Byte offset of a bias; one bias byte stands in each 32-bit word."""
        return self.group(group) + self.bias_offset + 4 * index

    def tram_address(self, processor: int) -> int:
        """Byte offset of the line buffer of a processor (0 to 63)."""
        group, unit = divmod(processor, PROCESSORS_PER_GROUP)
        return self.group(group) + self.tram_offset + unit * self.tram_stride

    def kernel_address(self, processor: int, column: int = 0) -> int:
        """Byte offset of a 9-byte kernel column of a processor (0 to 63)."""
        group, unit = divmod(processor, PROCESSORS_PER_GROUP)
        return (
            self.group(group)
            + self.kernel_offset
            + unit * self.kernel_stride
            + column * KERNEL_COLUMN_STRIDE_BYTES
        )

    def kernel_capacity(self, processor: int) -> int:
        """Kernel columns of a processor; on MAX78002 the first of each group has more."""
        first = processor % PROCESSORS_PER_GROUP == 0
        return self.kernel_columns_first if first else self.kernel_columns

    def data_address(self, instance: int, offset: int = 0) -> int:
        """Byte offset of a data memory byte; `instance` counts 0 to 15 over all groups."""
        group, quad = divmod(instance, PROCESSORS_PER_GROUP // PROCESSORS_PER_INSTANCE)
        return self.group(group) + self.data_offset + quad * self.instance_stride + offset

    @property
    def kernel_bytes(self) -> int:
        """Size of all kernel memories together."""
        return KERNEL_COLUMN_BYTES * sum(map(self.kernel_capacity, range(PROCESSORS)))


MAX78000 = Chip(
    name="MAX78000",
    die=85,
    flash_bytes=0x80000,
    sram_bytes=0x20000,
    cnn_offset=0x100000,
    group_stride=0x400000,
    layer_registers_offset=0x10,
    layer_register_stride=0x80,
    layer_stride=4,
    stream_layer_stride=4,
    bias_offset=0x8000,
    bias_bytes=512,
    tram_offset=0x10000,
    tram_stride=4096 * 4,
    tram_words=3072,
    kernel_offset=0x80000,
    kernel_stride=0x4000,
    kernel_columns=768,
    kernel_columns_first=768,
    data_offset=0x300000,
    instance_stride=0x8000,
    instance_bytes=0x8000,
    instance_words=2048,
    data_parts=1,
    out_offset_limit=0x20000,
    write_pointer_shift=13,
    max_layers=32,
    max_start_layer=0,
    max_dimension=1024,
    max_channels=1024,
    max_streaming_layers=8,
    max_pool_dilation=1,
    max_pool=16,
    max_pool_stride=16,
    max_frame_words=1 << 21,
    passthrough_pool_passes=1,
    apb_clock_mhz=50,
    pll_clock_mhz=None,
    max_unpipelined_mhz=50,
    clock_dividers=(1, 2, 4, 8, 16),
    default_switch_delay_ms=0,
    layer_registers=MAX78000_LAYER_REGISTERS,
    control_registers=control_registers(frame_size_number=612, mlator_number=1024),
    has_depthwise=False,
    has_binary_weights=False,
    has_next_layer=False,
    has_extended_modes=False,
    has_read_gap=False,
    counts_by_step=False,
    streams_by_line=False,
    pads_last_stream=True,
    streams_passthrough=True,
    skips_stream_bias=True,
    places_flatten_bias_first=True,
    pads_series_of_passes=True,
    combines_with_bias=True,
    combines_passes_as_rows=True,
    has_pipeline=False,
    clears_registers=False,
    estimates_latency=True,
    needs_average_reset=False,
    synchronizes_fifo=True,
)

MAX78002 = Chip(
    name="MAX78002",
    die=87,
    flash_bytes=0x280000,
    sram_bytes=0x60000,
    cnn_offset=0x1000000,
    group_stride=0x1000000,
    layer_registers_offset=0x100000,
    layer_register_stride=4,
    layer_stride=0x100,
    stream_layer_stride=4,
    bias_offset=0x180000,
    bias_bytes=2048,
    tram_offset=0x200000,
    tram_stride=16384 * 4,
    tram_words=12288,
    kernel_offset=0x400000,
    kernel_stride=0x20000,
    kernel_columns=4096,
    kernel_columns_first=5120,
    data_offset=0x800000,
    instance_stride=0x20000,
    instance_bytes=0x14000,
    instance_words=8192,
    data_parts=5,
    out_offset_limit=0x50000,
    write_pointer_shift=15,
    max_layers=128,
    max_start_layer=127,
    max_dimension=2048,
    max_channels=1024,
    max_streaming_layers=8,
    max_pool_dilation=16,
    max_pool=16,
    max_pool_stride=16,
    max_frame_words=1 << 21,
    passthrough_pool_passes=65536,
    apb_clock_mhz=60,
    pll_clock_mhz=200,
    max_unpipelined_mhz=50,
    clock_dividers=(1, 2, 4, 8, 16),
    default_switch_delay_ms=10,
    layer_registers=MAX78002_LAYER_REGISTERS,
    control_registers=control_registers(
        frame_size_number=0x42018, mlator_number=0x44000, snoop_number=0x42020
    ),
    has_depthwise=True,
    has_binary_weights=True,
    has_next_layer=True,
    has_extended_modes=True,
    has_read_gap=True,
    counts_by_step=True,
    streams_by_line=True,
    pads_last_stream=False,
    streams_passthrough=False,
    skips_stream_bias=False,
    places_flatten_bias_first=False,
    pads_series_of_passes=False,
    combines_with_bias=False,
    combines_passes_as_rows=False,
    has_pipeline=True,
    clears_registers=True,
    estimates_latency=False,
    needs_average_reset=True,
    synchronizes_fifo=False,
)

CHIPS = (MAX78000, MAX78002)


class UnknownDeviceError(ValueError):
    """No chip has the name that was given."""


def chip_named(name: str) -> Chip:
    """Return the chip of a name such as MAX78000, 78000, AI85 or 85, in any case.

    Raises UnknownDeviceError, whose text lists what is accepted.
    """
    text = name.lower().removeprefix("max").removeprefix("ai")
    for chip in CHIPS:
        if text in (str(chip.die), chip.name.removeprefix("MAX")):
            return chip
    accepted = ", ".join(f"{c.name} (or {c.die})" for c in CHIPS)
    raise UnknownDeviceError(f"{name!r} is not a supported device; choose {accepted}")

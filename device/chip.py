"""What a chip is: sizes, limits and address arithmetic of the accelerator.

Source: docs/hardware/chips.md, "Sizes" and "Addresses"; docs/hardware/memory.md, "Writing kernels"
and "Addresses"; docs/emulator.md, "The core and its peripherals".
"""

from __future__ import annotations

from collections.abc import Mapping

from ai8xtools.values import frozen
from device.registers import SHARED_REGISTERS, Register

GROUPS = 4
PROCESSORS_PER_GROUP = 16
PROCESSORS = GROUPS * PROCESSORS_PER_GROUP
PROCESSORS_PER_INSTANCE = 4
INSTANCES = PROCESSORS // PROCESSORS_PER_INSTANCE
INSTANCES_PER_GROUP = PROCESSORS_PER_GROUP // PROCESSORS_PER_INSTANCE
KERNEL_COLUMN_BYTES = 9
KERNEL_COLUMN_STRIDE_BYTES = 16
MOST_PRODUCTS = PROCESSORS * KERNEL_COLUMN_BYTES
"""Multiplications in a cycle, with a 3x3 kernel of 8 bits in every processor."""
BIAS_UNIT = 128
FLATTEN_LONG = 16
"""From this many passes on, a flattened layer counts them in two registers."""
FLASH_BASE = 0x10000000
SRAM_BASE = 0x20000000
DEFAULT_APB_BASE = 0x50000000
ACCELERATOR_BYTES = 0x6000000
"""Addresses from the APB base that belong to the accelerator."""
ACCELERATOR_ALIGNMENT = 0x1000
HIGHEST_APB_BASE = (1 << 32) - ACCELERATOR_BYTES
AON_CONTROL = 4 * SHARED_REGISTERS["AON_CTL"].number
FIFO_CONTROL = 4 * SHARED_REGISTERS["FIFO_CTL"].number
FIFO_STATUS = 4 * SHARED_REGISTERS["FIFO_STAT"].number
FIFO_DATA = 8
"""Standard FIFO block: byte offsets from the APB base; data registers follow each other."""
FIFOS = 4
FAST_FIFO_CONTROL = 0x400C0400
FAST_FIFO_STATUS = 0x400C0404
FAST_FIFO_INTERRUPT = 0x400C0408
FAST_FIFO_DATA = 0x400C0410
"""Fast FIFO: absolute addresses."""
POWER_CONTROL = 0x40005800
POWER_REGISTERS = 4
"""Power and isolation of the accelerator: absolute address of GCFR reg0, reg1 to reg3 follow."""
FIFO_LANES = 4
"""Each FIFO feeds the first processors of one group."""
STREAM_REGISTERS = ("STREAM1", "STREAM2", "FMAX")


WORD_BYTES = 4
_FLASH_LINE_BYTES = 16
_FLASH_INFORMATION_BYTES = 0x4000
"""Information block for data of the manufacturer, in addition to the program flash."""


@frozen
class MemoryTest:
    """A built-in self test of one kind of memory, which also clears it: words of SRAM_TEST."""

    memory: str
    start: int
    done: int
    """Bits that must all be set when it has ended."""
    failed: int
    """Any of these bits means an error."""


@frozen
class Chip:
    """One chip of the family. Offsets are in bytes from the APB base unless stated otherwise."""

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
    """Columns of the first processor of each group, which may have more than other processors."""
    kernel_parts: int
    """Parts of a processor's kernel memory that are read at the same time.

    The ordinary columns are divided evenly among them; so are the further ones of the first
    processor of a group, in parts after those.
    """
    data_offset: int
    instance_stride: int
    instance_bytes: int
    data_parts: int
    """Parts of a data memory instance that can be accessed at the same time."""
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
    word_time_spread: float
    """How far the time of a word that the core copies may be from the estimate."""
    energy_spread: float
    word_energy_spread: float
    """How far the energy of an inference and of a word may be from the estimate."""
    energy_is_published: bool
    """By supply and mode of sleep; else the constants of another chip serve."""
    memory_tests: tuple[MemoryTest, ...]
    """Self tests that fill the memories with zeros, in the order in which they run."""
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
    marks_planar_streams: bool
    """The mode says whether the first layer streams planar data (field stream_chw)."""
    streams_passthrough: bool
    skips_stream_bias: bool
    """The first layer skips one bias byte when it streams."""
    places_flatten_bias_first: bool
    pads_series_of_passes: bool
    combines_with_bias: bool
    """Operands can be combined in front of a convolution with bias."""
    combines_passes_as_rows: bool
    """Many passes are combined as additional rows; no further operation can follow."""
    has_pipeline: bool
    clears_registers: bool
    estimates_latency: bool
    needs_average_reset: bool
    synchronizes_fifo: bool
    has_trigger_pins: bool
    """The power monitor of the vendor's boards is triggered by pins instead of LEDs."""
    has_renamed_registers: bool
    """The RTL model has the SDK's newer names for clock, power and camera registers."""

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

    @property
    def core_clock_mhz(self) -> int:
        """Clock of the Arm core from its primary oscillator."""
        return 2 * self.apb_clock_mhz

    @property
    def kernel_part_columns(self) -> int:
        """Columns of each ordinary part of a kernel memory."""
        return self.kernel_columns // self.kernel_parts

    @property
    def kernel_further_part_columns(self) -> int:
        """Columns of each part that only the first processor of a group has; 0: there are none."""
        return (self.kernel_columns_first - self.kernel_columns) // self.kernel_parts

    def kernel_part(self, column: int) -> tuple[int, int]:
        """Return the part of a kernel memory that holds a column, and the place in that part."""
        if column < self.kernel_columns:
            return divmod(column, self.kernel_part_columns)
        part, place = divmod(column - self.kernel_columns, self.kernel_further_part_columns)
        return self.kernel_parts + part, place

    def kernel_column(self, part: int, place: int) -> int:
        """Return the column at a place of a part; the inverse of `kernel_part`."""
        if part < self.kernel_parts:
            return part * self.kernel_part_columns + place
        further = (part - self.kernel_parts) * self.kernel_further_part_columns
        return self.kernel_columns + further + place

    def express_address(self, address: int) -> int:
        """Return where the loader of packed kernels stores a column of this address.

        The distance from the processor's first column is divided by four.
        """
        low = self.kernel_stride - 1
        return address & ~low | (address & low) >> 2

    def column_address(self, express_address: int) -> int:
        """Return the address of a column from that of its packed form."""
        low = self.kernel_stride - 1
        return express_address & ~low | (express_address & low) << 2

    @property
    def write_pointer_shift(self) -> int:
        """Lowest bit of the instance in write pointers, which count words of the address space."""
        return (self.instance_stride // WORD_BYTES).bit_length() - 1

    @property
    def processor_words(self) -> int:
        """Words between the data of neighbouring processors of an instance in write pointers."""
        return self.instance_stride // WORD_BYTES // PROCESSORS_PER_INSTANCE

    @property
    def out_offset_limit(self) -> int:
        """Bytes of the data memories of a group; outputs begin below."""
        return self.instance_bytes * PROCESSORS_PER_GROUP // PROCESSORS_PER_INSTANCE

    def write_pointer(self, instance: int, word: int = 0) -> int:
        """Return a word of a data memory instance as write pointers and their distances count."""
        return word | instance << self.write_pointer_shift

    @property
    def write_pointer_words(self) -> int:
        """Words that a write pointer counts for each data memory instance."""
        return 1 << self.write_pointer_shift

    def kernel_capacity(self, processor: int) -> int:
        """Kernel columns of a processor; on MAX78002 the first of each group has more."""
        first = processor % PROCESSORS_PER_GROUP == 0
        return self.kernel_columns_first if first else self.kernel_columns

    def data_address(self, instance: int, offset: int = 0) -> int:
        """Byte offset of a data memory byte; `instance` counts 0 to 15 over all groups."""
        group, quad = divmod(instance, PROCESSORS_PER_GROUP // PROCESSORS_PER_INSTANCE)
        return self.group(group) + self.data_offset + quad * self.instance_stride + offset

    @property
    def data_part_bytes(self) -> int:
        """Size of the parts of a data memory instance."""
        return self.instance_bytes // self.data_parts

    @property
    def flash_lines(self) -> int:
        """Lines of 128 bits in a model of the flash memory, information block included."""
        return (self.flash_bytes + _FLASH_INFORMATION_BYTES) // _FLASH_LINE_BYTES

    @property
    def kernel_bytes(self) -> int:
        """Size of all kernel memories together."""
        return KERNEL_COLUMN_BYTES * sum(map(self.kernel_capacity, range(PROCESSORS)))

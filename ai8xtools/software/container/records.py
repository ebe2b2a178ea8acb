"""The records of a container: header, tensors and layers, as stored in the file.

All numbers are little-endian. Source: docs/container.md, "The file".
"""

from __future__ import annotations

import enum
import struct
from typing import assert_never

from ai8xtools.values import frozen

MAGIC = b"NNB1"
MAJOR, MINOR = 1, 0
MINOR_OF_PROGRAMS = 1
"""Of files with layers that have programs."""
ALIGNMENT = 16
HEADER_BYTES, TENSOR_BYTES, LAYER_BYTES, VECTORS_BYTES = 64, 32, 64, 16
BODY_CRC_AT, HEADER_CRC_AT, NONCE_AT = 0x10, 0x14, 0x34
NONE = 0xFFFF
"""No tensor."""
LISTED = 0x8000
"""In place of the second input: the inputs stand in the input list."""
NOT_RESIDENT = 0xFFFFFFFF
ROUNDED = 0x80
"""Of an activation: averages are rounded."""

HEADER = struct.Struct("<4sHH11I12s")
TENSOR = struct.Struct("<BBbB4H3I2HI")
LAYER = struct.Struct("<4B5H8BHbbHi4H4I8s")
VECTORS = struct.Struct("<4I")


class Flag(enum.IntFlag):
    """Flags for what a container has besides tables and data."""

    ENCRYPTED = 1
    PLAN = 2
    PACKED = 4
    VECTORS = 8


class Element(enum.IntEnum):
    """The type of a tensor's values."""

    INT8 = 0
    INT16 = 1
    INT32 = 2
    PACKED = 3

    @property
    def bits(self) -> int:
        """Bits of a value; 0 for packed ones, which have their own."""
        return (8, 16, 32, 0)[self]

    @property
    def dtype(self) -> str:
        """The numpy type of stored values."""
        return f"<i{self.bits // 8}"


class Order(enum.IntEnum):
    """The order of a tensor's values; weights are OHWI (filter, row, column, channel) or rows."""

    HWC = 0
    CHW = 1
    OHWI = 2
    ROWS = 3


@frozen
class Sums:
    """Sums of a convolution; `full`: of all values, `transposed`: its pixels are apart."""

    full: bool = False
    transposed: bool = False


class Op(enum.IntEnum):
    """What a layer computes."""

    CONV = 0
    DEPTHWISE = 1
    FC = 2
    MAXPOOL = 3
    AVGPOOL = 4
    ADD = 5
    CONCAT = 6
    CONV_TRANSPOSED = 7
    SOFTMAX = 8
    COPY = 9
    SUB = 10
    XOR = 11
    OR = 12
    ELEMENTS = 13
    GATHER = 14

    @property
    def sums(self) -> Sums | None:
        """Which sums of products with weights it computes, if any."""
        match self:
            case Op.CONV | Op.DEPTHWISE:
                return Sums()
            case Op.FC:
                return Sums(full=True)
            case Op.CONV_TRANSPOSED:
                return Sums(transposed=True)
            case Op.MAXPOOL | Op.AVGPOOL | Op.SOFTMAX | Op.COPY | Op.CONCAT:
                return None
            case Op.ADD | Op.SUB | Op.XOR | Op.OR:
                return None
            case Op.ELEMENTS | Op.GATHER:
                return None
            case _:
                assert_never(self)

    @property
    def minor(self) -> int:
        """The minor version from which on files have it."""
        match self:
            case Op.ELEMENTS | Op.GATHER:
                return MINOR_OF_PROGRAMS
            case Op.CONV | Op.DEPTHWISE | Op.FC | Op.CONV_TRANSPOSED | Op.MAXPOOL | Op.AVGPOOL:
                return MINOR
            case Op.ADD | Op.SUB | Op.XOR | Op.OR | Op.CONCAT | Op.SOFTMAX | Op.COPY:
                return MINOR
            case _:
                assert_never(self)


class Follow(enum.IntEnum):
    """The operation on the values of a layer before they are stored."""

    NOTHING = 0
    RELU = 1
    ABS = 2
    SHIFT_NORM = 3


@frozen
class Header:
    """The first 64 bytes: offsets and sizes in bytes from the start of the file."""

    magic: bytes
    major: int
    minor: int
    total: int
    flags: int
    body_crc: int
    header_crc: int
    tensors: int
    layers: int
    tensor_table: int
    layer_table: int
    data: int
    data_bytes: int
    arena_bytes: int
    nonce: bytes


@frozen
class Tensor:
    """A tensor: activations have no `data`, constants (weights, biases) have.

    `fraction` counts the bits behind the point. Weights: `count` filters of `rows` x `columns`
    kernels with `channels` inputs. `arena` is a place in the arena or NOT_RESIDENT; `first` and
    `last` are the layers that use it.
    """

    type: int
    order: int
    fraction: int
    encoding: int
    rows: int
    columns: int
    channels: int
    count: int
    data: int
    size_bytes: int
    arena: int
    first: int
    last: int
    reserved: int = 0

    @property
    def shape(self) -> tuple[int, int, int]:
        """Rows, columns and channels."""
        return self.rows, self.columns, self.channels

    @property
    def element(self) -> Element:
        """The type of its values."""
        return Element(self.type)

    @property
    def packed(self) -> bool:
        """Whether values are packed."""
        return not self.element.bits

    @property
    def narrow(self) -> bool:
        """Whether values have 8 or 16 bits."""
        return 0 < self.element.bits < 32

    @property
    def elements(self) -> int:
        """Number of values."""
        return self.count * self.rows * self.columns * self.channels


@frozen
class LayerRecord:
    """A layer: tensors by number, geometry, and the shifts of its arithmetic."""

    op: int
    activation: int
    scheme: int
    kernel_id: int
    first_input: int
    second_input: int
    output: int
    weights: int
    bias: int
    kernel_rows: int
    kernel_columns: int
    stride_rows: int
    stride_columns: int
    pad_rows: int
    pad_columns: int
    dilation_rows: int
    dilation_columns: int
    groups: int
    bias_shift: int
    out_shift: int
    segment: int
    factor: int
    tile_rows: int = 0
    tile_columns: int = 0
    channel_group: int = 0
    reserved: int = 0
    ring: int = 0
    ring_bytes: int = 0
    staging: int = 0
    staging_bytes: int = 0
    rest: bytes = bytes(8)

    @property
    def follow(self) -> int:
        """The activation without its upper bit."""
        return self.activation & ~ROUNDED

    @property
    def sums(self) -> Sums | None:
        """Which sums of products with weights it computes, if any."""
        return Op(self.op).sums

    @property
    def kernel(self) -> tuple[int, int]:
        """Rows and columns of the kernel or window."""
        return self.kernel_rows, self.kernel_columns

    @property
    def stride(self) -> tuple[int, int]:
        """Rows and columns between windows; of a transposed convolution, between pixels."""
        return self.stride_rows, self.stride_columns

    @property
    def pad(self) -> tuple[int, int]:
        """Rows and columns of zeros around the input."""
        return self.pad_rows, self.pad_columns

    @property
    def dilation(self) -> tuple[int, int]:
        """Rows and columns from tap to tap."""
        return self.dilation_rows, self.dilation_columns

    @property
    def constants(self) -> tuple[int, ...]:
        """Weights and bias, as far as there are any."""
        return tuple(number for number in (self.weights, self.bias) if number != NONE)


@frozen
class Vectors:
    """Test vectors: inputs and their outputs, as bytes."""

    inputs: tuple[bytes, ...]
    outputs: tuple[bytes, ...]


@frozen
class Container:
    """A whole file, taken apart. `data` is the data section as stored, encrypted or not."""

    header: Header
    tensors: tuple[Tensor, ...]
    layers: tuple[LayerRecord, ...]
    listed: tuple[int, ...]
    data: bytes
    vectors: Vectors | None

    @property
    def encrypted(self) -> bool:
        """Whether the data section is encrypted."""
        return bool(self.header.flags & Flag.ENCRYPTED)

    def inputs_of(self, layer: LayerRecord) -> tuple[int, ...]:
        """Return the tensors that a layer reads, in order."""
        return inputs_of(layer, self.listed)

    def constant(self, tensor: Tensor) -> bytes:
        """Return the stored bytes of a constant."""
        start = tensor.data - self.header.data
        return self.data[start : start + tensor.size_bytes]


def inputs_of(layer: LayerRecord, listed: tuple[int, ...]) -> tuple[int, ...]:
    """Return the tensors that a layer reads; the list must be long enough."""
    if layer.second_input != NONE and layer.second_input & LISTED:
        return listed[layer.first_input :][: layer.second_input & ~LISTED]
    both = (layer.first_input, layer.second_input)
    return tuple(number for number in both if number != NONE)


def aligned(size: int, to: int = ALIGNMENT) -> int:
    """Round a size up."""
    return -(-size // to) * to

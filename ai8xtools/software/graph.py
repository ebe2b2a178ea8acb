"""What a microcontroller computes, step by step: tensors of pixels and the operations on them.

A tensor is rows x columns x channels, channel fastest (HWC). One-dimensional data has one column.
A graph knows neither memory nor C.
"""

from __future__ import annotations

import enum
from typing import TypeAlias, assert_never

import numpy as np
from numpy.typing import NDArray

from ai8xtools.diagnostics import Place
from ai8xtools.synthesis.network import Combination
from ai8xtools.values import frozen

Int8 = NDArray[np.int8]
Int64 = NDArray[np.int64]
Size = tuple[int, int]


@frozen
class Interval:
    """Least and greatest value of each channel: int64 [channel]."""

    low: Int64
    high: Int64

    @property
    def unsigned(self) -> bool:
        """Whether no value is negative."""
        return bool(self.low.min() >= 0)


@frozen
class Tensor:
    """Values that exist between steps; `bytes_per_value` is 1 or 4. `name` is for people."""

    index: int
    name: str
    rows: int
    columns: int
    channels: int
    bytes_per_value: int = 1

    @property
    def row_bytes(self) -> int:
        """Bytes of a row."""
        return self.columns * self.channels * self.bytes_per_value

    @property
    def size_bytes(self) -> int:
        """Bytes of all rows."""
        return self.rows * self.row_bytes

    @property
    def pixels(self) -> int:
        """Number of pixels."""
        return self.rows * self.columns


class PoolKind(enum.StrEnum):
    """The reduction of the values of a window."""

    MAX = "max"
    AVERAGE = "average"
    ROUNDED = "average, rounded"

    @property
    def averages(self) -> bool:
        """Whether values are summed, not compared."""
        match self:
            case PoolKind.MAX:
                return False
            case PoolKind.AVERAGE | PoolKind.ROUNDED:
                return True
            case _:
                assert_never(self)

    @property
    def rounds(self) -> bool:
        """Whether averages are rounded, not cut."""
        match self:
            case PoolKind.MAX | PoolKind.AVERAGE:
                return False
            case PoolKind.ROUNDED:
                return True
            case _:
                assert_never(self)


@frozen(kw_only=True)
class _Step:
    """What makes the tensor `target`; `layer` is the one of the network that it is for."""

    target: int
    layer: int
    name: str


@frozen(kw_only=True)
class _Sliding(_Step):
    """Windows that slide over a tensor. Pairs are (rows, columns)."""

    source: int
    channels: int
    in_size: Size
    out_size: Size
    window: Size
    stride: Size
    dilation: Size = (1, 1)


@frozen(kw_only=True)
class Pool(_Sliding):
    """Pooling; window 1x1 keeps every stride-th pixel."""

    kind: PoolKind


@frozen(kw_only=True)
class Convolution(_Step):
    """A convolution, or with one pixel a fully connected layer, with what follows its sums.

    `weights` are int8 [filter, channel of the group, kernel row, kernel column]; a transposed
    convolution has pixels `spread` apart (rows, columns) with zeros between them. Windows are
    `stride` apart. `start` is int64 [filter]: what
    a sum begins with, the bias and half of the last place kept. Sums are shifted `right` (negative:
    left), made positive if `absolute`, and limited to `low` to 127; `wide` ones stay as they are,
    unless `limited`. `input` is what the input channels can be, `output` the output channels. With
    `pool` the target holds the pooled results, and `out_size` counts those before pooling.
    """

    source: int
    place: Place
    weights: Int8
    start: Int64
    groups: int = 1
    in_size: Size
    out_size: Size
    pad: Size = (0, 0)
    dilation: int = 1
    stride: Size = (1, 1)
    spread: Size = (1, 1)
    right: int = 7
    low: int = -128
    absolute: bool = False
    wide: bool = False
    limited: bool = False
    weight_bits: int = 8
    input: Interval
    output: Interval
    pool: Pool | None = None

    @property
    def filters(self) -> int:
        """Output channels."""
        return int(self.weights.shape[0])

    @property
    def channels(self) -> int:
        """Input channels."""
        return int(self.weights.shape[1]) * self.groups

    @property
    def kernel(self) -> Size:
        """Rows and columns of the kernel."""
        return int(self.weights.shape[2]), int(self.weights.shape[3])

    @property
    def depthwise(self) -> bool:
        """Whether every channel has one filter of its own."""
        return self.groups > 1 and self.weights.shape[1] == 1 and self.filters == self.groups

    @property
    def transposed(self) -> bool:
        """Whether there are zeros between the pixels."""
        return self.spread != (1, 1)

    @property
    def linear(self) -> bool:
        """Whether there is one pixel, and all of it is used."""
        return self.kernel == (1, 1) and self.out_size == (1, 1) and self.groups == 1

    @property
    def macs(self) -> int:
        """Products of weights and data that the sums have, those with padding included."""
        return int(self.weights.size) * self.out_size[0] * self.out_size[1]


@frozen(kw_only=True)
class Combine(_Step):
    """Operands of the same shape, combined from left to right and clipped once."""

    sources: tuple[int, ...]
    channels: int
    size: Size
    join: Combination


@frozen
class Piece:
    """`count` runs of `length` bytes that are copied; places and distances in bytes."""

    source: int
    from_start: int
    from_step: int
    to_start: int
    to_step: int
    length: int
    count: int


@frozen(kw_only=True)
class Copy(_Step):
    """Pieces of tensors that become one tensor: concatenation, cropping, parts of channels.

    `by_rows`: row y of the target needs row y of the sources only, and each piece has one run for
    each pixel. What no piece fills becomes `fill`, if that is not None.
    """

    sources: tuple[int, ...]
    pieces: tuple[Piece, ...]
    by_rows: bool = False
    fill: int | None = None


class Arithmetic(enum.StrEnum):
    """An operation on two integers; FLOOR is the floor of their quotient."""

    ADD = "+"
    MUL = "*"
    MAX = "max"
    MIN = "min"
    FLOOR = "/"


@frozen
class Load:
    """An element of a source, by its number among the step's."""

    operand: int


@frozen
class Number:
    """Constants [row, column, channel]; axes of size 1 are broadcast."""

    values: Int64


@frozen
class Look:
    """What a table [256] has for a value of 8 bits; that of -1 stands last."""

    data: Element
    table: Int64


@frozen
class Root:
    """The greatest integer that is at most the square root of one of 0 or more."""

    data: Element


@frozen
class Pair:
    """An operation on two expressions; the second of FLOOR is above 0."""

    op: Arithmetic
    a: Element
    b: Element


Element: TypeAlias = Load | Number | Look | Root | Pair


@frozen(kw_only=True)
class Elements(_Step):
    """An expression of each element of `size` pixels.

    Sources are read in `shapes` [row, column, channel], of which axes of size 1 are broadcast.
    `bits` are those that its widest part needs: up to 32, or 64.
    """

    sources: tuple[int, ...]
    channels: int
    size: Size
    shapes: tuple[tuple[int, int, int], ...]
    element: Element
    bits: int

    @property
    def broadcasts(self) -> bool:
        """Whether a source has fewer elements."""
        return any(shape != (*self.size, self.channels) for shape in self.shapes)


@frozen(kw_only=True)
class Windows(_Sliding):
    """The maxima, or `sums`, of windows, by channel; what lies outside of the data does not count.

    `element` is what is computed of that one, the operand 0, before it is stored.
    """

    sums: bool
    pad: Size
    element: Element
    bits: int


@frozen(kw_only=True)
class Roll(_Step):
    """A buffer that is kept between runs moves: its oldest `dropped` bytes go, zeros follow."""

    dropped: int


@frozen(kw_only=True)
class Insert(_Step):
    """The newest bytes of a buffer that is kept between runs become those of a tensor."""

    source: int


Step = Convolution | Pool | Combine | Elements | Windows | Copy | Roll | Insert


@frozen(slots=False, kw_only=True)
class StepGraph:
    """Steps in an order in which they can be executed.

    `input` is the sample's tensor; `outputs` are delivered one after the other; `kept` exists from
    one run to the next and is zero at first. Tensors are listed by their index.
    """

    name: str
    tensors: tuple[Tensor, ...]
    steps: tuple[Step, ...]
    input: int
    outputs: tuple[int, ...]
    kept: int | None = None

    @property
    def macs(self) -> int:
        """Products of weights and data."""
        return sum(step.macs for step in self.steps if isinstance(step, Convolution))


def sources_of(step: Step) -> tuple[int, ...]:
    """Return the tensors that a step reads."""
    match step:
        case Convolution() | Pool() | Windows() | Insert():
            return (step.source,)
        case Combine() | Elements() | Copy():
            return step.sources
        case Roll():
            return (step.target,)

"""A layer as its registers describe it.

Source: docs/hardware/registers.md, "Layer registers, field by field".
"""

from __future__ import annotations

from enum import Enum
from typing import assert_never

from ai8xtools.emulator.bits import numbers_in
from ai8xtools.values import frozen
from device.chip import PROCESSORS_PER_GROUP

WIDE_WORDS = 4  # words of a pixel and instance with 32-bit output

Pair = tuple[int, int]


class LayerKind(Enum):
    """What a layer does with its channels."""

    CONVOLUTION = "convolution"
    DEPTHWISE = "depth-wise convolution"
    PASSTHROUGH = "pass-through"

    @property
    def has_kernels(self) -> bool:
        """Whether values are multiplied with kernels, scaled and activated."""
        match self:
            case LayerKind.CONVOLUTION | LayerKind.DEPTHWISE:
                return True
            case LayerKind.PASSTHROUGH:
                return False
            case _:
                assert_never(self)

    @property
    def sums_channels(self) -> bool:
        """Whether every output is a sum over all channels; else each channel is an output."""
        match self:
            case LayerKind.CONVOLUTION:
                return True
            case LayerKind.DEPTHWISE | LayerKind.PASSTHROUGH:
                return False
            case _:
                assert_never(self)


class ElementwiseOperation(Enum):
    """How several operands become one; the values are the register's."""

    SUB = 0
    ADD = 1
    OR = 2
    XOR = 3


class ActivationFunction(Enum):
    """What happens to a value before it is written; the values are for people."""

    NONE = "none"
    RELU = "ReLU"
    ABS = "Abs"


@frozen
class Input:
    """What a layer reads and what happens before the operator. Pairs are (rows, columns).

    `size` is the input before pooling, `pooled` after it (or after sub-sampling by `stride`).
    `passes` counts groups of up to 64 channels, or all pixels of a flattened image. `read_word` is
    the first word in each data memory instance, `read_gap` the words left out between pixels.
    """

    size: Pair
    pooled: Pair
    pad: Pair
    pooling: bool
    max_pool: bool
    pool: Pair
    pool_dilation: Pair
    stride: int
    operands: int
    operation: ElementwiseOperation
    pool_first: bool
    passes: int
    chw: bool
    read_word: int
    read_gap: int


@frozen
class Kernels:
    """Where a layer's kernels are: `start` in bytes of every processor's kernel stream.

    `first` is the kernel address in the register's unit (eighths of an 8-bit kernel), `count` the
    number of kernels of each processor, `shape` (rows, columns).
    """

    shape: Pair
    bits: int
    first: int
    start: int
    count: int
    bypass: bool
    four_at_once: bool


@frozen
class WritePointer:
    """Where output starts: data memory instance (0 to 15) and word."""

    instance: int
    word: int


@frozen
class Output:
    """What happens after the operator, and where results go.

    `slots` are the outputs of one pass, counted from lane 0 of the first data memory instance.
    `bias_offsets` and `pointers` have one entry for each group; a group without bias has None.
    """

    slots: int
    passes: int
    gap: int
    wide: bool
    shift: int
    activation: ActivationFunction
    bias_offsets: tuple[int | None, ...]
    pointers: tuple[WritePointer, ...]

    @property
    def step(self) -> int:
        """Words between two output passes of a pixel."""
        return (WIDE_WORDS if self.wide else 1) * (self.gap + 1)


@frozen
class LayerConfig:
    """One hardware layer as its registers say.

    `base_group` is the group whose registers describe it. `enabled` and `with_kernels` are 16-bit
    masks of the processors of each group. `stream_start` and `ring_words` are not zero for layers
    that stream. `next_layer` is None after the last.
    """

    layer: int
    kind: LayerKind
    base_group: int
    enabled: tuple[int, ...]
    with_kernels: tuple[int, ...]
    broadcast: bool
    transposed: bool
    conv1d: bool
    input: Input
    kernels: Kernels
    output: Output
    stream_start: int
    ring_words: int
    next_layer: int | None

    @property
    def processors(self) -> tuple[int, ...]:
        """Numbers (0 to 63) of the processors that take part, ascending."""
        return tuple(
            group * PROCESSORS_PER_GROUP + unit
            for group, mask in enumerate(self.enabled)
            for unit in numbers_in(mask)
        )

    @property
    def groups(self) -> tuple[int, ...]:
        """Groups that have a processor of the layer."""
        return tuple(group for group, mask in enumerate(self.enabled) if mask)

    @property
    def used_groups(self) -> tuple[int, ...]:
        """Groups whose registers have an effect: the base group, those with processors or bias."""
        biased = (g for g, offset in enumerate(self.output.bias_offsets) if offset is not None)
        return tuple(sorted({self.base_group, *self.groups, *biased}))

    @property
    def writes_by_group(self) -> bool:
        """Whether each group writes to a place of its own; else the base group writes for all."""
        return not (self.kind.sums_channels or self.broadcast)

    @property
    def start(self) -> WritePointer:
        """Where the outputs begin that the base group writes."""
        return self.output.pointers[self.base_group]

    @property
    def output_size(self) -> Pair:
        """Rows and columns of the output."""
        if not self.kind.has_kernels:
            return self.input.pooled
        stretch = 2 if self.transposed else 1
        rows, columns = (
            stretch * length + 2 * pad - kernel + 1
            for length, pad, kernel in zip(
                self.input.pooled, self.input.pad, self.kernels.shape, strict=True
            )
        )
        return rows, columns

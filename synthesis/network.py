"""The resolved network: layers with operator, shapes, weights and shifts; nothing is defaulted.

`resolve` builds these values; `check`, `place`, `simulate` and `encode` read them. Each layer keeps
the positions of its keys in the description, so that any later complaint can name the line.
Source: spec/registers.md section 3, spec/network-description.md sections 1.3 and 1.4.
"""

from __future__ import annotations

import enum
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from functools import cached_property
from typing import Literal

import numpy as np
from numpy.typing import NDArray

from device import Chip
from device.chip import GROUPS, PROCESSORS, PROCESSORS_PER_GROUP
from diagnostics import NO_EFFECTS, Diagnostic, Effects, Place, Severity
from synthesis.network_validation import validate_network

Tensor = NDArray[np.int64]
Size = tuple[int, int]

MAX_TAPS = 9
"""A one-dimensional kernel has at most this many taps, zeros between spread ones included."""
NETWORK_INPUT = -1
"""In `Layer.sources`: the sample instead of a layer's output."""
DATA_BUFFER = -2
"""In `Layer.sources`: the rolling buffer."""


class Operator(enum.StrEnum):
    """What a layer computes after pooling and element-wise combination."""

    NONE = "passthrough"
    CONV1D = "conv1d"
    CONV2D = "conv2d"
    CONVTRANSPOSE2D = "convtranspose2d"
    LINEAR = "linear"


class Combination(enum.StrEnum):
    """How several operands become one."""

    ADD = "add"
    SUB = "sub"
    OR = "or"
    XOR = "xor"


class Activation(enum.StrEnum):
    """What follows the output shift."""

    RELU = "ReLU"
    ABS = "Abs"


class InputPort(enum.StrEnum):
    """How the sample reaches the first layer."""

    MEMORY = "memory"
    FIFO = "fifo"
    FAST_FIFO = "fast fifo"
    FAST_FIFO_QUAD = "fast fifo, all groups"

    @property
    def is_fifo(self) -> bool:
        """Whether words are pushed while the network runs."""
        return self is not InputPort.MEMORY

    @property
    def is_fast(self) -> bool:
        """Whether the fast FIFO is used."""
        return self in (InputPort.FAST_FIFO, InputPort.FAST_FIFO_QUAD)


def bits(mask: int) -> tuple[int, ...]:
    """Return the numbers of the bits that are set, ascending."""
    return tuple(i for i in range(mask.bit_length()) if mask >> i & 1)


def lowest_bit(mask: int) -> int:
    """Return the number of the lowest set bit; the mask is not zero."""
    return (mask & -mask).bit_length() - 1


def group_slice(mask: int, group: int) -> int:
    """Return the 16 bits of a processor mask that belong to a group."""
    return mask >> PROCESSORS_PER_GROUP * group & (1 << PROCESSORS_PER_GROUP) - 1


def passes(channels: int) -> int:
    """Return in how many passes of at most 64 channels they are handled."""
    return -(-channels // PROCESSORS)


def channels_per_pass(channels: int) -> int:
    """Return the channels of one pass: equal shares, a multiple of 4 when there are several."""
    share = -(-channels // passes(channels))
    return min((share + 3) // 4 * 4, PROCESSORS) if channels > PROCESSORS else share


@dataclass(frozen=True, slots=True)
class Progression:
    """Input words made from few: the first `words` repeat, each time `step` more, cut by `mask`."""

    words: int
    step: int
    mask: int


@dataclass(frozen=True, slots=True)
class Pooling:
    """Pooling in front of the operator; window 1×1 is none, a stride alone only decimates.

    All pairs are (rows, columns).
    """

    window: Size = (1, 1)
    stride: Size = (1, 1)
    dilation: Size = (1, 1)
    average: bool = False

    @property
    def active(self) -> bool:
        """Whether there is a window (a stride may act without one)."""
        return self.window != (1, 1)

    @property
    def reduces(self) -> bool:
        """Whether a window or a stride does something."""
        return self.active or self.stride != (1, 1)


@dataclass(frozen=True, slots=True)
class Hardware:
    """The layer as the hardware runs it; differs from the description where it is emulated.

    `weights` is int8 [output channel, input channel of the group, row, column], None without.
    `surplus_words` are written behind, `leading_bytes` in front of the valid output.
    """

    operator: Operator
    kernel: Size
    pad: Size
    in_dim: Size
    pooled_dim: Size
    out_dim: Size
    weights: NDArray[np.int8] | None
    surplus_words: int = 0
    leading_bytes: int = 0


@dataclass(frozen=True)
class Layer:
    """One layer, fully determined.

    `in_channels` counts before flattening; sizes are (rows, columns); one-dimensional data has one
    column. `weight_bits` is 8, 4, 2, 1, -1 for binary and 0 without weights; `shift` includes the
    implicit part. `weights` is int8 [out, in/groups, rows, columns] as the operator uses them (a
    transposed convolution flipped), `bias` int64 in units of 128. `widened`: its 1x1 kernel is run
    as 3x3.
    """

    index: int
    name: str | None
    place: Place
    places: Mapping[str, Place] = field(repr=False)
    operator: Operator
    combination: Combination | None
    operands: int
    pool_first: bool
    processors: int
    output_processors: int
    in_offset: int
    out_offset: int
    in_channels: int
    out_channels: int
    in_dim: Size
    in_crop: Size
    pooling: Pooling
    pooled_dim: Size
    kernel: Size
    pad: Size
    stride: int
    dilation: int
    output_pad: int
    out_dim: Size
    activation: Activation | None
    weight_bits: int
    shift: int
    output_width: Literal[8, 32]
    groups: int
    flatten: bool
    channels_first: bool
    streaming: bool
    bypass: bool
    calcx4: bool
    read_ahead: bool
    tcalc: bool
    write_gap: int
    read_gap: int
    bias_groups: tuple[int, ...] | None
    is_output: bool
    sources: tuple[int, ...] | None
    next_layer: int | None
    snoop_layer: int | None
    buffer_shift: int
    buffer_insert: int
    weights: NDArray[np.int8] | None = field(repr=False)
    bias: Tensor | None = field(repr=False)
    hardware: Hardware = field(repr=False)
    channel_skip: int = 0
    widened: bool = False

    def __str__(self) -> str:
        return f"layer {self.index}" + (f" ({self.name})" if self.name else "")

    def place_of(self, *keys: str) -> Place:
        """Position of the first of these keys that the description has, else of the layer."""
        return next((self.places[k] for k in keys if k in self.places), self.place)

    def without(self, key: str) -> str:
        """Say how to do without a key, or without the option that stands in its place."""
        option = self.place_of(key).option
        return f"leave out {option}" if option else f"remove '{key}'"

    def diagnostic(
        self,
        code: str,
        message: str,
        keys: str | tuple[str, ...] = (),
        remedy: str | None = None,
        severity: Severity = Severity.ERROR,
        effects: Effects = NO_EFFECTS,
    ) -> Diagnostic:
        """Return a diagnostic about this layer at the position of one of its keys."""
        keys = (keys,) if isinstance(keys, str) else keys
        place = self.place_of(*keys)
        return Diagnostic(code, f"{self}: {message}", place, remedy, severity, effects)

    @property
    def has_weights(self) -> bool:
        """Whether the operator multiplies by weights."""
        return self.operator is not Operator.NONE

    @property
    def depthwise(self) -> bool:
        """Whether every channel is convolved for itself."""
        return self.groups > 1

    @property
    def broadcast(self) -> bool:
        """Depth-wise with outputs on the processors of the inputs: no data changes its place."""
        return self.depthwise and self.processors == self.output_processors

    @property
    def in_passes(self) -> int:
        """Input passes of at most 64 channels."""
        return passes(self.in_channels)

    @property
    def in_share(self) -> int:
        """Input channels of one pass."""
        return channels_per_pass(self.in_channels)

    @property
    def out_passes(self) -> int:
        """Output passes of at most 64 channels."""
        return passes(self.out_channels)

    @property
    def out_share(self) -> int:
        """Output channels of one pass."""
        return channels_per_pass(self.out_channels)

    @property
    def flat_channels(self) -> int:
        """Input channels of the operator: after flattening, if it does."""
        rows, columns = self.pooled_dim
        return self.in_channels * rows * columns if self.flatten else self.in_channels

    @property
    def flat_passes(self) -> int:
        """Passes of a flattened layer less one (one for each pixel and pass), else 0."""
        rows, columns = self.pooled_dim
        return self.in_passes * rows * columns - 1 if self.flatten else 0

    @property
    def output_words_per_value(self) -> int:
        """Data words that one output lane takes: 1 for 8-bit, 4 for 32-bit outputs."""
        return self.output_width // 8


@dataclass(frozen=True, slots=True)
class DataBuffer:
    """A rolling buffer: `entries` x `width` values of `channels` channels, zero at first."""

    name: str
    channels: int
    entries: int
    width: int


@dataclass(frozen=True, slots=True)
class Delivery:
    """Data that `cnn_unload` copies instead of the output layers'."""

    processors: int
    channels: int
    dim: Size
    offset: int
    width: Literal[8, 32]
    write_gap: int


@dataclass(frozen=True)
class Network:
    """A network on a chip, ready to be checked, placed, simulated and encoded.

    `layers` are all layers that are configured, in the order of the description; `order` lists the
    indices of those that are executed, `simulated` of those that the known answer is made from.
    `sample` is int64 [channel, row, column]. `allow_streaming` permits streaming from memory;
    `file_has_bias` also counts layers of the file that are not executed; `snoop` holds the raw
    registers of conditional execution; `deliveries` replace the output layers in `cnn_unload`;
    `reshapes_inputs` lets a layer read some of its sources' channels, from `channel_skip` on;
    `progression` tells how the words of the sample follow from the first ones, `input_parts` in
    how many parts of rows it is loaded, `places` where global keys stand.
    """

    chip: Chip
    arch: str
    place: Place
    layers: tuple[Layer, ...]
    order: tuple[int, ...]
    simulated: tuple[int, ...]
    sample: Tensor
    sample_file: str
    input_port: InputPort = InputPort.MEMORY
    allow_streaming: bool = False
    file_has_bias: bool = False
    has_output_map: bool = False
    snoop: tuple[int, ...] | None = None
    buffer: DataBuffer | None = None
    deliveries: tuple[Delivery, ...] = ()
    progression: Progression | None = None
    input_parts: int = 1
    reshapes_inputs: bool = False
    places: Mapping[str, Place] = field(default_factory=dict, repr=False)

    def validate(self) -> None:
        """Raise InvariantError where this network, which has been checked, contradicts itself."""
        validate_network(self)

    def layer(self, index: int) -> Layer:
        """Return the layer of an index; the first configured layer need not be number 0."""
        return self.layers[index - self.layers[0].index]

    def following(self, layer: Layer) -> Layer | None:
        """Return the layer configured behind this one."""
        position = layer.index + 1 - self.layers[0].index
        return self.layers[position] if position < len(self.layers) else None

    @property
    def input_processors(self) -> int:
        """Processors that receive the sample: those of group 0 if all groups share it."""
        if self.input_port is InputPort.FAST_FIFO_QUAD:
            return group_slice(self.first.processors, 0)
        return self.first.processors

    @property
    def input_part_distance(self) -> int:
        """How far the parts of a split input stand apart, in bytes.

        A part holds its rows and those around it that the padding of the first layer covers.
        """
        rows = self.first.in_dim[0] // self.input_parts + 2 * self.first.pad[0]
        unit = self.chip.instance_words
        return -(-rows * self.first.in_dim[1] // unit) * unit

    @property
    def streams(self) -> bool:
        """Whether some layer works on rows as they arrive."""
        return any(layer.streaming for layer in self.layers)

    @property
    def first(self) -> Layer:
        """The layer that is executed first."""
        return self.layer(self.order[0])

    @property
    def final(self) -> Layer:
        """The layer that is executed last."""
        return self.layer(self.order[-1])

    def executed(self) -> Iterator[Layer]:
        """The executed layers in execution order."""
        return (self.layer(i) for i in self.order)

    @property
    def terminating(self) -> Layer:
        """The layer whose output is the result of the simulation."""
        return self.layer(self.simulated[-1])

    def predecessor(self, layer: Layer) -> Layer | None:
        """The layer executed before this one; configured before it if it is never executed."""
        if layer.index not in self.order:
            return self.layer(layer.index - 1)
        position = self.order.index(layer.index)
        return self.layer(self.order[position - 1]) if position else None

    @cached_property
    def groups_used(self) -> tuple[int, ...]:
        """Groups in which a layer or the final output has a processor, ascending."""
        used = self.final.output_processors
        for layer in self.layers:
            used |= layer.processors
        return tuple(g for g in range(GROUPS) if group_slice(used, g))

    def outputs(self) -> tuple[Layer, ...]:
        """Layers whose output is checked and delivered, ascending."""
        marked = tuple(layer for layer in self.layers if layer.is_output)
        return marked or (self.terminating,)

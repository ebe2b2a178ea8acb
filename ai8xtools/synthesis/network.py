"""The resolved network, mathematics only: operators, shapes, weights, shifts and their order.

Where and how an accelerator does this is in `synthesis.layout`. Each layer keeps the positions of
its keys in the description, so that any later complaint can name the line.
Source: docs/hardware/execution.md, "Quantities of a layer"; docs/network-description.md, "Keys of a
layer" and "What follows from other keys".
"""

from __future__ import annotations

import enum
from collections.abc import Iterator, Mapping
from dataclasses import field
from typing import Generic, Literal, TypeVar, assert_never

import numpy as np
from numpy.typing import NDArray

from ai8xtools.diagnostics import NO_EFFECTS, Diagnostic, Effects, Place, Severity
from ai8xtools.values import frozen

_NOWHERE = Place()

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

    @property
    def weighted(self) -> bool:
        """Whether it multiplies by weights."""
        match self:
            case Operator.NONE:
                return False
            case Operator.CONV1D | Operator.CONV2D | Operator.CONVTRANSPOSE2D | Operator.LINEAR:
                return True
            case _:
                assert_never(self)

    @property
    def dimensions(self) -> int:
        """Dimensions in which a kernel moves over the data."""
        match self:
            case Operator.NONE | Operator.LINEAR:
                return 0
            case Operator.CONV1D:
                return 1
            case Operator.CONV2D | Operator.CONVTRANSPOSE2D:
                return 2
            case _:
                assert_never(self)

    @property
    def transposed(self) -> bool:
        """Whether the image is spread before a kernel moves over it."""
        match self:
            case Operator.CONVTRANSPOSE2D:
                return True
            case Operator.NONE | Operator.CONV1D | Operator.CONV2D | Operator.LINEAR:
                return False
            case _:
                assert_never(self)

    @property
    def convolves(self) -> bool:
        """Whether a kernel moves over the data."""
        return self.dimensions > 0

    @property
    def one_dimensional(self) -> bool:
        """Whether a kernel moves along one dimension."""
        return self.dimensions == 1

    @property
    def two_dimensional(self) -> bool:
        """Whether a kernel moves over an image."""
        return self.dimensions == 2

    @property
    def fully_connected(self) -> bool:
        """Whether every input has a weight for every output."""
        return self.weighted and not self.convolves


class Combination(enum.StrEnum):
    """How several operands become one."""

    ADD = "add"
    SUB = "sub"
    OR = "or"
    XOR = "xor"

    @property
    def commutative(self) -> bool:
        """Whether the order of the operands does not matter."""
        match self:
            case Combination.ADD | Combination.OR | Combination.XOR:
                return True
            case Combination.SUB:
                return False
            case _:
                assert_never(self)


class Activation(enum.StrEnum):
    """What follows the output shift."""

    RELU = "ReLU"
    ABS = "Abs"


@frozen
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


@frozen(slots=False, kw_only=True)
class Layer:
    """What one layer computes, fully determined.

    `in_channels` counts before flattening; sizes are (rows, columns); one-dimensional data has one
    column. `weight_bits` is 8, 4, 2, 1, -1 for binary and 0 without weights; `shift` includes the
    implicit part. `weights` is int8 [out, in/groups, rows, columns] as the operator uses them (a
    transposed convolution flipped), `bias` int64 in units of 128. With `bypass` every kernel is
    one. What the layer delivers is to be multiplied by 2^`final_scale`; 32-bit results, which are
    not shifted, are those of trained weights that were calibrated divided by 2^`sum_exponent`.
    With an `exit_margin` the network ends here if the largest value exceeds the second by at least
    so much. `tensor_name` is that of its tensors in the checkpoint, if the description states it;
    `weight_source` the layer whose weights it uses. The last `zero_outputs` have weights of zero;
    `copied` (first, count) are the channels that kernels without a tensor copy. `place` and
    `places` tell where the layer and its keys stand in the description.
    """

    index: int
    name: str | None = None
    place: Place = _NOWHERE
    places: Mapping[str, Place] = field(default_factory=dict, repr=False)
    operator: Operator
    combination: Combination | None = None
    operands: int = 1
    pool_first: bool = True
    in_channels: int
    out_channels: int
    in_dim: Size
    in_crop: Size = (0, 0)
    pooling: Pooling = Pooling()
    pooled_dim: Size
    kernel: Size = (1, 1)
    pad: Size = (0, 0)
    stride: Size = (1, 1)
    dilation: int = 1
    output_pad: int = 0
    out_dim: Size
    activation: Activation | None = None
    weight_bits: int = 0
    shift: int = 0
    output_width: Literal[8, 32] = 8
    groups: int = 1
    flatten: bool = False
    bypass: bool = False
    is_output: bool = False
    exit_margin: int | None = None
    sources: tuple[int, ...] | None = None
    next_layer: int | None = None
    buffer_shift: int = 0
    buffer_insert: int = 0
    weights: NDArray[np.int8] | None = field(default=None, repr=False)
    bias: Tensor | None = field(default=None, repr=False)
    channel_skip: int = 0
    tensor_name: str | None = None
    weight_source: int | None = None
    zero_outputs: int = 0
    copied: tuple[int, int] | None = None
    final_scale: int = 0
    sum_exponent: int = 0

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
    def pointwise(self) -> bool:
        """Whether a layer has 1x1 kernels, of two dimensions."""
        return self.operator.two_dimensional and self.kernel == (1, 1)

    @property
    def has_weights(self) -> bool:
        """Whether the operator multiplies by weights."""
        return self.operator.weighted

    @property
    def depthwise(self) -> bool:
        """Whether every channel is convolved for itself."""
        return self.groups > 1

    @property
    def strides(self) -> bool:
        """Whether pooling would give more with a stride of one."""
        pooling = self.pooling
        directions = zip(self.in_dim, pooling.window, pooling.dilation, pooling.stride, strict=True)
        return any(s > 1 and n > (w - 1) * d + 1 for n, w, d, s in directions)

    @property
    def flat_channels(self) -> int:
        """Input channels of the operator: after flattening, if it does."""
        rows, columns = self.pooled_dim
        return self.in_channels * rows * columns if self.flatten else self.in_channels


@frozen
class DataBuffer:
    """A rolling buffer: `entries` x `width` values of `channels` channels, zero at first."""

    name: str
    channels: int
    entries: int
    width: int


AnyLayer = TypeVar("AnyLayer", bound=Layer)


@frozen(slots=False, kw_only=True)
class Schedule(Generic[AnyLayer]):
    """Layers and the orders in which they are executed and simulated.

    `layers` are all layers that are configured, in the order of the description; `order` lists the
    indices of those that are executed, `simulated` of those that the known answer is made from.
    """

    layers: tuple[AnyLayer, ...]
    order: tuple[int, ...]
    simulated: tuple[int, ...]

    def layer(self, index: int) -> AnyLayer:
        """Return the layer of an index; the first configured layer need not be number 0."""
        return self.layers[index - self.layers[0].index]

    def following(self, layer: Layer) -> AnyLayer | None:
        """Return the layer configured behind this one."""
        position = layer.index + 1 - self.layers[0].index
        return self.layers[position] if position < len(self.layers) else None

    @property
    def first(self) -> AnyLayer:
        """The layer that is executed first."""
        return self.layer(self.order[0])

    @property
    def final(self) -> AnyLayer:
        """The layer that is executed last."""
        return self.layer(self.order[-1])

    def executed(self) -> Iterator[AnyLayer]:
        """The executed layers in execution order."""
        return (self.layer(i) for i in self.order)

    @property
    def terminating(self) -> AnyLayer:
        """The layer whose output is the result of the simulation."""
        return self.layer(self.simulated[-1])

    def predecessor(self, layer: Layer) -> AnyLayer | None:
        """The layer executed before this one; configured before it if it is never executed."""
        if layer.index not in self.order:
            return self.layer(layer.index - 1)
        position = self.order.index(layer.index)
        return self.layer(self.order[position - 1]) if position else None

    def outputs(self) -> tuple[AnyLayer, ...]:
        """Layers whose output is checked and delivered, ascending."""
        marked = tuple(layer for layer in self.layers if layer.is_output)
        return marked or (self.terminating,)

    @property
    def exit(self) -> AnyLayer | None:
        """The layer at which the network may end early."""
        return next((layer for layer in self.layers if layer.exit_margin is not None), None)

    def delivered(self, values: Mapping[int, Tensor]) -> tuple[AnyLayer, ...]:
        """Layers whose output is delivered if layers have these values, by index; with an early
        exit it is one of two."""
        early = self.exit
        if early is None or early.exit_margin is None:
            return self.outputs()
        second, best = np.sort(values[early.index].reshape(-1))[-2:].tolist()
        return (early if best - second >= early.exit_margin else self.final,)


@frozen(slots=False, kw_only=True)
class Network(Schedule[Layer]):
    """What is computed: layers, the order of them, and a sample; nothing of where it is done.

    `sample` is int64 [channel, row, column]; `reshapes_inputs` lets a layer read some of its
    sources' channels, from `channel_skip` on; `folded`: the sample of the file has other channels
    and sizes, and the same values in the same order; `named_files` are the global keys from which
    names of files follow; `places` is where global keys stand.
    """

    arch: str = ""
    place: Place = _NOWHERE
    sample: Tensor
    sample_file: str = ""
    buffer: DataBuffer | None = None
    reshapes_inputs: bool = False
    folded: bool = False
    named_files: Mapping[str, str] = field(default_factory=dict, repr=False)
    places: Mapping[str, Place] = field(default_factory=dict, repr=False)

    def validate(self) -> None:
        """Raise InvariantError where this network, which has been checked, contradicts itself."""
        from ai8xtools.synthesis.network_validation import validate_network  # only for debugging

        validate_network(self)

"""Operators with the meaning of ONNX's of the same name, as values.

Defaults of attributes, paddings by name and forms of older versions are settled at the door:
everything here is explicit. Axes count from 0, the batch; pads are (begin, end) by axis.
"""

from __future__ import annotations

import enum
from collections.abc import Mapping
from dataclasses import field
from typing import Any, TypeAlias

import numpy as np
from numpy.typing import NDArray

from ai8xtools.values import frozen

Array = NDArray[Any]
Shape: TypeAlias = tuple[int, ...]
Pads: TypeAlias = tuple[tuple[int, int], ...]


class Function(enum.Enum):
    """A function of each element, or of pairs of elements, with its name in messages."""

    ABS = "Abs"
    ADD = "Add"
    CEIL = "Ceil"
    DIV = "Div"
    EQUAL = "Equal"
    ERF = "Erf"
    EXP = "Exp"
    FLOOR = "Floor"
    LOG = "Log"
    MAX = "Max"
    MIN = "Min"
    MOD = "Mod"
    MUL = "Mul"
    NEG = "Neg"
    POW = "Pow"
    PRELU = "PRelu"
    ROUND = "Round"
    SIGMOID = "Sigmoid"
    SIGN = "Sign"
    SQRT = "Sqrt"
    SUB = "Sub"
    TANH = "Tanh"
    TRUNC = "Cast to whole numbers"

    @property
    def pairs(self) -> bool:
        """Whether it takes two operands."""
        return self in _PAIRS


_PAIRS = frozenset({
    Function.ADD, Function.DIV, Function.EQUAL, Function.MAX, Function.MIN, Function.MOD,
    Function.MUL, Function.POW, Function.PRELU, Function.SUB,
})  # fmt: skip


class Reduction(enum.Enum):
    """A reduction of values along axes."""

    MEAN = "mean"
    MAX = "maximum"
    MIN = "minimum"
    SUM = "sum"
    L2 = "L2 norm"


@frozen
class Input:
    """The samples, one at a time."""

    shape: Shape


@frozen
class Constant:
    """Values that do not depend on samples."""

    value: Array


@frozen
class Each:
    """A function of each element; two operands are broadcast as numpy does."""

    function: Function


@frozen
class Clip:
    """Limits to low..high; Relu is 0..infinity."""

    low: float
    high: float


@frozen
class Conv:
    """A convolution: data [N, C, ...], weights [O, C/groups, ...], perhaps a bias [O].

    If it `moves` data, each filter has a single 1: a rewriting made it, no user.
    """

    strides: Shape
    pads: Pads
    dilations: Shape
    groups: int = 1
    moves: bool = False


@frozen
class ConvTranspose:
    """A transposed convolution: data [N, C, ...], weights [C, O/groups, ...], perhaps a bias."""

    strides: Shape
    pads: Pads
    dilations: Shape
    output_padding: Shape
    groups: int = 1


@frozen
class Gemm:
    """A fully connected layer: data [..., I], weights [O, I], perhaps a bias [O]."""


@frozen
class MatMul:
    """A product of two results."""


@frozen
class BatchNormalization:
    """(x - mean) / sqrt(variance + epsilon) * factor + offset of data, factor, offset, mean,
    variance, by channel; `momentum` is that of training.
    """

    epsilon: float
    momentum: float = 0.9


@frozen
class MeanVarianceNormalization:
    """(x - mean) / sqrt(variance + epsilon); both are taken over `axes`."""

    axes: Shape
    epsilon: float


@frozen
class Pool:
    """The maximum, or average, of windows; `ceil` keeps windows that begin within the data.

    An average divides by the values of the window that are data, with `counted` by its pads, too.
    """

    average: bool
    window: Shape
    strides: Shape
    pads: Pads
    dilations: Shape
    ceil: bool = False
    counted: bool = False


@frozen
class Reduce:
    """Takes axes together; `keep` leaves them there with size 1."""

    reduction: Reduction
    axes: Shape
    keep: bool


@frozen
class Reshape:
    """The same values in another shape."""

    shape: Shape


@frozen
class Transpose:
    """Axes in another order."""

    order: Shape


@frozen
class Slice:
    """From each axis `count` elements, `step` apart, from `start` on."""

    start: Shape
    step: Shape
    count: Shape


@frozen
class Pad:
    """Values around data, by all axes: `value`, or those that numpy.pad calls `mode`."""

    pads: Pads
    value: float = 0.0
    mode: str = "constant"


@frozen
class Concat:
    """Results one behind another along an axis."""

    axis: int


@frozen
class Resize:
    """The nearest elements: `places` are their indices, which the door computes, by axis."""

    places: tuple[Shape, ...]


def cropped(shape: Shape, pads: Pads) -> tuple[Slice, Pads]:
    """Return what negative pads cut off, and the other pads."""
    starts = tuple(max(-begin, 0) for begin, _ in pads)
    ends = tuple(n + min(end, 0) for n, (_, end) in zip(shape, pads, strict=True))
    counts = tuple(end - start for start, end in zip(starts, ends, strict=True))
    more = tuple((max(begin, 0), max(end, 0)) for begin, end in pads)
    return Slice(starts, (1,) * len(shape), counts), more


def repeated(taken: Shape, shape: Shape) -> Resize:
    """Return what repeats data, as often as an axis goes into that of the result."""
    return Resize(tuple(tuple(range(n)) * (m // n) for n, m in zip(taken, shape, strict=True)))


@frozen
class Softmax:
    """Shares along an axis, or their logarithms."""

    axis: int
    log: bool = False


@frozen
class LpNormalization:
    """Divides by the root of the sum of squares along an axis."""

    axis: int


@frozen
class Dropout:
    """Passes its data; training leaves out values, or what has `axes`, with a probability."""

    probability: float
    axes: int


@frozen
class Foreign:
    """An operator that nothing here computes: its name, the shape of its result, and what to use
    instead. Some targets know by `plain_name` and `settings` what one is made of;
    constants follow its data.
    """

    name: str
    shape: Shape
    remedy: str = "Use another operator here, or compute this part in the application."
    plain_name: str = ""
    settings: tuple[tuple[str, Any], ...] = ()


@frozen
class Layer(Foreign):
    """A layer of the accelerator as one: `op` of a description and its `keys`, behind a pooling.

    What only pools is a Passthrough; `bias`: its operator has one. `target` is the path by which
    its name is made and its weights are found, else the node's place.
    """

    op: str = "Passthrough"
    keys: Mapping[str, Any] = field(default_factory=dict)
    pool: Mapping[str, Any] = field(default_factory=dict)
    bias: bool = False
    target: str = ""


@frozen
class Remembered(Foreign):
    """The features of the last frames, one behind another, of which one is new."""


Operator: TypeAlias = (
    Input | Constant | Each | Clip | Conv | ConvTranspose | Gemm | MatMul | BatchNormalization
    | MeanVarianceNormalization | Pool | Reduce | Reshape | Transpose | Slice | Pad | Concat
    | Resize | Softmax | LpNormalization | Dropout | Foreign
)  # fmt: skip


def name_of(operator: Operator) -> str:
    """Return the name of an operator for messages."""
    match operator:
        case Each():
            return operator.function.value
        case Clip():
            return "Relu" if (operator.low, operator.high) == (0, np.inf) else "Clip"
        case Pool():
            return "AveragePool" if operator.average else "MaxPool"
        case Reduce():
            return operator.reduction.value
        case Softmax():
            return "LogSoftmax" if operator.log else "Softmax"
        case Foreign():
            return operator.name
        case _:
            return type(operator).__name__

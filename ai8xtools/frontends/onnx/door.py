"""An ONNX graph as a graph of operators: one handler for each operator of ONNX.

Defaults, forms of older versions and paddings by name are settled here.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any

import numpy as np

from ai8xtools.checkpoint.onnx_graph import OnnxGraph, OnnxNode
from ai8xtools.checkpoint.onnx_tensors import MAX_ELEMENTS
from ai8xtools.diagnostics.errors import InputError
from ai8xtools.frontends.graph.nodes import (
    Graph,
    Node,
    ShapeError,
    constant,
    graph_of,
    make,
    rewritten,
)
from ai8xtools.frontends.graph.operators import (
    Array,
    BatchNormalization,
    Clip,
    Concat,
    Conv,
    ConvTranspose,
    Each,
    Foreign,
    Function,
    Gemm,
    Input,
    LpNormalization,
    MatMul,
    Operator,
    Pad,
    Pads,
    Pool,
    Reduce,
    Reduction,
    Reshape,
    Resize,
    Shape,
    Slice,
    Softmax,
    Transpose,
)
from ai8xtools.frontends.graph.passes import without_rounding
from ai8xtools.frontends.graph.recurrent import REMEDY, Recurrence
from ai8xtools.frontends.layers import Refusal, times
from ai8xtools.frontends.onnx.attributes import refused_attributes

_TYPES: dict[int, Any] = {
    1: np.float32, 2: np.uint8, 3: np.int8, 4: np.uint16, 5: np.int16, 6: np.int32, 7: np.int64,
    9: np.bool_, 10: np.float16, 11: np.float64, 12: np.uint32, 13: np.uint64,
}  # fmt: skip
"""Types of elements by their numbers in onnx.proto; bfloat16 has none in numpy."""
INSTEAD = {
    "Sigmoid": "Use Relu inside; at the end, compute it in the application.",
    "Tanh": "Use Relu inside; at the end, compute it in the application.",
    "PRelu": "Use Relu.", "Elu": "Use Relu.", "Gelu": "Use Relu.", "Erf": "Use Relu.",
    "Transpose": "Leave the channels on axis 1; average a map before it is flattened.",
    "Resize": "Use ConvTranspose with stride 2.",
    "Mul": "Use Add or Concat: the chip multiplies by weights only.",
    "Div": "Use Add or Concat: the chip multiplies by weights only.",
}  # fmt: skip
"""What to use instead of an operator."""
_SERIES = 4
"""Axes of a series of images: frame, channel, row, column."""
_FRACTIONS = (1, 10, 11, 16)
_FRACTION: np.dtype[Any] = np.dtype(np.float32)
_CONVERTING = ("Cast", "DequantizeLinear")
_WRAPPING = 2
"""Whole numbers of so many bytes are soon more than their type holds."""
_AXIS_BY_INPUT = 13
"""From this version on Softmax has one axis; before it has all from that on."""


class UnknownError(ValueError):
    """A node that is no operator here: why, and what to use instead."""

    def __init__(self, why: str, remedy: str = "Simplify the graph before.") -> None:
        super().__init__(why)
        self.why, self.remedy = why, remedy


@dataclass(frozen=True, slots=True)
class _Call:
    """A node with what it takes (None: left out); `batch` is the one that the file fixes, of
    which one sample is taken, `kind` the type of what it takes first.
    """

    node: OnnxNode
    inputs: Sequence[Node | None]
    opset: int
    batch: int
    kind: np.dtype[Any]

    @property
    def name(self) -> str:
        """The operator."""
        return self.node.operator

    @property
    def data(self) -> Node:
        """What it takes first."""
        return self.input(0)

    def input(self, number: int) -> Node:
        """Return what it takes; UnknownError where it is missing."""
        node = self.inputs[number] if number < len(self.inputs) else None
        if node is None:
            raise UnknownError(f"its input {number + 1} is missing", "Export the graph again.")
        return node

    def get(self, name: str, default: Any = None) -> Any:
        """Return an attribute."""
        return self.node.attributes.get(name, default)

    def constant(self, number: int, attribute: str = "") -> Array | None:
        """Return a constant input, or the attribute that it was before; None for neither."""
        node = self.inputs[number] if number < len(self.inputs) else None
        if node is None:
            value = self.get(attribute) if attribute else None
            return None if value is None else np.asarray(value)
        if node.constant is None:
            raise UnknownError(f"its input {number + 1} is not constant", "Use a fixed one.")
        return node.constant

    def make(self, operator: Operator, *inputs: Node) -> Node:
        """Return a result of this node."""
        return make(self.node.name, operator, *inputs)

    def integers(self, number: int, attribute: str = "") -> Shape | None:
        """Return whole numbers of an input or attribute."""
        values = self.constant(number, attribute)
        return None if values is None else tuple(int(n) for n in np.asarray(values).ravel())


Handler = Callable[[_Call], Any]
_HANDLERS: dict[str, Handler] = {}


def _handles(*names: str) -> Callable[[Handler], Handler]:
    """Register a handler under the names of operators."""

    def add(handler: Handler) -> Handler:
        _HANDLERS.update(dict.fromkeys(names, handler))
        return handler

    return add


def channels_last(graph: OnnxGraph) -> bool:
    """Return whether all that reads the input first moves its last axis, the channels, to the
    front.
    """
    axes = len(graph.input_sizes)
    readers = [node for node in graph.nodes if graph.input_name in node.inputs]
    first = (0, axes - 1, *range(1, axes - 1))
    return bool(readers) and all(
        node.operator == "Transpose" and tuple(node.attributes.get("perm", ())) == first
        for node in readers
    )


def input_shape(graph: OnnxGraph, path: str) -> tuple[int, ...]:
    """Return the shape of the input without the batch, channels first.

    Raises InputError E678 for one that is not fixed.
    """
    sizes = graph.input_sizes[1:]
    if len(sizes) == _SERIES:
        raise InputError(
            "E678",
            f"the input '{graph.input_name}' is a series of frames, which no graph is taken with",
            path,
            "Take the PyTorch network (--model FILE:CLASS --input-shape TxCxHxW).",
        )
    if channels_last(graph):
        sizes = (*sizes[-1:], *sizes[:-1])
    if not sizes or 0 in sizes or len(sizes) > 3:
        shown = times([n or "?" for n in graph.input_sizes]) or "no shape"  # type: ignore[misc]
        raise InputError(
            "E678",
            f"the input '{graph.input_name}' has {shown}; its sizes must be fixed",
            path,
            "Export it with fixed sizes, or add --input-shape CxHxW (or CxL).",
        )
    return sizes


def read_operators(graph: OnnxGraph, shape: Shape, batch: int = 1) -> tuple[Graph, list[Refusal]]:
    """Return the operators of a graph for an input [batch, C, ...], and the nodes that are none."""
    door = _Door(graph, shape, batch)
    outputs = [door.results[name] for name in graph.outputs if name in door.results]
    return graph_of(door.source, list(door.results.values()), outputs), door.refusals


def read_fractions(graph: OnnxGraph, shape: Shape) -> tuple[Graph, list[Refusal], tuple[str, ...]]:
    """Return the operators of a graph in fractions, the nodes that are none, and what was left out.

    Quantized values are the fractions that they stand for, without rounding: the target rounds.
    """
    operators, refusals = read_operators(graph, shape)
    fractions = rewritten(operators, without_rounding)
    remedy = ("Quantize in the form QDQ (quant_format=QuantFormat.QDQ), or take the network before "
              "it was quantized.")  # fmt: skip
    refusals += [one for one in quantizing(graph, remedy) if not one.why.startswith("Quantize")]
    note = ("quantize and dequantize nodes are left out: results have the scales and the rounding "
            "of the target")  # fmt: skip
    return fractions, refusals, (note,) if quantizing(graph, remedy) else ()


def quantizing(graph: OnnxGraph, remedy: str) -> list[Refusal]:
    """Return the nodes that round data to scales of their own."""
    return [Refusal(node.name, f"{node.operator} rounds to a scale of its own", remedy)
            for node in graph.nodes
            if node.operator in _ROUNDING and node.inputs[0] not in graph.constants]  # fmt: skip


_ROUNDING = ("QuantizeLinear", "QLinearConv", "QLinearMatMul", "com.microsoft.QGemm")


class _Door:
    """Follows the nodes in their order; `results` are results and constants by name."""

    def __init__(self, graph: OnnxGraph, shape: Shape, batch: int) -> None:
        self.refusals: list[Refusal] = []
        self._graph = graph
        self._fixed = graph.input_sizes[0] if graph.input_sizes and batch == 1 else 1
        self.source = result = make(graph.input_name, Input((batch, *shape)))
        if channels_last(graph):
            result = make(graph.input_name, Transpose((0, *range(2, len(shape) + 1), 1)), result)
        if len(graph.input_sizes) == 2 and len(shape) > 1:
            result = make(graph.input_name, Reshape((batch, math.prod(shape))), result)
        self._kinds = {graph.input_name: np.dtype(_TYPES.get(graph.input_type, np.float32))}
        constants = {name: constant(np.asarray(v), name) for name, v in graph.constants.items()}
        self.results: dict[str, Node] = {**constants, graph.input_name: result}
        needed = set(graph.outputs)
        for node in reversed(graph.nodes):
            needed |= set(node.inputs) if needed & set(node.outputs) else set()
        for node in graph.nodes:
            if needed & set(node.outputs):
                self._visit(node)

    def _visit(self, node: OnnxNode) -> None:
        if any(name and name not in self.results for name in node.inputs):
            return  # it takes what has been refused
        inputs = [self.results[name] if name else None for name in node.inputs]
        kind = self._kind_of(node.inputs[0]) if node.inputs else _FRACTION
        call = _Call(node, inputs, self._graph.opset, self._fixed, kind)
        try:
            with np.errstate(divide="raise", invalid="raise"):
                result = _read(call)
            several = result if isinstance(result, list) else [result]
            unmade = [n for n in node.outputs[len(several) :] if n and self._is_read(n)]
            if unmade:
                raise UnknownError(f"{node.operator} gives more than one result")
            self.results |= dict(zip(node.outputs, several, strict=False))
            if node.operator in _CONVERTING:
                kind = np.dtype(_TYPES.get(node.attributes.get("to", 1), np.float32))
            self._kinds |= dict.fromkeys(node.outputs, kind)
        except UnknownError as exc:
            self.refusals.append(Refusal(node.name, exc.why, exc.remedy))
        except ShapeError as exc:
            self.refusals.append(Refusal(node.name, str(exc), "Export it again."))
        except (ArithmeticError, ValueError, IndexError, TypeError, KeyError, AttributeError):
            why = f"its constants or attributes are not those that {node.operator} takes"
            remedy = "Export the graph again, or check it with onnx.checker."
            self.refusals.append(Refusal(node.name, why, remedy))

    def _kind_of(self, name: str) -> np.dtype[Any]:
        """Return the type of a result as the file has it."""
        value = self.results[name].constant if name else None
        return self._kinds.get(name, _FRACTION) if value is None else value.dtype

    def _is_read(self, name: str) -> bool:
        return name in self._graph.outputs or any(name in n.inputs for n in self._graph.nodes)


def _read(call: _Call) -> Any:
    """Return the result of a node, or the list of several."""
    values = [one.constant for one in call.inputs if one is not None]
    constants = [one for one in values if one is not None]
    computes = _CONSTANTS.get(call.name)
    if computes is not None and len(constants) == len(values):
        return constant(np.asarray(computes(call, constants)), call.node.name)
    handler = _HANDLERS.get(call.name)
    if handler is None:
        remedy = INSTEAD.get(call.name, "Simplify the graph before.")
        raise UnknownError(f"the operator {call.name} is not known here", remedy)
    return handler(call)


# What is computed of constants alone


def _filled(call: _Call, values: Sequence[Array]) -> Array:
    filling = np.asarray(call.get("value", np.zeros(1, np.float32))).ravel()
    return np.full(_bounded(tuple(map(int, values[0]))), filling[0])


def _bounded(shape: Shape) -> Shape:
    if math.prod(shape) > MAX_ELEMENTS:
        raise UnknownError(f"it makes {math.prod(shape)} values of constants")
    return shape


def _taken(call: _Call, values: Sequence[Array]) -> Array:
    _bounded((values[0].size, values[1].size))
    return np.take(values[0], values[1].astype(int), call.get("axis", 0))


def _expanded(_call: _Call, values: Sequence[Array]) -> Array:
    shape = np.broadcast_shapes(values[0].shape, tuple(map(int, values[1])))
    return np.broadcast_to(values[0], _bounded(shape))


def _dequantized(call: _Call, values: Sequence[Array]) -> Array:
    axes = [1] * values[0].ndim
    if values[1].size > 1:
        axes[call.get("axis", 1)] = -1
    zero = values[2].astype(np.float64).reshape(axes) if len(values) > 2 else 0.0
    return (values[0].astype(np.float64) - zero) * values[1].astype(np.float64).reshape(axes)


_CONSTANTS: Mapping[str, Callable[[_Call, Sequence[Array]], Array]] = {
    "Cast": lambda call, values: values[0].astype(_TYPES[call.get("to", 1)]),
    "ConstantOfShape": _filled,
    "Gather": _taken,
    "Expand": _expanded,
    "DequantizeLinear": _dequantized,
    "Range": lambda _call, values: np.arange(*(one.item() for one in values)),
    "Where": lambda _call, values: np.where(*values),
    "Equal": lambda _call, values: np.equal(*values),
    "Not": lambda _call, values: np.logical_not(*values),
    "Size": lambda _call, values: np.asarray(values[0].size),
}


@_handles("Constant")
def _constant(call: _Call) -> Node:
    names = ("value", "value_float", "value_int", "value_ints", "value_floats")
    value = next((call.get(name) for name in names if call.get(name) is not None), None)
    if value is None:
        raise UnknownError("its value is not known here")
    return constant(np.asarray(value), call.node.name)


@_handles("Shape")
def _shape_of(call: _Call) -> Node:
    sizes = call.data.shape[slice(call.get("start", 0), call.get("end"))]
    return constant(np.asarray(sizes, np.int64), call.node.name)


# Layers with weights


@_handles("Conv")
def _conv(call: _Call) -> Node:
    weights = _weights(call)
    kernel = weights.shape[2:]
    _check(call, len(kernel), kernel)
    strides, dilations = _each(call, "strides", kernel), _each(call, "dilations", kernel)
    pads = _pads(call, call.data.shape[2:], kernel, strides, dilations)
    operator = Conv(strides, pads, dilations, call.get("group", 1))
    return call.make(operator, call.data, weights, *_bias(call))


@_handles("ConvTranspose")
def _conv_transpose(call: _Call) -> Node:
    weights = _weights(call)
    kernel, sizes = weights.shape[2:], call.data.shape[2:]
    _check(call, len(kernel), kernel)
    strides, dilations = _each(call, "strides", kernel), _each(call, "dilations", kernel)
    extra = tuple(call.get("output_padding") or (0,) * len(kernel))
    mode, shape = call.get("auto_pad", "NOTSET"), call.get("output_shape")
    pads = _explicit(call, kernel)
    if mode.startswith("SAME") and not shape:
        shape = [n * s for n, s in zip(sizes, strides, strict=True)]
    if shape:
        pairs = []
        for n, k, s, d, e, size in zip(sizes, kernel, strides, dilations, extra,
                                       shape[-len(kernel) :], strict=True):  # fmt: skip
            total = s * (n - 1) + e + d * (k - 1) + 1 - size
            more, missing = max(total, 0), max(-total, 0)
            begin = more // 2 if mode == "SAME_UPPER" else more - more // 2
            pairs.append((begin, more - begin - missing))
        pads = tuple(pairs)
    operator = ConvTranspose(strides, pads, dilations, extra, call.get("group", 1))
    return call.make(operator, call.data, weights, *_bias(call))


@_handles("Gemm")
def _gemm(call: _Call) -> Node:
    if call.get("transA", 0):
        raise UnknownError("it turns its data around", "Use transA=0.")
    weights = _weights(call, 2)
    if not call.get("transB", 0):
        weights = _turned(weights)
    alpha, beta = float(call.get("alpha", 1.0)), float(call.get("beta", 1.0))
    if alpha != 1:
        weights = constant(np.asarray(weights.constant) * alpha, weights.place)
    bias = [call.make(Reshape((math.prod(one.shape),)), one) for one in _bias(call)]
    if beta != 1:
        bias = [call.make(Each(Function.MUL), one, constant(np.array(beta))) for one in bias]
    return call.make(Gemm(), call.data, weights, *bias)


@_handles("MatMul")
def _matmul(call: _Call) -> Node:
    if call.input(1).constant is None or call.data.constant is not None:
        return call.make(MatMul(), call.data, call.input(1))
    return call.make(Gemm(), call.data, _turned(_weights(call, 2)))


@_handles("BatchNormalization")
def _batch_norm(call: _Call) -> Node:
    if call.get("training_mode", 0):
        raise UnknownError(
            "it normalizes by the statistics of each batch",
            "Export the network behind its training: training_mode=0.",
        )
    factors = [call.input(number) for number in range(1, 5)]
    if any(one.constant is None for one in factors):
        raise UnknownError("its factors are not constants")
    momentum = float(call.get("momentum", 0.9))
    operator = BatchNormalization(float(call.get("epsilon", 1e-5)), momentum)
    return call.make(operator, call.data, *factors)


def _turned(weights: Node) -> Node:
    """Return weights [O, I] of [I, O] under their name."""
    return constant(np.asarray(weights.constant).transpose(), weights.place)


def _weights(call: _Call, axes: int = 0) -> Node:
    """Return the weights, of so many axes, or of a convolution."""
    weights = call.input(1)
    if weights.constant is None:
        remedy = "Export the integers as weights, without quantize and dequantize nodes."
        if call.data.constant is not None:
            raise UnknownError("the weights stand on the left", "Multiply data by weights.")
        raise UnknownError("its weights are not constants", remedy)
    if len(weights.shape) != axes if axes else len(weights.shape) < 3:
        raise UnknownError(
            f"its weights have {len(weights.shape)} axes",
            "Give weights the axes that ONNX has for them.",
        )
    return weights


def _bias(call: _Call) -> list[Node]:
    bias = call.inputs[2] if len(call.inputs) > 2 else None
    return [] if bias is None else [bias]


def _each(call: _Call, name: str, kernel: Sequence[int], fill: int = 1) -> Shape:
    return tuple(call.get(name) or (fill,) * len(kernel))


def _explicit(call: _Call, kernel: Sequence[int]) -> Pads:
    axes = len(kernel)
    flat = tuple(call.get("pads") or (0,) * 2 * axes)
    return tuple((flat[n], flat[axes + n]) for n in range(axes))


def _pads(call: _Call, sizes: Shape, kernel: Shape, strides: Shape, dilations: Shape) -> Pads:
    """Return the padding of a convolution or pooling."""
    mode = call.get("auto_pad", "NOTSET")
    if not mode.startswith("SAME"):
        none = ((0, 0),) * len(kernel)
        return none if mode == "VALID" else _explicit(call, kernel)
    pairs = []
    for size, k, s, d in zip(sizes, kernel, strides, dilations, strict=True):
        total = max((math.ceil(size / s) - 1) * s + d * (k - 1) + 1 - size, 0)
        small, large = total // 2, total - total // 2
        pairs.append((small, large) if mode == "SAME_UPPER" else (large, small))
    return tuple(pairs)


def _check(call: _Call, axes: int, kernel: Shape | None) -> None:
    wrong = refused_attributes(call.node, axes, kernel)
    if wrong is not None:
        raise UnknownError(wrong.why, wrong.remedy)


# Integers with a scale and a zero point: what they stand for is computed with


@dataclass(frozen=True, slots=True)
class _Scale:
    """Scale and zero point, along an axis or one of each, and the limits of the integers."""

    scale: Array
    zero: Array
    low: float
    high: float

    def integers(self, call: _Call, data: Node) -> Node:
        """Return the integers of data: halves to even, limited."""
        divided = call.make(Each(Function.DIV), data, constant(self.scale))
        moved = call.make(Each(Function.ADD), call.make(Each(Function.ROUND), divided),
                          constant(self.zero))  # fmt: skip
        return call.make(Clip(self.low, self.high), moved)

    def values(self, call: _Call, data: Node) -> Node:
        """Return what integers stand for."""
        moved = call.make(Each(Function.SUB), data, constant(self.zero))
        return call.make(Each(Function.MUL), moved, constant(self.scale))


def _scale(call: _Call, number: int, rank: int, axis: int = 1) -> _Scale:
    """Return scale and zero point that are inputs `number` and the next, for data of an axis."""
    scale = call.constant(number)
    zero = call.constant(number + 1) if len(call.inputs) > number + 1 else None
    zero = np.zeros(1, np.uint8) if zero is None else zero
    if scale is None or not np.isfinite(scale).all() or (np.asarray(scale) <= 0).any():
        raise UnknownError("its scale is no number above zero", "Quantize the graph again.")
    if zero.dtype.kind not in "iu" or zero.size not in (1, scale.size):
        raise UnknownError("its zero point is no integer for each scale", "Quantize it again.")
    limits, along = np.iinfo(zero.dtype), [1] * rank
    if scale.size > 1:
        along[axis % rank] = -1
    wide = [np.asarray(one, np.float64).reshape(along if scale.size > 1 else ())
            for one in (scale, np.broadcast_to(zero.ravel(), (scale.size,)))]  # fmt: skip
    return _Scale(wide[0], wide[1], float(limits.min), float(limits.max))


@_handles("QuantizeLinear", "DequantizeLinear")
def _quantize(call: _Call) -> Node:
    scale = _scale(call, 1, len(call.data.shape), call.get("axis", 1))
    if call.name == "QuantizeLinear":
        return scale.integers(call, call.data)
    return scale.values(call, call.data)


@_handles("com.microsoft.QGemm")
def _quantized_gemm(call: _Call) -> Node:
    data = _scale(call, 1, 2).values(call, call.data)
    second = call.input(3)
    whole = _scale(call, 4, 2, 0 if call.get("transB", 0) else 1)
    inputs = [data, whole.values(call, second)]
    bias = call.constant(6)
    if bias is not None:
        inputs.append(constant(bias * np.asarray(call.constant(1)) * whole.scale.ravel()))
    made = _gemm(replace(call, inputs=inputs))
    if len(call.inputs) < 8 or call.inputs[7] is None:
        return made
    return _scale(call, 7, 2).integers(call, made)


@_handles("QLinearConv", "QLinearMatMul")
def _quantized_layer(call: _Call) -> Node:
    data = _scale(call, 1, len(call.data.shape)).values(call, call.data)
    second = call.input(3)
    whole = _scale(call, 4, len(second.shape), -1 if call.name == "QLinearMatMul" else 0)
    inputs = [data, whole.values(call, second)]
    bias = call.constant(8) if len(call.inputs) > 8 else None
    if bias is not None:
        inputs.append(constant(bias * np.asarray(call.constant(1)) * whole.scale.ravel()))
    plain = replace(call, inputs=inputs)
    made = _conv(plain) if call.name == "QLinearConv" else _matmul(plain)
    return _scale(call, 6, len(made.shape)).integers(call, made)


# What is done with each element

_FUNCTIONS = {
    function.value: function for function in Function if function is not Function.TRUNC
}  # fmt: skip

_GROWING = (Function.ADD, Function.SUB, Function.MUL, Function.POW)


@_handles(*_FUNCTIONS)
def _function(call: _Call) -> Node:
    function = _FUNCTIONS[call.name]
    if not function.pairs:
        return call.make(Each(function), call.data)
    whole, result = call.kind.kind in "iu", call.data
    if whole and function in _GROWING and call.kind.itemsize <= _WRAPPING:
        raise UnknownError(f"it computes in {call.kind}, where large results wrap around",
                           "Cast its data to float before.")  # fmt: skip
    for number in range(1, len(call.inputs)):
        data, other = result, call.input(number)
        result = call.make(Each(Function.DIV if call.get("fmod", 0) else function), data, other)
        if call.get("fmod", 0):  # the remainder has the sign of the data
            multiple = call.make(Each(Function.MUL), call.make(Each(Function.TRUNC), result), other)
            result = call.make(Each(Function.SUB), data, multiple)
        if whole and function is Function.DIV:
            result = call.make(Each(Function.TRUNC), result)
    return result


@_handles("Sum", "Mean")
def _sum(call: _Call) -> Node:
    total = call.data
    for number in range(1, len(call.inputs)):
        total = call.make(Each(Function.ADD), total, call.input(number))
    if call.name == "Sum" or len(call.inputs) == 1:
        return total
    return call.make(Each(Function.MUL), total, constant(np.array(1 / len(call.inputs))))


@_handles("Reciprocal")
def _reciprocal(call: _Call) -> Node:
    return call.make(Each(Function.DIV), constant(np.array(1.0)), call.data)


@_handles("Relu")
def _relu(call: _Call) -> Node:
    return call.make(Clip(0.0, math.inf), call.data)


@_handles("Clip")
def _clip(call: _Call) -> Node:
    low, high = call.constant(1, "min"), call.constant(2, "max")
    ends = (-math.inf if low is None else float(low), math.inf if high is None else float(high))
    if any(map(math.isnan, ends)):
        raise UnknownError("a limit is not a number", "Use Relu.")
    return call.make(Clip(*ends), call.data)


@_handles("LeakyRelu")
def _leaky(call: _Call) -> Node:
    return call.make(Each(Function.PRELU), call.data, constant(np.array(call.get("alpha", 0.01))))


@_handles("HardSigmoid", "HardSwish")
def _hard_sigmoid(call: _Call) -> Node:
    plain = call.name == "HardSigmoid"
    alpha, beta = (call.get("alpha", 0.2), call.get("beta", 0.5)) if plain else (1 / 6, 0.5)
    scaled = call.make(Each(Function.MUL), call.data, constant(np.array(alpha)))
    moved = call.make(Each(Function.ADD), scaled, constant(np.array(beta)))
    gate = call.make(Clip(0.0, 1.0), moved)
    return gate if plain else call.make(Each(Function.MUL), call.data, gate)


@_handles("Identity", "Dropout")
def _same(call: _Call) -> Node:
    training = call.constant(2) if call.name == "Dropout" and len(call.inputs) > 2 else None
    if training is not None and training.any():
        raise UnknownError(
            "its result is random: it is that of training",
            "Export the network behind its training.",
        )
    if call.data.constant is not None:  # one value under several names
        return constant(call.data.constant, call.node.outputs[0])
    return call.data


@_handles("Cast")
def _cast(call: _Call) -> Node:
    if call.get("to", 1) in _FRACTIONS:
        return call.data
    return call.make(Each(Function.TRUNC), call.data)


@_handles("Softmax", "LogSoftmax")
def _softmax(call: _Call) -> Node:
    shape, log = call.data.shape, call.name == "LogSoftmax"
    if call.opset >= _AXIS_BY_INPUT:
        return call.make(Softmax(call.get("axis", -1) % len(shape), log), call.data)
    axis = call.get("axis", 1) % len(shape)
    flat = (math.prod(shape[:axis]), math.prod(shape[axis:]))
    if flat == (math.prod(shape) // shape[axis], shape[axis]):
        return call.make(Softmax(axis, log), call.data)
    whole = call.make(Softmax(1, log), call.make(Reshape(flat), call.data))
    return call.make(Reshape(shape), whole)


@_handles("Elu", "Selu", "Celu", "Softplus", "Softsign", "Mish", "Gelu", "Swish",
          "ThresholdedRelu", "Shrink", "InstanceNormalization", "LayerNormalization",
          "GroupNormalization", "LRN", "Hardmax")  # fmt: skip
def _foreign(call: _Call) -> Node:
    settings = tuple((name, value) for name, value in call.node.attributes.items()
                     if isinstance(value, int | float | str))  # fmt: skip
    operator = Foreign(call.name, call.data.shape, known=call.name.lower(), settings=settings)
    return call.make(operator, call.data, *(one for one in call.inputs[1:] if one is not None))


_ACTIVATIONS: Mapping[str, list[tuple[str, ...]]] = {
    "rnn": [("Tanh",), ("Relu",)],
    "gru": [("Sigmoid", "Tanh")],
    "lstm": [("Sigmoid", "Tanh", "Tanh")],
}


@_handles("RNN", "GRU", "LSTM")
def _recurrent(call: _Call) -> list[Node]:
    """Return all states, the last ones, and those of an LSTM's cells."""
    kind, steps = call.name.lower(), call.data.shape[0]
    weights, again = (_whole(call, number) for number in (1, 2))
    ways, size = again.shape[0], again.shape[2]
    given = [call.constant(number) if len(call.inputs) > number else None for number in range(3, 8)]
    bias, lengths, *first = given[: 4 if kind == "lstm" else 3]
    usual = _ACTIVATIONS[kind]
    functions = tuple(call.get("activations", usual[0] * ways))
    odd = [name for name in ("clip", "layout", "input_forget") if call.get(name, 0)]
    odd += ["activations"] if functions not in [one * ways for one in usual] else []
    odd += ["sequence_lens"] if lengths is not None and (lengths != steps).any() else []
    odd += ["P"] if given[4] is not None else []
    if odd or call.data.shape[1] != 1:
        raise UnknownError(f"its {odd[0] if odd else 'batch'} has no form that is known here",
                           REMEDY)  # fmt: skip
    firsts = [*first, *[None] * (1 + (kind == "lstm") - len(first))]
    constants = (
        weights, again, np.zeros((ways, 2 * weights.shape[1])) if bias is None else bias,
        *(np.zeros((ways, 1, size)) if one is None else one for one in firsts),
    )  # fmt: skip
    settings = (("linear_before_reset", int(call.get("linear_before_reset", 0))),
                ("relu", int(functions[0] == "Relu")))  # fmt: skip
    layer = Recurrence(call.node.name, kind, constants, call.get("direction", "forward"), settings)
    states = layer.states(call.data)
    results = [states, layer.last(states)]
    if kind == "lstm":
        results.append(layer.last(layer.states(call.data, cell=True)))
    return results


def _whole(call: _Call, number: int) -> Array:
    """Return a constant that has to be there."""
    value = call.constant(number)
    if value is None:
        raise UnknownError(f"its input {number + 1} is missing", "Export the graph again.")
    return value


@_handles("LpNormalization")
def _normalization(call: _Call) -> Node:
    if call.get("p", 2) != 2:
        return _foreign(call)
    return call.make(LpNormalization(call.get("axis", -1) % len(call.data.shape)), call.data)


# Pooling


@_handles("MaxPool", "AveragePool")
def _pool(call: _Call) -> Node:
    axes = len(call.data.shape) - 2
    _check(call, axes, None)
    window = tuple(call.get("kernel_shape"))
    strides, dilations = _each(call, "strides", window), _each(call, "dilations", window)
    pads = _pads(call, call.data.shape[2:], window, strides, dilations)
    operator = Pool(
        call.name == "AveragePool", window, strides, pads, dilations,
        bool(call.get("ceil_mode", 0)), bool(call.get("count_include_pad", 0)),
    )  # fmt: skip
    return call.make(operator, call.data)


@_handles("GlobalAveragePool", "GlobalMaxPool")
def _global(call: _Call) -> Node:
    kind = Reduction.MAX if "Max" in call.name else Reduction.MEAN
    return call.make(Reduce(kind, tuple(range(2, len(call.data.shape))), True), call.data)


_REDUCTIONS = {"ReduceMean": Reduction.MEAN, "ReduceMax": Reduction.MAX,
               "ReduceMin": Reduction.MIN, "ReduceSum": Reduction.SUM,
               "ReduceL2": Reduction.L2}  # fmt: skip


@_handles(*_REDUCTIONS)
def _reduce(call: _Call) -> Node:
    count, stated = len(call.data.shape), call.integers(1, "axes")
    if not stated and call.get("noop_with_empty_axes", 0):
        return call.data
    axes = tuple(sorted({axis % count for axis in stated or range(count)}))
    return call.make(Reduce(_REDUCTIONS[call.name], axes, bool(call.get("keepdims", 1))), call.data)


# Shapes


@_handles("Reshape")
def _reshape(call: _Call) -> Node:
    stated, taken = call.integers(1, "shape"), call.data.shape
    if stated is None:
        raise UnknownError("its shape is not known")
    sizes = [taken[i] if n == 0 and not call.get("allowzero", 0) else n
             for i, n in enumerate(stated)]  # fmt: skip
    if call.batch > 1 and sizes and sizes[0] == call.batch and call.data.constant is None:
        sizes[0] = 1
    if -1 in sizes:
        rest = -math.prod(sizes)
        sizes[sizes.index(-1)] = math.prod(taken) // rest if rest else 0
    return call.make(Reshape(tuple(sizes)), call.data)


@_handles("Flatten")
def _flatten(call: _Call) -> Node:
    shape = call.data.shape
    axis = call.get("axis", 1)
    axis += len(shape) if axis < 0 else 0
    return call.make(Reshape((math.prod(shape[:axis]), math.prod(shape[axis:]))), call.data)


@_handles("Squeeze", "Unsqueeze")
def _squeeze(call: _Call) -> Node:
    stated, shape = call.integers(1, "axes"), call.data.shape
    if call.name == "Squeeze":
        gone = {a % len(shape) for a in stated} if stated else {
            i for i, n in enumerate(shape) if n == 1 and (i or call.data.constant is not None)
        }  # fmt: skip
        if any(shape[axis] != 1 for axis in gone):
            raise UnknownError("it takes away an axis of more than one element")
        sizes = tuple(n for i, n in enumerate(shape) if i not in gone)
        return call.make(Reshape(sizes), call.data)
    rank = len(shape) + len(stated or ())
    result = list(shape)
    for axis in sorted(a % rank for a in stated or ()):
        result.insert(axis, 1)
    return call.make(Reshape(tuple(result)), call.data)


@_handles("Transpose")
def _transpose(call: _Call) -> Node:
    order = tuple(call.get("perm") or range(len(call.data.shape))[::-1])
    return call.make(Transpose(order), call.data)


@_handles("Concat")
def _concat(call: _Call) -> Node:
    parts = [call.input(number) for number in range(len(call.inputs))]
    if all(one.constant is not None and not one.shape for one in parts):
        parts = [call.make(Reshape((1,)), one) for one in parts]
    if len(parts) == 1:
        return parts[0]
    return call.make(Concat(call.get("axis", 1) % len(parts[0].shape)), *parts)


@_handles("Slice")
def _slice(call: _Call) -> Node:
    shape = call.data.shape
    starts, ends = call.integers(1, "starts"), call.integers(2, "ends")
    if starts is None or ends is None:
        raise UnknownError("what it cuts is not known")
    axes = call.integers(3, "axes") or tuple(range(len(starts)))
    steps = call.integers(4, "") or (1,) * len(starts)
    ranges = [range(n) for n in shape]
    for start, end, axis, step in zip(starts, ends, axes, steps, strict=True):
        n = shape[axis]
        first, last = start, end
        if step < 0:
            last = None if end < -n else end  # type: ignore[assignment]
        ranges[axis] = range(n)[first:last:step]
    return _cut(call, ranges)


def _cut(call: _Call, ranges: Sequence[range]) -> Node:
    if list(map(len, ranges)) == list(call.data.shape) and all(r.step == 1 for r in ranges):
        return call.data
    if not all(map(len, ranges)) and call.data.constant is None:
        raise UnknownError("it leaves nothing of its data")
    operator = Slice(tuple(r.start for r in ranges), tuple(r.step for r in ranges),
                     tuple(map(len, ranges)))  # fmt: skip
    return call.make(operator, call.data)


@_handles("Split")
def _split(call: _Call) -> list[Node]:
    shape, axis = call.data.shape, call.get("axis", 0)
    count = len(call.node.outputs)
    sizes = call.integers(1, "split") or (-(-shape[axis] // count),) * count
    parts, at = [], 0
    for size in sizes:
        ranges = [range(n) for n in shape]
        ranges[axis] = range(shape[axis])[at : at + size]
        parts.append(_cut(call, ranges))
        at += size
    return parts


@_handles("Gather")
def _gather(call: _Call) -> Node:
    shape, axis = call.data.shape, call.get("axis", 0) % len(call.data.shape)
    index = call.constant(1)
    if index is None or index.ndim > 1:
        raise UnknownError("its indices have several axes")
    chosen = [int(n) % shape[axis] for n in index.ravel()]
    step = chosen[1] - chosen[0] if len(chosen) > 1 else 1
    if chosen != [chosen[0] + step * n for n in range(len(chosen))] or step == 0:
        raise UnknownError("its indices are not evenly apart", "Use slices.")
    ranges = [range(n) for n in shape]
    ranges[axis] = range(chosen[0], chosen[0] + step * len(chosen), step)
    cut = _cut(call, ranges)
    if index.ndim:
        return cut
    return call.make(Reshape((*shape[:axis], *shape[axis + 1 :])), cut)


@_handles("Expand")
def _expand(call: _Call) -> Node:
    shape = np.broadcast_shapes(call.data.shape, call.integers(1) or ())
    if shape != call.data.shape:
        raise UnknownError("it repeats its data", "Let operators broadcast.")
    return call.data


_MODES = {"constant": "constant", "reflect": "reflect", "edge": "edge", "wrap": "wrap"}


@_handles("Pad")
def _pad(call: _Call) -> Node:
    flat, count = call.integers(1, "pads") or (), len(call.data.shape)
    value = call.constant(2, "value")
    axes = call.integers(3) or tuple(range(count))
    pads = [(0, 0)] * count
    for number, axis in enumerate(axes):
        pads[axis] = (flat[number], flat[len(axes) + number])
    if min(map(min, pads)) < 0:
        ranges = [range(n)[max(-b, 0) : n + min(e, 0)] for n, (b, e) in
                  zip(call.data.shape, pads, strict=True)]  # fmt: skip
        call = replace(call, inputs=[_cut(call, ranges), *call.inputs[1:]])
        pads = [(max(b, 0), max(e, 0)) for b, e in pads]
    mode = _MODES[call.get("mode", "constant")]
    if not any(map(any, pads)):
        return call.data
    return call.make(Pad(tuple(pads), 0.0 if value is None else float(value), mode), call.data)


@_handles("DepthToSpace")
def _depth_to_space(call: _Call) -> Node:
    size, (batch, channels, rows, columns) = call.get("blocksize"), call.data.shape
    outputs = channels // size**2
    if call.get("mode", "DCR") == "DCR":
        parts, order = (batch, size, size, outputs, rows, columns), (0, 3, 4, 1, 5, 2)
    else:
        parts, order = (batch, outputs, size, size, rows, columns), (0, 1, 4, 2, 5, 3)
    apart = call.make(Transpose(order), call.make(Reshape(parts), call.data))
    return call.make(Reshape((batch, outputs, rows * size, columns * size)), apart)


@_handles("Resize", "Upsample")
def _resize(call: _Call) -> Node:
    mode = call.get("mode", "nearest")
    if mode not in ("nearest", "linear"):
        raise UnknownError(
            f"it interpolates by mode {mode}", "Use mode='nearest', or ConvTranspose."
        )
    shape, sizes = call.data.shape, None
    if call.name == "Upsample" or len(call.inputs) == 2:
        scales = call.constant(1, "scales")
    else:
        scales, sizes = call.constant(2), call.integers(3)
    axes = call.get("axes", tuple(range(len(shape))))
    factors, lengths = [1.0] * len(shape), list(shape)
    for number, axis in enumerate(axes):
        if sizes:
            lengths[axis] = sizes[number]
            factors[axis] = sizes[number] / shape[axis]
        elif scales is not None and scales.size:
            factors[axis] = float(np.asarray(scales).ravel()[number])
            lengths[axis] = math.floor(shape[axis] * factors[axis])
        else:
            raise UnknownError("its sizes are not known")
    if call.get("keep_aspect_ratio_policy", "stretch") != "stretch":
        raise UnknownError("it keeps the aspect ratio", "State the sizes themselves.")
    if call.batch > 1 and sizes and lengths[0] == call.batch:
        lengths[0], factors[0] = 1, 1.0
    old = call.name == "Upsample" or call.opset < 11
    along = "asymmetric" if old else call.get("coordinate_transformation_mode", "half_pixel")
    rounding = "floor" if old else call.get("nearest_mode", "round_prefer_floor")
    if mode == "linear":
        return _interpolated(call, tuple(lengths), factors, along)
    places = tuple(
        tuple(range(n)) if factor == 1 and m == n else _nearest(n, m, factor, along, rounding)
        for n, m, factor in zip(shape, lengths, factors, strict=True)
    )
    return call.make(Resize(places), call.data)


def _interpolated(call: _Call, shape: Shape, factors: Sequence[float], along: str) -> Node:
    """Return data that is interpolated, if the sizes alone say how."""
    exact = [n * f for n, f in zip(call.data.shape, factors, strict=True)] == [*shape]
    usual = along in ("half_pixel", "pytorch_half_pixel", "align_corners", "asymmetric")
    if not exact or not usual or call.get("antialias", 0):
        raise UnknownError("it interpolates by mode linear in a form that is not known here",
                           "Use mode='nearest', or ConvTranspose.")  # fmt: skip
    remedy = "Use mode='nearest', or ConvTranspose."
    operator = Foreign("Resize by mode linear", shape, remedy, "linearinterpolation",
                       (("coordinates", along),))  # fmt: skip
    return call.make(operator, call.data)


def _nearest(n: int, m: int, factor: float, along: str, rounding: str) -> Shape:
    """Return which of `n` elements each of `m` is."""
    i = np.arange(m, dtype=np.float64)
    match along:
        case "half_pixel":
            x = (i + 0.5) / factor - 0.5
        case "pytorch_half_pixel":
            x = (i + 0.5) / factor - 0.5 if m > 1 else i * 0
        case "asymmetric":
            x = i / factor
        case "align_corners":
            x = i * ((n - 1) / (m - 1)) if m > 1 else i * 0
        case _:
            raise UnknownError(f"its coordinates are by {along}", "Use half_pixel or asymmetric.")
    match rounding:
        case "round_prefer_floor":
            index = np.ceil(x - 0.5)
        case "round_prefer_ceil":
            index = np.floor(x + 0.5)
        case "floor":
            index = np.floor(x)
        case "ceil":
            index = np.ceil(x)
        case _:
            raise UnknownError(f"it rounds by {rounding}", "Use floor.")
    return tuple(int(n) for n in np.clip(index, 0, n - 1))

"""A traced network of PyTorch's as a graph of operators: one handler for each module or function.

Modules and functions of one name have the same settings: those of a module are its attributes.
"""

from __future__ import annotations

import math
import re
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
import torch
from torch import Tensor, fx, nn

import ai8x
from ai8xtools.frontends.graph.nodes import Graph, ShapeError, constant, graph_of, make
from ai8xtools.frontends.graph.nodes import Node as Result
from ai8xtools.frontends.graph.operators import (
    BatchNormalization,
    Clip,
    Concat,
    Conv,
    ConvTranspose,
    Dropout,
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
    Slice,
    Softmax,
    Transpose,
)
from ai8xtools.frontends.graph.recurrent import Recurrence
from ai8xtools.frontends.modules.instead import instead_of
from ai8xtools.frontends.modules.tracing import Node, once, path_of, trace, value_of

Shape = tuple[int, ...]
_LIMIT = 127 / 128
_PASSING = ("alphadropout", "identity", "empty", "contiguous", "clone", "float", "to",
            "detach")  # fmt: skip
_DATA = ("input", "tensors", "self")
_RESHAPING = ("flatten", "unflatten", "view", "reshape", "squeeze", "unsqueeze")
_EACH = {
    "abs": Function.ABS, "absolute": Function.ABS, "ceil": Function.CEIL, "erf": Function.ERF,
    "exp": Function.EXP, "floor": Function.FLOOR, "log": Function.LOG, "neg": Function.NEG,
    "round": Function.ROUND, "sigmoid": Function.SIGMOID, "sign": Function.SIGN,
    "sqrt": Function.SQRT, "tanh": Function.TANH, "trunc": Function.TRUNC,
    "add": Function.ADD, "iadd": Function.ADD, "sub": Function.SUB, "isub": Function.SUB,
    "subtract": Function.SUB, "mul": Function.MUL, "imul": Function.MUL, "multiply": Function.MUL,
    "div": Function.DIV, "truediv": Function.DIV, "itruediv": Function.DIV, "pow": Function.POW,
    "maximum": Function.MAX, "minimum": Function.MIN,
}  # fmt: skip
"""Functions of elements; `sub` of PyTorch's has a factor, which is settled in its handler."""
_REDUCING = {"mean": Reduction.MEAN, "amax": Reduction.MAX, "amin": Reduction.MIN,
             "sum": Reduction.SUM}  # fmt: skip


@dataclass(frozen=True, slots=True)
class _Call:
    """A node: its place and name in messages, its arguments and settings, the shape [1, ...] of its
    result. `data` is what it takes first.
    """

    place: str
    shown: str
    args: Sequence[Any]
    settings: Mapping[str, Any]
    shape: Shape

    @property
    def name(self) -> str:
        """Its name without underscores, capitals and numbers of axes: of MaxPool2d maxpool."""
        return _plain(self.shown)

    @property
    def data(self) -> Result:
        """What it takes first, as a result."""
        return _operand(self.args[0])

    def make(self, operator: Operator, *inputs: Result) -> Result:
        """Return a result of this node."""
        return make(self.place, operator, *inputs)

    def foreign(self, name: str) -> Result:
        """Return the result of what is no operator here."""
        remedy = instead_of(self.shown)
        plain = tuple((key, value) for key, value in self.settings.items()
                      if isinstance(value, int | float | str | tuple))  # fmt: skip
        stated = Foreign(name, self.shape, known=self.name, settings=plain)
        stated = stated if remedy is None else replace(stated, remedy=remedy)
        data = [one for one in listed(list(self.args)) if isinstance(one, Result)]
        own = [
            self.settings[key] for key in ("weight", "bias") if self.settings.get(key) is not None
        ]
        given = [one for one in data if one.constant is None]
        return make(self.place, stated, *given, *map(_operand, own))

    def get(self, name: str, default: Any = None) -> Any:
        """Return a setting; one that is missing or None has the default."""
        value = self.settings.get(name)
        return default if value is None else value

    def each_axis(self, name: str, default: Any = None) -> Shape:
        """Return a setting for each axis behind the channels."""
        value, axes = self.get(name, default), len(self.data.shape) - 2
        return (value,) * axes if isinstance(value, int) else tuple(value) * (axes // len(value))


def _operand(value: Any) -> Result:
    if isinstance(value, Result):
        return value
    if isinstance(value, Tensor):
        return constant(value.detach().cpu().double().numpy())
    return constant(np.asarray(value, np.float64))


Handler = Callable[[_Call], Any]
_HANDLERS: dict[str, tuple[Handler, tuple[str, ...]]] = {}


def _handles(names: str, settings: str = "") -> Callable[[Handler], Handler]:
    """Register a handler under names; `settings` are those behind the first argument."""

    def add(handler: Handler) -> Handler:
        for name in names.split():
            _HANDLERS[name] = handler, tuple(settings.split())
        return handler

    return add


def read_module(model: nn.Module, example: Tensor) -> Graph:
    """Return the graph of a network for inputs like `example` [N, C, ...].

    Raises InputError E647 for a data flow that cannot be traced.
    """
    ai8x.fuse_bn_layers(model)
    return Door(model.eval(), example[:1]).graph


class Door:
    """Follows a network; `traced` is its data flow, `returned` what it returns: results in lists,
    tuples and dictionaries. Raises InputError E647 for a data flow that cannot be traced.
    """

    def __init__(self, model: nn.Module, example: Tensor) -> None:
        self.traced = trace(model, example)
        self.returned: Any = None
        self._model = model
        self._results: dict[Node, Any] = {}
        self._constants: dict[Node, Any] = {}
        self.graph = self._followed()

    def _followed(self) -> Graph:
        nodes: list[Result] = []
        outputs: list[Result] = []
        source: Result | None = None
        for node in self.traced.nodes:
            if node.op == "placeholder":
                shape = tuple(node.meta["shape"])
                source = source or make(str(node.name), Input(shape))
                self._results[node] = source
            elif node.op == "output":
                self.returned = fx.map_arg(node.args[0], self._value)
                outputs = [one for one in listed(self.returned) if isinstance(one, Result)]
            elif _is_data(node) and any(one in self._results for one in node.all_input_nodes):
                self._results[node] = result = self._read(node)
                nodes += listed(result)
        assert source is not None
        return graph_of(source, nodes, outputs)

    def _read(self, node: Node) -> Any:
        """Return the result of a node, or several."""
        args = [self._value(one) for one in node.args]
        kwargs = {name: self._value(one) for name, one in node.kwargs.items()}
        if kwargs and not args:  # what it takes first has a name: input, tensors, or x
            args = [kwargs.pop(next((n for n in _DATA if n in kwargs), next(iter(kwargs))))]
        shape = tuple(node.meta.get("shape") or ())
        if node.op != "call_module":
            name = str(getattr(node.target, "__name__", node.target))
            names = _HANDLERS.get(_plain(name), (None, ()))[1]
            settings = dict(zip(names, args[1:], strict=False)) | kwargs
            result = _handled(_Call(path_of(node), name, args, settings, shape))
            several = node.meta.get("parts") and isinstance(result, Result)
            return [result] if several and not isinstance(result.operator, Foreign) else result
        module = self._model.get_submodule(node.target)
        if isinstance(module, ai8x.QuantizationAwareModule):
            return _ai8x_layer(_Call(path_of(node), "", args, {}, shape), module)
        if isinstance(module, ai8x.Eltwise):
            return _ai8x_elements(_Call(path_of(node), "", args, {}, shape), module)
        kind = ai8x.torch_class(module)
        name = kind.__name__
        if not kind.__module__.startswith(("torch.nn.", "ai8x")):
            return _Call(path_of(node), name, args, {}, shape).foreign(kind.__name__)
        return _handled(_Call(path_of(node), name, args, _attributes(module), shape))

    def _value(self, argument: Any) -> Any:
        """Return an argument: a result, or what does not depend on the input."""
        if isinstance(argument, list | tuple):
            return [self._value(one) for one in argument]
        if isinstance(argument, slice):
            return slice(*map(value_of, (argument.start, argument.stop, argument.step)))
        if not hasattr(argument, "all_input_nodes"):
            return argument
        if argument in self._results:
            return self._results[argument]
        if argument.meta.get("value") is not None:
            return argument.meta["value"]
        if argument not in self._constants:
            self._constants[argument] = self._computed(argument)
        return self._constants[argument]

    def _computed(self, node: Node) -> Any:
        """Return the result of a node that computes from constants."""
        args = [self._value(one) for one in node.args]
        kwargs = {name: self._value(one) for name, one in node.kwargs.items()}
        with once():
            match node.op:
                case "get_attr":
                    value: Any = self._model
                    for part in str(node.target).split("."):
                        value = getattr(value, part)
                    return value
                case "call_method":
                    return getattr(args[0], node.target)(*args[1:], **kwargs)
                case "call_module":
                    return self._model.get_submodule(node.target)(*args, **kwargs)
                case _:
                    return node.target(*args, **kwargs)


def _is_data(node: Node) -> bool:
    """Return whether a node gives tensors, not sizes."""
    return node.meta.get("shape") is not None or bool(node.meta.get("parts"))


def _plain(name: str) -> str:
    plain = name.lower().replace("_", "")
    return re.sub(r"(?<=dropout)3d$|[12]d$", "", plain)  # volumes are something else


def _attributes(module: nn.Module) -> dict[str, Any]:
    """Return the settings of a module, with its tensors."""
    tensors = {**module._parameters, **module._buffers}
    return {**vars(module), **tensors}


def listed(values: Any) -> list[Any]:
    """Return what tuples, lists and dictionaries hold, in order, however deep."""
    if isinstance(values, dict):
        values = list(values.values())
    several = isinstance(values, list | tuple)
    return [one for value in values for one in listed(value)] if several else [values]


def _handled(call: _Call) -> Any:
    if call.name in _PASSING:
        return call.data
    if call.name in _RESHAPING:
        return call.make(Reshape(call.shape), call.data)
    axes = _AXES.search(call.shown.lower())
    if axes is not None and len(call.data.shape) != int(axes[1]) + 2:
        return call.foreign(f"{call.shown} of data without a batch")
    handler, _ = _HANDLERS.get(call.name, (_unknown, ()))
    try:
        return handler(call)
    except ShapeError:  # a form that the handler does not know
        return call.foreign(call.shown)


_AXES = re.compile(r"(?:conv|pool)\w*?([123])d")
"""What moves windows over so many axes."""


def _unknown(call: _Call) -> Result:
    return call.foreign(call.shown)


# Layers with weights


@_handles("conv", "weight bias stride padding dilation groups")
def _conv(call: _Call) -> Result:
    weights, strides = _operand(call.get("weight")), call.each_axis("stride", 1)
    dilations, padding = call.each_axis("dilation", 1), call.get("padding", 0)
    data = call.data
    if padding in ("same", "valid"):
        reach = [d * (k - 1) if padding == "same" else 0
                 for k, d in zip(weights.shape[2:], dilations, strict=True)]  # fmt: skip
        pads: Pads = tuple((n // 2, n - n // 2) for n in reach)
    else:
        pads = _alike(call.each_axis("padding", 0))
    mode = call.get("padding_mode", "zeros")
    if mode != "zeros":
        data = _padded(call, data, ((0, 0), (0, 0), *pads), mode)
        pads = ((0, 0),) * len(pads)
    operator = Conv(strides, pads, dilations, int(call.get("groups", 1)))
    return call.make(operator, data, weights, *_bias(call))


@_handles("convtranspose", "weight bias stride padding output_padding groups dilation")
def _conv_transpose(call: _Call) -> Result:
    operator = ConvTranspose(
        call.each_axis("stride", 1), _alike(call.each_axis("padding", 0)),
        call.each_axis("dilation", 1), call.each_axis("output_padding", 0),
        int(call.get("groups", 1)),
    )  # fmt: skip
    return call.make(operator, call.data, _operand(call.get("weight")), *_bias(call))


@_handles("linear", "weight bias")
def _linear(call: _Call) -> Result:
    return call.make(Gemm(), call.data, _operand(call.get("weight")), *_bias(call))


@_handles("matmul")
def _matmul(call: _Call) -> Result:
    a, b = map(_operand, call.args)
    if b.constant is not None and len(b.shape) == 2:
        return call.make(Gemm(), a, constant(b.constant.T))
    return call.make(MatMul(), a, b)


@_handles("batchnorm", "running_mean running_var weight bias training momentum eps")
def _batch_norm(call: _Call) -> Result:
    mean, variance = call.get("running_mean"), call.get("running_var")
    if mean is None:
        return call.foreign("normalization by the statistics of each batch")
    gain, offset = call.get("weight", torch.ones_like(mean)), call.get("bias", 0 * mean)
    momentum = call.get("momentum", 0.1)
    operator = BatchNormalization(float(call.get("eps", 1e-5)), 1 - float(momentum))
    return call.make(operator, call.data, *map(_operand, (gain, offset, mean, variance)))


def _bias(call: _Call) -> list[Result]:
    bias = call.get("bias")
    return [] if bias is None else [_operand(bias)]


def _alike(padding: Shape) -> Pads:
    return tuple((n, n) for n in padding)


@_handles("dropout")
def _dropout(call: _Call) -> Result:
    """Return what training needs of a module; a function passes its data on."""
    if not call.shown.startswith("Dropout"):
        return call.data
    axes = 0 if call.shown == "Dropout" else int(call.shown[-2])
    return call.make(Dropout(float(call.get("p")), axes), call.data)


_ORDERS = {"rnn": (0,), "gru": (1, 0, 2), "lstm": (0, 3, 1, 2)}
"""PyTorch's gates in the order of ONNX: it has reset, update, new; input, forget, cell, output."""


@_handles("rnn gru lstm")
def _recurrent(call: _Call) -> Any:
    """Return all states and the last ones, with those of an LSTM's cells."""
    if len(call.args) != 1 or len(call.data.shape) != 3 or call.get("proj_size", 0):
        return call.foreign(call.shown)
    first, ways = bool(call.get("batch_first")), 1 + bool(call.get("bidirectional"))
    data = call.make(Transpose((1, 0, 2)), call.data) if first else call.data
    if data.shape[1] != 1:
        return call.foreign(call.shown)
    settings = (("linear_before_reset", 1), ("relu", int(call.get("nonlinearity") == "relu")))
    ends: list[list[Result]] = [[], []]
    for number in range(call.get("num_layers")):
        layer = Recurrence(call.place, call.name, _gates(call, number, ways),
                           "bidirectional" if ways == 2 else "forward", settings)  # fmt: skip
        states = layer.states(data)
        ends[0].append(layer.last(states))
        if call.name == "lstm":
            ends[1].append(layer.last(layer.states(data, cell=True)))
        joined = call.make(Transpose((0, 2, 1, 3)), states)
        data = call.make(Reshape((*joined.shape[:2], math.prod(joined.shape[2:]))), joined)
    out = call.make(Transpose((1, 0, 2)), data) if first else data
    last = [one[0] if len(one) == 1 else call.make(Concat(0), *one) for one in ends if one]
    return [out, last if call.name == "lstm" else last[0]]


def _gates(call: _Call, number: int, ways: int) -> tuple[Any, ...]:
    """Return the constants of a recurrent layer as `recurrent` takes them."""

    def stacked(*kinds: str) -> Any:
        each = []
        for end in ("", "_reverse")[:ways]:
            parts = [call.get(f"{kind}_l{number}{end}") for kind in kinds]
            whole = [np.asarray(_operand(one).constant) for one in parts if one is not None]
            orders = [np.array_split(one, len(_ORDERS[call.name])) for one in whole]
            each.append(np.concatenate([gates[at] for gates in orders for at in
                                        _ORDERS[call.name]]))  # fmt: skip
        return np.stack(each)

    weights, again = stacked("weight_ih"), stacked("weight_hh")
    has_bias = call.get(f"bias_ih_l{number}") is not None
    bias = stacked("bias_ih", "bias_hh") if has_bias else np.zeros((ways, 2 * weights.shape[1]))
    zeros = np.zeros((ways, 1, again.shape[2]))
    return weights, again, bias, *[zeros] * (1 + (call.name == "lstm"))


# Activations


@_handles("relu")
def _relu(call: _Call) -> Result:
    return call.make(Clip(0.0, math.inf), call.data)


@_handles("relu6")
def _relu6(call: _Call) -> Result:
    return call.make(Clip(0.0, 6.0), call.data)


@_handles("hardtanh", "min_val max_val")
def _hardtanh(call: _Call) -> Result:
    low, high = float(call.get("min_val", -1)), float(call.get("max_val", 1))
    return call.make(Clip(low, high), call.data)


@_handles("clamp clip", "min max")
def _clamp(call: _Call) -> Result:
    ends = call.get("min", -math.inf), call.get("max", math.inf)
    if any(isinstance(end, Result | Tensor) for end in ends):
        return call.foreign("limits by values")
    return call.make(Clip(float(ends[0]), float(ends[1])), call.data)


@_handles("clampmin", "min")
def _clamp_min(call: _Call) -> Result:
    return _clamp(call)


@_handles("leakyrelu", "negative_slope")
def _leaky(call: _Call) -> Result:
    slope = _operand(float(call.get("negative_slope", 0.01)))
    return call.make(Each(Function.PRELU), call.data, slope)


@_handles("prelu", "weight")
def _prelu(call: _Call) -> Result:
    slope = np.asarray(_operand(call.get("weight")).constant)
    axes = (1,) * (len(call.shape) - 2)
    return call.make(Each(Function.PRELU), call.data, constant(slope.reshape(-1, *axes)))


@_handles("normalize", "p dim eps")
def _normalize(call: _Call) -> Result:
    if call.get("p", 2) != 2:
        return call.foreign(call.shown)
    return call.make(LpNormalization(int(call.get("dim", 1)) % len(call.shape)), call.data)


@_handles("hardsigmoid hardswish silu")
def _gated(call: _Call) -> Result:
    if call.name == "silu":
        gate = call.make(Each(Function.SIGMOID), call.data)
    else:
        scaled = call.make(Each(Function.MUL), call.data, _operand(1 / 6))
        gate = call.make(Clip(0.0, 1.0), call.make(Each(Function.ADD), scaled, _operand(0.5)))
    if call.name == "hardsigmoid":
        return gate
    return call.make(Each(Function.MUL), call.data, gate)


@_handles("softmax logsoftmax", "dim")
def _softmax(call: _Call) -> Result:
    axes = len(call.shape)
    axis = call.get("dim", 0 if axes in (1, 3) else 1)
    return call.make(Softmax(int(axis) % axes, call.name == "logsoftmax"), call.data)


@_handles(" ".join(_EACH), "other")
def _each(call: _Call) -> Result:
    function = _EACH[call.name]
    if not function.pairs:
        return call.make(Each(function), call.data)
    operands = [call.data, _operand(call.args[1] if len(call.args) > 1 else call.get("other"))]
    factor = call.get("alpha", 1)
    if factor != 1:
        operands[1] = call.make(Each(Function.MUL), operands[1], _operand(factor))
    if call.get("rounding_mode") is not None:
        return call.foreign(f"division with rounding_mode {call.get('rounding_mode')}")
    return call.make(Each(function), *operands)


@_handles("rsub")
def _rsub(call: _Call) -> Result:
    return call.make(Each(Function.SUB), _operand(call.args[1]), call.data)


# Pooling


@_handles("maxpool maxpoolwithindices",
          "kernel_size stride padding dilation ceil_mode return_indices")  # fmt: skip
def _max_pool(call: _Call) -> Result:
    if call.get("return_indices", False):
        return call.foreign("MaxPool with indices")
    return _pool(call, average=False)


@_handles("avgpool", "kernel_size stride padding ceil_mode count_include_pad divisor_override")
def _avg_pool(call: _Call) -> Result:
    pooled = _pool(call, average=True)
    divisor, size = call.get("divisor_override"), math.prod(call.each_axis("kernel_size"))
    if divisor is None:
        return pooled
    return call.make(Each(Function.MUL), pooled, _operand(size / divisor))


def _pool(call: _Call, *, average: bool) -> Result:
    window = call.each_axis("kernel_size")
    strides = call.each_axis("stride", window) if call.get("stride") != [] else window
    operator = Pool(
        average, window, strides, _alike(call.each_axis("padding", 0)),
        call.each_axis("dilation", 1), bool(call.get("ceil_mode", False)),
        bool(call.get("count_include_pad", True)),
    )  # fmt: skip
    return call.make(operator, call.data)


@_handles("adaptiveavgpool adaptivemaxpool", "output_size")
def _adaptive(call: _Call) -> Result:
    before, after = call.data.shape[2:], call.shape[2:]
    if len(before) != len(after):
        return call.foreign(f"{call.name} with indices")
    if any(n % m for n, m in zip(before, after, strict=True)):
        return call.foreign("pooling by windows of different sizes")
    window, ones = tuple(n // m for n, m in zip(before, after, strict=True)), (1,) * len(before)
    average = call.name == "adaptiveavgpool"
    return call.make(Pool(average, window, window, _alike((0,) * len(before)), ones), call.data)


@_handles(" ".join(_REDUCING), "dim keepdim")
def _reduce(call: _Call) -> Result:
    dims, axes = call.get("dim"), len(call.data.shape)
    listed = range(axes) if dims in (None, [], ()) else [dims] if isinstance(dims, int) else dims
    if set(listed) == set(range(axes)):
        return call.foreign(f"{call.name} over all axes")
    chosen = tuple(sorted(one % axes for one in listed))
    keep = len(call.shape) == axes
    return call.make(Reduce(_REDUCING[call.name], chosen, keep), call.data)


@_handles("max min", "other")
def _extreme(call: _Call) -> Result:
    if len(call.args) < 2 or not isinstance(call.args[1], Result):
        return call.foreign(call.name)
    function = Function.MAX if call.name == "max" else Function.MIN
    return call.make(Each(function), call.data, call.args[1])


# Shapes


@_handles("permute transpose swapaxes")
def _permute(call: _Call) -> Result:
    axes = len(call.shape)
    order = list(range(axes))
    if call.name == "permute":
        stated = call.settings.get("dims") or call.args[1:]
        order = [int(n) % axes for n in listed(list(stated))]
    else:
        a, b = (int(n) % axes for n in (*call.args[1:], *call.settings.values())[:2])
        order[a], order[b] = order[b], order[a]
    return call.make(Transpose(tuple(order)), call.data)


@_handles("cat concat concatenate", "dim")
def _cat(call: _Call) -> Result:
    parts = [_operand(one) for one in call.args[0]]
    return call.make(Concat(int(call.get("dim", 0)) % len(call.shape)), *parts)


_SIZES = ("size", "chunks", "split_size", "split_sizes", "split_size_or_sections")


@_handles("chunk split splitwithsizes tensorsplit unbind", "size dim")
def _split(call: _Call) -> Any:
    size = next((call.get(name) for name in _SIZES if call.get(name) is not None), None)
    shape = call.data.shape
    axis = int(call.get("dim", 0)) % len(shape)
    many = shape[axis]
    if call.name == "chunk" and size is not None:
        size = -(-many // int(size))
    if isinstance(size, int) and call.name in ("chunk", "split"):
        sizes = [min(size, many - at) for at in range(0, many, size)]
    elif isinstance(size, list) and call.name.startswith("split"):
        sizes = size
    else:
        return call.foreign(call.name)
    parts = []
    for number, count in enumerate(sizes):
        start = tuple(sum(sizes[:number]) if n == axis else 0 for n in range(len(shape)))
        counts = tuple(count if n == axis else size for n, size in enumerate(shape))
        parts.append(call.make(Slice(start, (1,) * len(shape), counts), call.data))
    return parts


@_handles("getitem")
def _getitem(call: _Call) -> Result:
    whole, index = call.args[0], call.args[1]
    if not isinstance(whole, Result):
        if isinstance(index, int) and index >= len(whole):  # of a maximum
            return make(call.place, Foreign("indices", call.shape), whole[0])
        part: Result = whole[index]
        return part
    if isinstance(whole.operator, Foreign):
        return call.make(replace(whole.operator, shape=call.shape), whole)
    indices = index if isinstance(index, list) else [index]
    if Ellipsis in indices:
        at = indices.index(Ellipsis)
        missing = len(whole.shape) - len([one for one in indices if one is not None]) + 1
        indices = [*indices[:at], *[slice(None)] * missing, *indices[at + 1 :]]
    parts = [one for one in indices if one is not None]
    if not all(isinstance(one, int | slice) for one in parts):
        return call.foreign("an index of values")
    ranges = [
        range(n)[one] if isinstance(one, slice) else [range(n)[one]]
        for n, one in zip(whole.shape, [*parts, *[slice(None)] * len(whole.shape)], strict=False)
    ]
    cut = Slice(tuple(r[0] if len(r) else 0 for r in ranges),
                tuple(r.step if isinstance(r, range) else 1 for r in ranges),
                tuple(map(len, ranges)))  # fmt: skip
    return call.make(Reshape(call.shape), call.make(cut, whole))


@_handles("interpolate upsample", "size scale_factor mode align_corners recompute_scale_factor")
def _interpolate(call: _Call) -> Result:
    mode = call.get("mode", "nearest")
    if mode in ("bilinear", "linear"):
        along = "align_corners" if call.get("align_corners", False) else "half_pixel"
        found = call.foreign(f"{call.name} by mode {mode}")
        assert isinstance(found.operator, Foreign)
        operator = replace(found.operator, known="linearinterpolation",
                           settings=(("coordinates", along),))  # fmt: skip
        return call.make(operator, call.data)
    if mode not in ("nearest", "nearest-exact"):
        return call.foreign(f"{call.name} by mode {mode}")
    factors = call.get("scale_factor")
    places: list[Shape] = [tuple(range(n)) for n in call.shape[:2]]
    for axis, (n, m) in enumerate(zip(call.data.shape[2:], call.shape[2:], strict=True)):
        factor = factors[axis] if isinstance(factors, list | tuple) else factors
        scale = n / m if factor is None else 1 / float(factor)
        half = 0.5 if mode == "nearest-exact" else 0.0
        places.append(tuple(min(int((i + half) * scale), n - 1) for i in range(m)))
    return call.make(Resize(tuple(places)), call.data)


_MODES = {"constant": "constant", "zeros": "constant", "reflect": "reflect", "replicate": "edge",
          "circular": "wrap"}  # fmt: skip


@_handles("pad", "pad mode value")
def _pad(call: _Call) -> Result:
    flat, axes = list(call.get("pad")), len(call.data.shape)
    pairs = [(flat[2 * n], flat[2 * n + 1]) for n in range(len(flat) // 2)]
    pads = tuple(([(0, 0)] * axes + pairs[::-1])[-axes:])
    return _padded(call, call.data, pads, call.get("mode", "constant"), call.get("value", 0))


@_handles("zeropad constantpad reflectionpad replicationpad circularpad")
def _pad_module(call: _Call) -> Result:
    kinds = {"reflectionpad": "reflect", "replicationpad": "replicate", "circularpad": "circular"}
    settings = {"pad": call.get("padding"), "mode": kinds.get(call.name, "constant"),
                "value": call.get("value", 0)}  # fmt: skip
    return _pad(_Call(call.place, call.name, call.args, settings, call.shape))


def _padded(call: _Call, data: Result, pads: Pads, mode: str, value: float = 0) -> Result:
    if mode not in _MODES or min(map(min, pads)) < 0:
        return call.foreign(f"padding by {mode}")
    if not any(map(any, pads)):
        return data
    return call.make(Pad(pads, float(value), _MODES[mode]), data)


@_handles("channelshuffle pixelshuffle", "factor")
def _shuffle(call: _Call) -> Result:
    batch, channels, *size = call.data.shape
    if call.name == "channelshuffle":
        groups = int(call.get("groups", call.get("factor", 1)))
        parts = call.make(Reshape((batch, groups, channels // groups, *size)), call.data)
        order = (0, 2, 1, *range(3, 3 + len(size)))
    else:
        factor = int(call.get("upscale_factor", call.get("factor", 1)))
        outputs = channels // factor**2
        parts = call.make(Reshape((batch, outputs, factor, factor, *size)), call.data)
        order = (0, 1, 4, 2, 5, 3)
    return call.make(Reshape(call.shape), call.make(Transpose(order), parts))


# Layers of ai8x, in floating point


def _ai8x_layer(call: _Call, layer: Any) -> Result:
    """Return the result of a layer of ai8x: pooling, operator, factor, activation, limits."""
    result = call.data
    if layer.pool is not None:
        name = "avgpool" if isinstance(layer.pool, nn.AvgPool1d | nn.AvgPool2d) else "maxpool"
        settings = _attributes(layer.pool)
        result = _handled(_Call(f"{call.place}.pool", name, [result], settings, call.shape))
    if layer.op is None:
        return result
    names = {nn.Linear: "linear", nn.ConvTranspose2d: "convtranspose"}
    name = next((n for kind, n in names.items() if isinstance(layer.op, kind)), "conv")
    inner = _Call(call.place, name, [result], _attributes(layer.op), call.shape)
    down, up = layer.scales()
    factor = float(down) * (1.0 if layer.wide else float(up))
    result = call.make(Each(Function.MUL), _handled(inner), _operand(factor))
    if layer.activation == "Abs":
        result = call.make(Each(Function.ABS), result)
    limited = not layer.wide and (not layer.has_thresholds or bool(layer.clamp_activation))
    low, high = (-1.0, _LIMIT) if limited else (-math.inf, math.inf)
    low = 0.0 if layer.activation == "ReLU" else low
    if low == -math.inf and high == math.inf:
        return result
    return make(f"{call.place}.clamp", Clip(low, high), result)


def _ai8x_elements(call: _Call, module: Any) -> Result:
    """Return the result of an element-wise layer of ai8x, with its limits."""
    functions = {ai8x.Add: Function.ADD, ai8x.Sub: Function.SUB}
    function = next((f for kind, f in functions.items() if isinstance(module, kind)), None)
    if function is None:
        return call.foreign(type(module).__name__)
    result = call.data
    for one in call.args[1:]:
        result = call.make(Each(function), result, one)
    if isinstance(module.clamp, ai8x.Empty):
        return result
    return make(f"{call.place}.clamp", Clip(-1.0, _LIMIT), result)

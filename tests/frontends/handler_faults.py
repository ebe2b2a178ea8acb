# ruff: noqa: ARG005 - samples take two results
"""A fault in any handler of a door is noticed by the comparison that ends each import.

A handler makes operators of a module, a function or a node of ONNX. Each operator that it makes is
changed in one setting, one constant or the order of what it takes, so that shapes stay and results
do not. What is imported with such a handler must be refused.

    python -m tests.frontends.handler_faults    # all faults, on all roads (about a minute)
"""

from __future__ import annotations

import contextlib
import enum
import math
import operator as python
import sys
import tempfile
import warnings
from collections import Counter
from collections.abc import Callable, Iterator
from dataclasses import fields, replace
from pathlib import Path
from types import SimpleNamespace
from typing import Any
from unittest import mock

import numpy as np
import onnx
import torch
from torch import Tensor, nn
from torch.nn import functional

import ai8x
from ai8xtools.checkpoint.onnx_graph import read_graph
from ai8xtools.commands.loader.graph_proof import executed, prove_graph
from ai8xtools.commands.loader.options import ModelSource
from ai8xtools.commands.q15 import mcu
from ai8xtools.commands.q15.network import _compare, graph_of
from ai8xtools.commands.quantize import importer
from ai8xtools.commands.quantize.samples import as_maps
from ai8xtools.diagnostics import DiagnosticError
from ai8xtools.diagnostics.errors import InputError
from ai8xtools.frontends.graph.compositions import compositions
from ai8xtools.frontends.graph.nodes import Node, constant, rewritten, shape_of
from ai8xtools.frontends.graph.operators import Each, Function, Reshape, Slice, Transpose
from ai8xtools.frontends.graph.passes import improved, results
from ai8xtools.frontends.layers import Refusal, refuse
from ai8xtools.frontends.modules import calls as torch_calls
from ai8xtools.frontends.modules.door import read_module
from ai8xtools.frontends.modules.plain.network import import_network, import_operators
from ai8xtools.frontends.onnx import calls as onnx_calls
from ai8xtools.frontends.onnx.door import read_operators
from ai8xtools.frontends.onnx.network import describe_onnx
from ai8xtools.synthesis.options import EncodeOptions, ResolveOptions
from ai8xtools.synthesis.parse import Described
from ai8xtools.synthesis.understand import understand

ROADS = ("accelerator", "kernels", "operators")
SHAPE = (3, 6, 6)
Sample = Callable[[Any, Any], Any]
Variant = tuple[str, Any, tuple[Node, ...]]


# Faults


def _changed(value: Any) -> Iterator[Any]:
    """Yield other values of a setting."""
    match value:
        case bool():
            yield not value
        case enum.Enum():
            pairs = getattr(value, "pairs", None)  # of functions: how many operands
            alike = (one for one in type(value) if getattr(one, "pairs", None) == pairs)
            yield from (one for one in alike if one is not value)
        case float():
            yield value + 0.25 if math.isfinite(value) else math.copysign(0.25, value)
        case int():
            yield from (value + 1, value - 1)
        case (int(), int()) if value[1] > 0:
            yield value[0] + 1, value[1] - 1
        case tuple():
            for n in range(1, len(value)):
                yield (*value[: n - 1], value[n], value[n - 1], *value[n + 1 :])
            for place, one in enumerate(value):
                yield from ((*value[:place], x, *value[place + 1 :]) for x in _changed(one))


def variants(made: Any, place: str, operator: Any, inputs: tuple[Node, ...]) -> Iterator[Variant]:
    """Yield an operator with other settings or inputs, and what was changed."""
    if len(inputs) > 1:
        yield "order", operator, (inputs[1], inputs[0], *inputs[2:])
        yield "operand", operator, (inputs[0], inputs[0], *inputs[2:])
    for number, one in enumerate(inputs):
        if one.constant is not None:
            other = constant(np.asarray(one.constant, np.float64) + 0.3, one.place)
            yield "constant", operator, (*inputs[:number], other, *inputs[number + 1 :])
    if isinstance(operator, Reshape) and inputs and len(inputs[0].shape) > 2:
        axes = len(inputs[0].shape)
        turned = made(place, Transpose((*range(axes - 2), axes - 1, axes - 2)), inputs[0])
        yield "values", operator, (made(place, Reshape(inputs[0].shape), turned),)
    for one in fields(operator):
        for value in _changed(getattr(operator, one.name)):
            yield one.name, replace(operator, **{one.name: value}), inputs


def _is_within(operator: Any, shape: tuple[int, ...]) -> bool:
    """Return whether a section takes nothing beyond its data."""
    if not isinstance(operator, Slice):
        return True
    ends = zip(operator.start, operator.step, operator.count, shape, strict=True)
    return all(min(a, a + s * (n - 1)) >= 0 and max(a, a + s * (n - 1)) < size and s
               for a, s, n, size in ends)  # fmt: skip


class Planted:
    """The fault of a number in what a handler makes; `label` says which, once it is made."""

    def __init__(self, door: Any, name: str, number: int) -> None:
        self.label = ""
        self._door, self._name, self._number = door, name, number
        self._seen, self._active, self._made = 0, False, False

    @contextlib.contextmanager
    def within(self) -> Iterator[None]:
        """Let the door make it."""
        self._seen, real, made = 0, self._door._HANDLERS[self._name], self._door.make
        handler = real[0] if isinstance(real, tuple) else real

        def handled(call: Any) -> Any:
            self._active, self._made = True, False
            try:
                found = handler(call)
            finally:
                self._active = False
            if self._made or not isinstance(found, Node):
                return found
            self._seen += 1  # it passes on what it takes, or makes a constant
            if self._seen != self._number:
                return found
            self.label = "result"
            if found.constant is not None:
                return constant(found.constant + 1, found.place)
            return made(found.place, Each(Function.MUL), found, constant(np.array(1.25)))

        def make(place: str, operator: Any, *inputs: Node) -> Node:
            shapes = [one.shape for one in inputs]
            self._made = True
            for label, other, given in variants(made, place, operator, inputs):
                if not self._active:
                    break
                with contextlib.suppress(ArithmeticError, IndexError, ValueError):
                    found = shape_of(other, [one.shape for one in given])
                    if found == shape_of(operator, shapes) and _is_within(other, shapes[0]):
                        self._seen += 1
                        if self._seen == self._number:
                            self.label = f"{type(operator).__name__}, {label}"
                            return made(place, other, *given)
            return made(place, operator, *inputs)

        entry = (handled, real[1]) if isinstance(real, tuple) else handled
        with (
            mock.patch.dict(self._door._HANDLERS, {self._name: entry}),
            mock.patch.object(self._door, "make", make),
        ):
            yield


# Networks with a handler each


class Network(nn.Module):
    """What a function makes of two results; a fully connected layer follows, unless it `ends`."""

    def __init__(self, sample: Any, ends: bool) -> None:
        super().__init__()
        self.a, self.b = nn.Conv2d(3, 4, 3, padding=1), nn.Conv2d(3, 4, 3, padding=1)
        self.part = sample if isinstance(sample, nn.Module) else None
        self.sample = sample if self.part is None else lambda a, b: self.part(a)  # type: ignore[misc]
        self.last = nn.LazyLinear(3) if not ends else None

    def forward(self, x: Tensor) -> Any:
        y = self.sample(self.a(x), self.b(x))
        return y if self.last is None else self.last(y.flatten(1))


class Weighted(nn.Module):
    """A function of data and a weight."""

    def __init__(self, function: Any, *shape: int) -> None:
        super().__init__()
        self.function, self.weight = function, nn.Parameter(torch.randn(shape))

    def forward(self, x: Tensor) -> Tensor:
        made: Tensor = self.function(x, self.weight)
        return made


class Series(nn.Module):
    """A recurrent layer over the rows of the mean of channels."""

    def __init__(self, kind: Any) -> None:
        super().__init__()
        self.part = kind(6, 4, batch_first=True)

    def forward(self, x: Tensor) -> Tensor:
        states: Tensor = self.part(x.mean(1))[0]
        return states


def _inplace(function: Any) -> Sample:
    return lambda a, b: function(a + 0, b)


def _norm() -> nn.Module:
    norm = nn.BatchNorm2d(4)
    for one in (norm.weight, norm.bias, norm.running_mean, norm.running_var):
        assert one is not None
        one.data.uniform_(0.5, 1.5)
    return norm


EACH: dict[str, Sample] = {
    **{name: (lambda f: lambda a, b: f(a))(getattr(torch, name)) for name in (
        "abs", "absolute", "ceil", "erf", "exp", "floor", "neg", "round", "sigmoid", "sign",
        "tanh", "trunc")},
    **{name: (lambda f: lambda a, b: f(a.abs() + 1))(getattr(torch, name)) for name in (
        "log", "sqrt")},
    **{name: getattr(torch, name) for name in (
        "add", "sub", "subtract", "maximum", "minimum")},
    "mul": lambda a, b: a * 0.7, "multiply": lambda a, b: torch.multiply(a, 0.7),
    "div": lambda a, b: torch.div(a, 3.0), "truediv": lambda a, b: a / 3.0,
    "pow": lambda a, b: a**2.0, "iadd": _inplace(python.iadd), "isub": _inplace(python.isub),
    "imul": lambda a, b: python.imul(a + 0, 0.7),
    "itruediv": lambda a, b: python.itruediv(a + 0, 3.0),
}  # fmt: skip
TORCH: dict[str, Any] = {
    **EACH,
    **{one.__name__.lower(): Series(one) for one in (nn.RNN, nn.GRU, nn.LSTM)},
    "conv": lambda a, b: a, "convtranspose": nn.ConvTranspose2d(4, 4, 3, 2, 1, 1),
    "linear": lambda a, b: a, "matmul": Weighted(torch.matmul, 6, 6), "batchnorm": _norm(),
    "dropout": nn.Dropout(0.5), "relu": nn.ReLU(), "relu6": nn.ReLU6(),
    "hardtanh": nn.Hardtanh(-0.5, 0.5), "clamp": lambda a, b: a.clamp(0, 0.5),
    "clip": lambda a, b: a.clip(0, 0.5), "clampmin": lambda a, b: torch.clamp_min(a, 0.0),
    "leakyrelu": nn.LeakyReLU(0.1), "prelu": nn.PReLU(4),
    "normalize": lambda a, b: functional.normalize(a.mean((2, 3)), dim=1),
    "hardsigmoid": nn.Hardsigmoid(), "hardswish": nn.Hardswish(), "silu": nn.SiLU(),
    "softmax": lambda a, b: a.mean((2, 3)).softmax(1),
    "logsoftmax": lambda a, b: a.mean((2, 3)).log_softmax(1),
    "rsub": lambda a, b: torch.rsub(a, 1.0), "flip": lambda a, b: a.flip(2, 3),
    "where": lambda a, b: torch.where(torch.arange(6) > 2, a, b),
    "maskedfill": lambda a, b: a.masked_fill(torch.arange(6) > 2, 0.5),
    "scaleddotproductattention": lambda a, b: functional.scaled_dot_product_attention(a, b, a + b),
    "maxpool": nn.MaxPool2d(2),
    "maxpoolwithindices": lambda a, b: functional.max_pool2d_with_indices(a, 2)[0],
    "avgpool": nn.AvgPool2d(3, 1, 1),
    "adaptiveavgpool": nn.AdaptiveAvgPool2d(2), "adaptivemaxpool": nn.AdaptiveMaxPool2d(2),
    "mean": lambda a, b: a.mean((2, 3)), "amax": lambda a, b: a.amax((2, 3)),
    "amin": lambda a, b: a.amin((2, 3)), "sum": lambda a, b: a.sum((2, 3)), "max": torch.max,
    "min": torch.min, "permute": lambda a, b: a.permute(0, 3, 2, 1),
    "transpose": lambda a, b: a.transpose(1, 3), "swapaxes": lambda a, b: a.swapaxes(1, 3),
    **dict.fromkeys(("cat", "concat", "concatenate"), None),
    "chunk": lambda a, b: a.chunk(2, 1)[0], "split": lambda a, b: a.split(2, 1)[1],
    "splitwithsizes": lambda a, b: torch.split_with_sizes(a, [1, 3], 1)[0],
    "tensorsplit": lambda a, b: torch.tensor_split(a, 2, 1)[0],
    "unbind": lambda a, b: a.unbind(1)[0], "getitem": lambda a, b: a[:, :, :4:2, ::2],
    "slice": lambda a, b: torch.ops.aten.slice.Tensor(a, 2, 1, 5, 2),
    "select": lambda a, b: a.select(1, 2),
    "upsamplenearest": lambda a, b: torch.ops.aten.upsample_nearest2d.vec(a, None, [2.0, 2.0]),
    "interpolate": lambda a, b: functional.interpolate(a, scale_factor=2),
    "upsample": nn.Upsample(scale_factor=2),
    "pad": lambda a, b: functional.pad(a, (1, 1, 1, 1)), "zeropad": nn.ZeroPad2d(1),
    "constantpad": nn.ConstantPad2d(1, 0.0), "reflectionpad": nn.ReflectionPad2d(1),
    "replicationpad": nn.ReplicationPad2d(1), "circularpad": nn.CircularPad2d(1),
    "channelshuffle": nn.ChannelShuffle(2), "pixelshuffle": nn.PixelShuffle(2),
    "pixelunshuffle": nn.PixelUnshuffle(2), "getattr": lambda a, b: a.mT,
    "stack": lambda a, b: torch.stack((a, b), 1).flatten(1, 2),
    "expand": lambda a, b: a.mean((2, 3), True).expand(-1, 4, 6, 6),
    "expandas": lambda a, b: a.mean((2, 3), True).expand_as(a),
    "repeat": lambda a, b: a.repeat(1, 1, 2, 1), "tile": lambda a, b: a.tile(1, 1, 2, 1),
}  # fmt: skip
for _name in ("cat", "concat", "concatenate"):
    TORCH[_name] = (lambda f: lambda a, b: f((a, b), 1))(getattr(torch, _name))
ENDS = ("softmax", "logsoftmax", "normalize")


INPUTS = torch.rand(importer._SAMPLES, *SHAPE, generator=torch.Generator().manual_seed(0)) * 2 - 1


class OfTorch:
    """A network of torch whose door calls a handler."""

    door: Any = torch_calls
    names = TORCH.keys()

    def __init__(self, name: str) -> None:
        self.roads = ROADS[: 1 if name in ENDS else 3]
        self.codes: dict[str, str] = {}
        torch.manual_seed(3)
        self.network = Network(TORCH[name], name in ENDS).eval()
        with torch.no_grad():
            self._expected = self.network(INPUTS).double()

    def read(self) -> Any:
        """Return the graph of operators."""
        return read_module(self.network, INPUTS[:1])

    def accelerator(self) -> None:
        """Import it for the accelerator."""
        import_network(self.network, INPUTS[:1], "net", {})

    def operators(self) -> None:
        """Import it for a microcontroller, where every operator is computed."""
        graph = improved(self.read(), (compositions,))
        samples = [*INPUTS[:2, None].double().numpy()]
        if any(one is None for one in results(graph, samples[0])):
            raise InputError("E670", "there is no kernel", "net", "")
        mcu._compare(graph, samples, [self._expected[:2].numpy()], "net")

    def kernels(self) -> None:
        """Import it for kernels of 16 and 8 bits."""
        graph, left = graph_of(self.read(), "net")
        _compare(self._expected, graph, as_maps(INPUTS), left, "net", "net")


# Graphs of ONNX with a handler each

Build = Callable[["Nodes"], str]


class Nodes:
    """Nodes from `x`; `a` and `b` are results [1, 4, 6, 6], in `whole` numbers of 8 bits or not."""

    def __init__(self, *, whole: bool = False) -> None:
        self.nodes: list[Any] = []
        self.tensors: list[Any] = []
        self._random = np.random.default_rng(3)
        self._whole = whole
        self.a, self.b = (self.front() for _ in "ab")

    def front(self) -> str:
        """Return the result of a convolution."""
        sums = str(self("Conv", "x", self.drawn(4, 3, 3, 3), pads=[1] * 4))
        if not self._whole:
            return sums
        rounded = self("Floor", self("Add", self("Mul", sums, _f(1 / 128)), _f(0.5)))
        return str(self("Clip", rounded, _f(-128)[0], _f(127)[0]))

    def drawn(self, *shape: int) -> Any:
        """Return random weights."""
        drawn = self._random.normal(0, 0.4, shape)
        return (np.rint(30 * drawn) if self._whole else drawn).astype(np.float32)

    def __call__(self, kind: str, *inputs: Any, outputs: int = 1, **attributes: Any) -> Any:
        names = [one if isinstance(one, str) else self.constant(one) for one in inputs]
        made = [f"{kind}{len(self.nodes)}_{n}" for n in range(outputs)]
        self.nodes.append(onnx.helper.make_node(kind, names, made, name=made[0], **attributes))
        return made[0] if outputs == 1 else made

    def constant(self, value: Any) -> str:
        """Return the name of a constant."""
        if value is None:
            return ""
        name = f"constant{len(self.tensors)}"
        self.tensors.append(onnx.numpy_helper.from_array(np.asarray(value), name))
        return name

    def write(self, path: Path, output: str, opset: int) -> None:
        """Write the file."""
        info = onnx.helper.make_tensor_value_info
        made = onnx.helper.make_graph(self.nodes, "net", [info("x", 1, (1, *SHAPE))],
                                      [info(output, 1, None)], self.tensors)  # fmt: skip
        opsets = [onnx.helper.make_opsetid(*one) for one in (("", opset), ("com.microsoft", 1))]
        model = onnx.helper.make_model(made, opset_imports=opsets, ir_version=8)
        path.write_bytes(model.SerializeToString())


def _of_one(kind: str) -> Build:
    return lambda g: str(g(kind, g.a))


def _of_two(kind: str) -> Build:
    return lambda g: str(g(kind, g.a, g.b))


def _over_maps(kind: str) -> Build:
    return lambda g: str(g(kind, g.a, axes=[2, 3]))


def _positive(kind: str) -> Build:
    return lambda g: str(g(kind, g("Add", g("Abs", g.a), _f(1))))


def _integers(kind: str = "", **more: Any) -> Build:
    """Return what makes values of integers with a scale, perhaps behind a layer of them."""

    def build(g: Nodes) -> str:
        scale, zero = np.float32(0.05), np.int8(3)
        made = g(
            "QuantizeLinear", g.a if "Conv" in kind or not kind else g("Flatten", g.a), scale, zero
        )
        if kind:
            shape = (4, 4, 3, 3) if "Conv" in kind else (144, 5)
            weights = (30 * g.drawn(*shape)).astype(np.int8)
            own = (np.float32(0.01), np.int8(0))
            bias = () if "Gemm" not in kind else (None,)
            made = g(kind, made, scale, zero, weights, *own, *bias, scale, zero, **more)
        return str(g("DequantizeLinear", made, scale, zero))

    return build


def _f(*values: float) -> Any:
    return np.array(values, np.float32)


def _i(*values: int) -> Any:
    return np.array(values, np.int64)


def _recurrent(kind: str, parts: int) -> Build:
    def build(g: Nodes) -> Any:
        series = g("Transpose", g("ReduceMean", g.a, axes=[1], keepdims=0), perm=[1, 0, 2])
        weights = g.drawn(1, 4 * parts, 6), g.drawn(1, 4 * parts, 4)
        return g("Reshape", g(kind, series, *weights, hidden_size=4), _i(1, 24))

    return build


ONNX: dict[str, Build] = {
    **{kind: _recurrent(kind, parts) for kind, parts in (("RNN", 1), ("GRU", 3), ("LSTM", 4))},
    **{kind: _of_one(kind) for kind in (
        "Abs", "Ceil", "Erf", "Exp", "Floor", "Neg", "Round", "Sigmoid", "Sign", "Tanh", "Relu",
        "LeakyRelu", "HardSigmoid", "HardSwish", "Identity", "Dropout", "GlobalAveragePool",
        "GlobalMaxPool", "Softmax", "LogSoftmax", "Flatten")},
    **{kind: _positive(kind) for kind in ("Log", "Sqrt", "Reciprocal")},
    **{kind: _of_two(kind) for kind in (
        "Add", "Sub", "Max", "Min", "Sum", "Mean")},
    "Where": lambda g: g("Where", np.arange(6) > 2, g.a, g.b),
    "Div": lambda g: g("Div", g.a, _f(3)), "Mul": lambda g: g("Mul", g.a, _f(3)),
    "Pow": lambda g: g("Pow", g.a, _f(2)),
    "PRelu": lambda g: g("PRelu", g.a, g.drawn(4, 1, 1)),
    "Constant": lambda g: g("Add", g.a, g("Constant", value_float=0.5)),
    "Shape": lambda g: g("Reshape", g.a, g("Shape", g.b)),
    "Conv": lambda g: g.a, "Gemm": lambda g: g("Gemm", g("Flatten", g.a), g.drawn(144, 5), _f(1)),
    "ConvTranspose": lambda g: g("ConvTranspose", g.a, g.drawn(4, 4, 3, 3), strides=[2, 2],
                                 pads=[1] * 4, output_padding=[1, 1]),
    "MatMul": lambda g: g("MatMul", g("Flatten", g.a), g.drawn(144, 5)),
    "BatchNormalization": lambda g: g(
        "BatchNormalization", g.a, *(abs(g.drawn(4)) + 0.5 for _ in range(4))),
    "Clip": lambda g: g("Clip", g.a, _f(0)[0], _f(0.5)[0]), "Cast": lambda g: g("Cast", g.a, to=1),
    "LpNormalization": lambda g: g("LpNormalization", g("ReduceMean", g.a, axes=[2, 3], keepdims=0),
                                   axis=1),
    "MaxPool": lambda g: g("MaxPool", g.a, kernel_shape=[2, 2], strides=[2, 2]),
    "AveragePool": lambda g: g("AveragePool", g.a, kernel_shape=[3, 3], pads=[1] * 4),
    **{kind: _over_maps(kind) for kind in ("ReduceMean", "ReduceMax", "ReduceMin", "ReduceL2")},
    "ReduceSum": lambda g: g("ReduceSum", g.a, _i(2, 3)),
    "Reshape": lambda g: g("Reshape", g.a, _i(1, -1)),
    "Squeeze": lambda g: g("Squeeze", g("Unsqueeze", g.a, _i(1)), _i(1)),
    "Unsqueeze": lambda g: g("Unsqueeze", g.a, _i(1)),
    "Transpose": lambda g: g("Transpose", g.a, perm=[0, 3, 2, 1]),
    "Concat": lambda g: g("Concat", g.a, g.b, axis=1),
    "Slice": lambda g: g("Slice", g.a, _i(0, 0), _i(6, 4), _i(2, 3), _i(2, 2)),
    "Split": lambda g: g("Concat", *reversed(g("Split", g.a, axis=1, outputs=2)), axis=1),
    "Gather": lambda g: g("Gather", g.a, _i(1, 2), axis=1),
    "Expand": lambda g: g("Expand", g("GlobalAveragePool", g.a), _i(1, 4, 6, 6)),
    "Tile": lambda g: g("Tile", g.a, _i(1, 1, 2, 1)),
    "SpaceToDepth": lambda g: g("SpaceToDepth", g.a, blocksize=2),
    "Pad": lambda g: g("Pad", g.a, _i(0, 0, 1, 1, 0, 0, 1, 1)),
    "DepthToSpace": lambda g: g("DepthToSpace", g.a, blocksize=2),
    "Resize": lambda g: g("Resize", g.a, None, _f(1, 1, 2, 2),
                          coordinate_transformation_mode="asymmetric", nearest_mode="floor"),
    "Equal": lambda g: g("Cast", g("Equal", g.a, g.b), to=1),
    "Mod": lambda g: g("Mod", g.a, _f(2), fmod=1),
    "Upsample": lambda g: g("Upsample", g.a, _f(1, 1, 2, 2)),
    "QuantizeLinear": _integers(), "DequantizeLinear": _integers(),
    "QLinearConv": _integers("QLinearConv"), "QLinearMatMul": _integers("QLinearMatMul"),
    "com.microsoft.QGemm": _integers("QGemm", domain="com.microsoft"),
}  # fmt: skip
_OPSETS = {"Upsample": 9}


class OfOnnx:
    """A graph of ONNX whose door calls a handler."""

    door: Any = onnx_calls
    names = ONNX.keys()

    def __init__(self, name: str) -> None:
        self.roads = () if name in ENDS_OF_ONNX else ROADS[:2]
        self.codes: dict[str, str] = {}
        self._folder = tempfile.TemporaryDirectory()
        self._path = Path(self._folder.name) / "net.onnx"
        opset, nodes = _OPSETS.get(name, 17), Nodes()
        output = ONNX[name](nodes)
        nodes.write(self._path, output, opset)
        if name not in ENDS_OF_ONNX:
            size = math.prod(self.read().outputs[0].shape)
            flat = nodes("Flatten", output)
            nodes.write(self._path, nodes("Gemm", flat, nodes.drawn(size, 3)), opset)
        self._expected = executed(str(self._path), INPUTS.numpy())

    def read(self) -> Any:
        """Return the graph of operators."""
        graph, refusals = read_operators(read_graph(str(self._path)), SHAPE)
        refuse(refusals, "net")
        return graph

    def accelerator(self) -> None:
        """Import it for the accelerator."""
        network = import_operators(self.read(), "net", {}).network
        with mock.patch.object(importer, "executed", lambda *_rest: self._expected):
            importer._prove(network, str(self._path), SHAPE)

    def kernels(self) -> None:
        """Import it for kernels of 16 and 8 bits."""
        graph, left = graph_of(self.read(), "net")
        assert self._expected is not None
        expected = torch.from_numpy(self._expected[0])
        _compare(expected, graph, as_maps(INPUTS), left, "net", "net")


class OfIntegers:
    """A graph of whole numbers whose door calls a handler."""

    door: Any = onnx_calls
    names = ONNX.keys()
    sample = np.random.default_rng(1).integers(-128, 128, (1, *SHAPE)).astype(np.float64)

    def __init__(self, name: str) -> None:
        self.roads = () if name in ENDS_OF_ONNX else ("integers",)
        self.codes: dict[str, str] = {}
        self._folder = tempfile.TemporaryDirectory()
        self._path = Path(self._folder.name) / "net.onnx"
        nodes = Nodes(whole=True)
        output = ONNX[name](nodes)
        if name in ("Add", "Sub", "Sum", "Constant"):
            output = nodes("Clip", output, _f(-128)[0], _f(127)[0])
        nodes.write(self._path, output, _OPSETS.get(name, 17))

    def read(self) -> Any:
        """Return the graph of operators."""
        graph, refusals = read_operators(read_graph(str(self._path)), SHAPE)
        refuse(refusals, "net")
        return graph

    def integers(self) -> None:
        """Import it with its own integers."""
        _, left = prove_integers(str(self._path), self.sample[0].astype(np.int64))
        refuse((Refusal(one, "it is left to the application") for one in left), "net")


def prove_integers(path: str, sample: Any) -> tuple[Any, tuple[str, ...]]:
    """Make a network of a graph of whole numbers; return it, with the nodes that are left to the
    application, once both agree.
    """
    found, tensors = describe_onnx(path, None, None)
    np.save(file := str(Path(path).with_suffix(".npy")), sample)
    options = ResolveOptions(checkpoint_file=path, tensors=tensors, sample_input=file)
    described = Described(found.text, found.model, found.nodes)
    network, _, problems = understand(described, None, options)
    assert not [p for p in problems if p.severity == "error"], problems
    loader: Any = SimpleNamespace(resolve=options, encode=EncodeOptions())
    source = replace(ModelSource(path), left=found.left, doubts=found.doubts)
    assert not prove_graph(loader, source, network)
    return network, found.left


ENDS_OF_ONNX = ("Softmax", "LogSoftmax", "LpNormalization")
DOORS: tuple[Any, ...] = (OfTorch, OfOnnx)


def taken(of: Any, road: str) -> str:
    """Return the code of a refusal, or nothing."""
    try:
        getattr(of, road)()
    except InputError as refusal:
        return refusal.code
    except DiagnosticError as refusal:
        return refusal.diagnostics[0].code
    return ""


def roads_of(of: Any) -> Iterator[str]:
    """Yield the roads on which a network is taken, and is not left to the application; `codes` of
    the others are noted.
    """
    for road in of.roads:
        of.codes[road] = taken(of, road)
        if not of.codes[road]:
            yield road


def rewritten_of(of: Any) -> Any:
    """Return the graph of operators, with what others are composed of."""
    return rewritten(of.read(), compositions)


def effective(of: Any, name: str) -> Iterator[Planted]:
    """Yield the faults of a handler that change what its network computes."""
    sample = getattr(of, "sample", INPUTS[:1].double().numpy())
    expected = results(rewritten_of(of), sample)
    number = 0
    while True:
        fault = Planted(of.door, name, number := number + 1)
        quiet, found = np.errstate(all="ignore"), []
        with fault.within(), quiet, contextlib.suppress(ValueError, IndexError, InputError):
            found = results(rewritten_of(of), sample)
        if not fault.label:
            return
        both = zip(expected, found, strict=False)  # what cannot be computed is noticed anyway
        if any(np.abs(np.asarray(one) - other).max() > 0.01 for one, other in both):
            yield fault


def main() -> int:
    """Plant all faults, and print a table; return 1 if one is not noticed."""
    ai8x.set_device(87, simulate=False, round_avg=False, verbose=False)
    torch.set_num_threads(1)
    warnings.simplefilter("ignore")  # of numpy, about faults that divide by zero
    counts: Counter[tuple[str, str, str]] = Counter()
    for door in (*DOORS, OfIntegers):
        for name in door.names:
            of = door(name)
            roads = [*roads_of(of)]
            counts[door.__name__, "handlers", "taken" if roads else "refused"] += 1
            faults = [*effective(of, name)] if roads else []
            for fault in faults:
                for road in roads:
                    with fault.within():
                        code = taken(of, road)
                    counts[door.__name__, road, code or "MISSED"] += 1
                    if not code:
                        print(f"{door.__name__} {name}: {fault.label}, on the road {road}")
            if roads and not faults:
                print(f"{door.__name__} {name}: no fault")
            if not roads:
                print(f"{door.__name__} {name}: refused {of.codes}")
    for key, count in sorted(counts.items()):
        print(*key, count)
    return int(any(code == "MISSED" for _, _, code in counts))


if __name__ == "__main__":
    sys.exit(main())

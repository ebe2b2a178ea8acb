"""A network as ONNX graph: whole numbers as fractions of 32 bits, step by step as on the chip.

Source: docs/hardware/arithmetic.md.
"""

from __future__ import annotations

import importlib.util
from collections.abc import Sequence
from typing import Any, assert_never

import numpy as np
from numpy.typing import NDArray

from ai8xtools.commands.decompile.files import layer_tensor
from ai8xtools.commands.loader.graph_proof import runners
from ai8xtools.diagnostics.errors import reason_of
from ai8xtools.synthesis.network import (
    NETWORK_INPUT,
    Activation,
    Combination,
    Layer,
    Network,
    Operator,
    Size,
)
from ai8xtools.synthesis.simulate import simulate
from device.chip import BIAS_UNIT

_INPUT, _LOW, _HIGH, _OPSET, _IR = "input", -128.0, 127.0, 18, 10


class NoGraphError(Exception):
    """There is no graph: the package onnx is not installed, a layer reads a rolling buffer or data
    of several sizes, or sums are too large for fractions of 32 bits.
    """


def graph_bytes(network: Network, *, average_rounding: bool) -> bytes:
    """Return the file of a graph, which computes the sample as the simulation does.

    Raises NoGraphError.
    """
    if importlib.util.find_spec("onnx") is None:
        raise NoGraphError("the package onnx is not installed")
    builder = _Builder(network, average_rounding)
    for layer in network.executed():
        builder.add(layer)
    model = builder.model()
    expected = simulate(network, average_rounding=average_rounding).outputs
    targets = [expected[layer.index].reshape(-1) for layer in network.outputs()]
    last = "nothing executes it"
    for run in runners(model, _INPUT):
        try:
            results = run(network.sample[None].astype(np.float32))
        except Exception as exc:
            last = reason_of(exc)
            continue
        if all(map(np.array_equal, results, targets)):
            return bytes(model.SerializeToString())
        last = "its sums are too large to be exact"
    raise NoGraphError(f"the graph does not compute what the words do: {last}")


class _Builder:
    """Nodes and constants of a graph, layer by layer."""

    def __init__(self, network: Network, average_rounding: bool) -> None:
        self._onnx: Any = importlib.import_module("onnx")
        self._network, self._rounding = network, average_rounding
        self._nodes: list[Any] = []
        self._constants: list[Any] = []
        self._shapes: dict[str, tuple[int, ...]] = {_INPUT: network.sample.shape}

    def model(self) -> Any:
        """Return the model."""
        helper, kind = self._onnx.helper, self._onnx.TensorProto.FLOAT
        outputs = [
            helper.make_tensor_value_info(_name(layer), kind, [1, *self._shapes[_name(layer)]])
            for layer in self._network.outputs()
        ]
        sample = [1, *self._network.sample.shape]
        inputs = [helper.make_tensor_value_info(_INPUT, kind, sample)]
        graph = helper.make_graph(self._nodes, self._network.arch, inputs, outputs, self._constants)
        return helper.make_model(
            graph, opset_imports=[helper.make_opsetid("", _OPSET)], ir_version=_IR
        )

    def add(self, layer: Layer) -> None:
        """Add the nodes of a layer."""
        rounding = self._rounding and not layer.operator.one_dimensional
        operands = self._operands(layer)
        if layer.combination and not layer.pool_first:
            operands = [self._combined(operands, layer.combination)]
        operands = [self._pooled(one, layer, rounding=rounding) for one in operands]
        value = operands[0]
        if layer.combination and layer.pool_first:
            value = self._combined(operands, layer.combination)
        if layer.flatten:
            value = self._reshaped(value, (layer.flat_channels, 1, 1))
        if layer.has_weights:
            value = self._activated(self._summed(value, layer), layer)
        self._node("Identity", value, name=_name(layer))
        self._shapes[_name(layer)] = (layer.out_channels, *layer.out_dim)

    def _operands(self, layer: Layer) -> list[str]:
        """Return the values that a layer reads, one for each operand, in its size."""
        previous = self._network.predecessor(layer)
        own = NETWORK_INPUT if previous is None else previous.index
        sources = layer.sources if layer.sources is not None else (own,)
        names = [_INPUT if s == NETWORK_INPUT else f"layer{s}" for s in sources]
        sizes = {self._shapes.get(name, ())[1:] for name in names}
        if len(sizes) > 1 or min(sources) < NETWORK_INPUT:
            raise NoGraphError(f"{layer} reads a rolling buffer, or data of several sizes")
        count = sum(self._shapes[name][0] for name in names) // layer.operands
        (size,) = sizes
        if len(names) > 1 and len(names) != layer.operands:
            names = [self._node("Concat", *names, axis=1)]
        if len(names) != layer.operands:
            ends = [(count * n, count * (n + 1)) for n in range(layer.operands)]
            names = [self._sliced(names[0], [start], [end], [1], [1]) for start, end in ends]
        before, after = layer.in_crop
        if before or after:
            names = [self._sliced(n, [before], [size[0] - after], [2], [1]) for n in names]
            size = size[0] - before - after, size[1]
        if size != layer.in_dim:
            names = [self._reshaped(name, (layer.in_channels, *layer.in_dim)) for name in names]
        return names

    def _combined(self, names: Sequence[str], combination: Combination) -> str:
        match combination:
            case Combination.ADD:
                return self._clipped(self._chained("Add", names), _LOW)
            case Combination.SUB:
                return self._clipped(self._chained("Sub", names), _LOW)
            case Combination.OR:
                return self._bitwise("BitwiseOr", names)
            case Combination.XOR:
                return self._bitwise("BitwiseXor", names)
            case _:
                assert_never(combination)

    def _chained(self, operation: str, names: Sequence[str]) -> str:
        total = names[0]
        for name in names[1:]:
            total = self._node(operation, total, name)
        return total

    def _bitwise(self, operation: str, names: Sequence[str]) -> str:
        kinds = self._onnx.TensorProto
        whole = [self._node("Cast", name, to=kinds.INT32) for name in names]
        return self._node("Cast", self._chained(operation, whole), to=kinds.FLOAT)

    def _pooled(self, name: str, layer: Layer, *, rounding: bool) -> str:
        pooling = layer.pooling
        if not pooling.reduces:
            return name
        strides, dilations = _along(pooling.stride, layer), _along(pooling.dilation, layer)
        shape = _along(pooling.window, layer)
        if not pooling.active:
            ends = [(n - 1) * s + 1 for n, s in zip(layer.pooled_dim, strides, strict=True)]
            return self._sliced(name, [0, 0], ends, [2, 3], strides)
        fields: dict[str, Any] = {"kernel_shape": shape, "strides": strides, "dilations": dilations}
        if not pooling.average:
            return self._node("MaxPool", name, **fields)
        ones = np.ones((layer.in_channels, 1, *shape), np.float32)
        total = self._node("Conv", name, self._constant(ones), group=layer.in_channels, **fields)
        size = self._node("Abs", total)
        mean = self._node("Div", size, self._number(shape[0] * shape[1]))
        if rounding:
            mean = self._node("Add", mean, self._number(0.5))
        signed = self._node("Mul", self._node("Sign", total), self._node("Floor", mean))
        return self._clipped(signed, _LOW)

    def _summed(self, name: str, layer: Layer) -> str:
        shape = layer.out_channels, layer.flat_channels // layer.groups, *layer.kernel
        weights = np.ones(shape, np.float32) if layer.weights is None else layer_tensor(layer)
        inputs = [name, self._constant(weights.reshape(*weights.shape, *(1,) * (4 - weights.ndim)))]
        if layer.bias is not None:
            inputs.append(self._constant((BIAS_UNIT * layer.bias).astype(np.float32)))
        fields: dict[str, Any] = {"group": layer.groups, "pads": [*layer.pad, *layer.pad]}
        match layer.operator:
            case Operator.CONVTRANSPOSE2D:
                stride, more = [*layer.stride], [layer.output_pad] * 2
                return self._node(
                    "ConvTranspose", *inputs, strides=stride, output_padding=more, **fields
                )
            case Operator.CONV1D | Operator.CONV2D | Operator.LINEAR:
                return self._node("Conv", *inputs, dilations=[layer.dilation, 1], **fields)
            case Operator.NONE:
                raise ValueError(f"{layer} has no sums")
            case _:
                assert_never(layer.operator)

    def _activated(self, name: str, layer: Layer) -> str:
        if layer.output_width != 32:
            right = 7 - layer.shift
            name = self._node("Mul", name, self._number(2.0**-right))
            if right > 0:
                name = self._node("Floor", self._node("Add", name, self._number(0.5)))
            name = self._clipped(name, _LOW)
        match layer.activation:
            case None:
                return name
            case Activation.RELU:
                return self._clipped(name, 0.0)
            case Activation.ABS:
                return self._clipped(self._node("Abs", name), 0.0)
            case _:
                assert_never(layer.activation)

    def _clipped(self, name: str, low: float) -> str:
        return self._node("Clip", name, self._number(low), self._number(_HIGH))

    def _reshaped(self, name: str, shape: tuple[int, ...]) -> str:
        return self._node("Reshape", name, self._constant(np.array([1, *shape], np.int64)))

    def _sliced(
        self,
        name: str,
        starts: Sequence[int],
        ends: Sequence[int],
        axes: Sequence[int],
        steps: Sequence[int],
    ) -> str:
        parts = (np.array(part, np.int64) for part in (starts, ends, axes, steps))
        return self._node("Slice", name, *map(self._constant, parts))

    def _number(self, value: float) -> str:
        return self._constant(np.array(value, np.float32))

    def _constant(self, value: NDArray[Any]) -> str:
        name = f"constant{len(self._constants)}"
        self._constants.append(self._onnx.numpy_helper.from_array(value, name))
        return name

    def _node(self, kind: str, *inputs: str, name: str | None = None, **fields: Any) -> str:
        name = name or f"value{len(self._nodes)}"
        self._nodes.append(self._onnx.helper.make_node(kind, inputs, [name], name, **fields))
        return name


def _name(layer: Layer) -> str:
    return f"layer{layer.index}"


def _along(size: Size, layer: Layer) -> list[int]:
    """Return a size of pooling, which acts along the rows alone where there is one column."""
    return [size[0], 1 if layer.in_dim[1] == 1 else size[1]]

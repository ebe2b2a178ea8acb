"""The nodes of an ONNX graph become layers of a description, and tensors with their names.

Source: docs/checkpoints.md, "ONNX graphs".
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import replace
from typing import Any

import numpy as np

from checkpoint.onnx_graph import OnnxGraph, OnnxNode
from frontends.layers import INPUT, DescribedLayer, Refusal, times, unused
from frontends.onnx import geometry
from frontends.onnx.constants import bounds, computed
from frontends.onnx.folding import Array, Before, clipped, normalized, scaled
from frontends.onnx.values import Tensors, Value, dims

_READS = ("Conv", "ConvTranspose", "Gemm", "MatMul")
_PASSING = ("Identity", "Dropout")
_RESHAPING = ("Flatten", "Reshape", "Squeeze", "Unsqueeze")
_INSTEAD = {
    "Sigmoid": "Use Relu inside; at the end, compute it in the application.",
    "Tanh": "Use Relu inside; at the end, compute it in the application.",
    "LeakyRelu": "Use Relu.", "PRelu": "Use Relu.", "HardSwish": "Use Relu.", "Elu": "Use Relu.",
    "Gelu": "Use Relu.", "Erf": "Use Relu.",
    "Transpose": "Leave the channels on axis 1; average a map before it is flattened.",
    "Resize": "Use ConvTranspose with stride 2.", "Upsample": "Use ConvTranspose with stride 2.",
    "Split": "Use a Conv for each part.", "Slice": "Use a Conv for each part.",
    "LSTM": "Use Conv along the time.", "GRU": "Use Conv along the time.",
    "QuantizeLinear": "Export the integers as weights, without quantize and dequantize nodes.",
    "DequantizeLinear": "Export the integers as weights, without quantize and dequantize nodes.",
    "QLinearConv": "Export the integers as weights of Conv.",
    "Pad": "Use the pads of the Conv.",
    "Mul": "Use Add or Concat: the chip multiplies by weights only.",
    "Div": "Use Add or Concat: the chip multiplies by weights only.",
}  # fmt: skip


class Follower:
    """Follows the nodes in order; `layers` and `tensors` (by layer) are what they say."""

    def __init__(self, graph: OnnxGraph, shape: tuple[int, ...]) -> None:
        self.layers: list[DescribedLayer] = []
        self.tensors: dict[int, Tensors] = {}
        self.refusals: list[Refusal] = []
        self.left: list[str] = []
        self._graph = graph
        self._constants = {name: np.asarray(value) for name, value in graph.constants.items()}
        self._values: dict[str, Value] = {graph.input_name: Value((INPUT,), shape)}
        self._readers: dict[str, list[OnnxNode]] = {}
        self._channels_last = geometry.channels_last(graph)
        self._prefixes: dict[str, str] = {}  # names of layers: the constants that they stand for
        for node in graph.nodes:
            for name in node.inputs:
                self._readers.setdefault(name, []).append(node)
        for node in graph.nodes:
            self._visit(node)
        for name in graph.outputs:
            self._deliver(name)

    def _deliver(self, name: str) -> None:
        """Note a result of the graph; a last operator without activation has 32 bits."""
        value = self._values.get(name)
        if value is None:
            return
        if value.pool:
            value = self._pooled(name, value)
        for index in set(value.inputs) - {INPUT}:
            layer = self.layers[index]
            layer.is_output = True
            tensors = self.tensors.get(index)
            if tensors is not None and not tensors.rounded and layer.keys["activate"] == "None":
                layer.keys["output_width"] = 32

    def _visit(self, node: OnnxNode) -> None:
        data = [name for name in node.inputs if name in self._values]
        if not data:
            if all(not name or name in self._constants for name in node.inputs):
                self._fold(node)
            return  # else it takes what has been refused
        known = self._values.keys() | self._constants.keys()
        if any(name and name not in known for name in node.inputs):
            return  # so does this
        if node.operator == "Shape":
            sizes = (1, *self._values[data[0]].shape)
            self._constants[node.outputs[0]] = np.asarray(sizes, np.int64)
            return
        found = self._step(node, data)
        if isinstance(found, Refusal):
            self.refusals.append(found)
        elif found is not None:
            self._values[node.outputs[0]] = found

    def _fold(self, node: OnnxNode) -> None:
        """Compute a node of constants."""
        try:
            value = computed(node, [self._constants[name] for name in node.inputs if name])
        except (ValueError, IndexError, TypeError, KeyError):
            value = None
        if value is None:
            why = f"{node.operator} of constants is not known here"
            remedy = _INSTEAD.get(node.operator, "Simplify the graph before.")
            self.refusals.append(Refusal(node.name, why, remedy))
        else:
            self._constants[node.outputs[0]] = value

    def _step(self, node: OnnxNode, data: Sequence[str]) -> Value | Refusal | None:
        """Return the result of a node that takes data."""
        value, kind = self._values[data[0]], node.operator
        if any(self._values[name].left for name in data):
            if kind in _READS:
                return Refusal(node.name, "what it takes was left to the application")
            self.left.append(node.name)
            inputs = tuple(i for name in data for i in self._values[name].inputs)
            return replace(value, inputs=inputs)
        if value.averaged and (value.part or kind in ("Sign", "Abs")):
            return self._truncated(node, data, value)
        if kind in _READS:
            return self._operator(node, value)
        if kind in ("Add", "Sub") and len(data) == 2:
            return self._sum(node, data)
        if kind == "Concat":
            return self._joined(node, data)
        if kind in _PASSING or geometry.cuts_nothing(node, value.shape, self._constants):
            return value
        if kind == "Transpose" and self._channels_last and data[0] == self._graph.input_name:
            return value
        if kind in _RESHAPING:
            return self._reshaped(node, value)
        if "Pool" in kind or kind == "ReduceMean":
            return self._pooling(node, data[0], value)
        last = kind == "ReduceL2" or (
            kind in ("Softmax", "LogSoftmax", "Transpose") and self._is_last(node)
        )
        if last:
            self.left.append(node.name)
            return replace(value, left=True)
        return self._behind(node, data[0], value)

    def _truncated(self, node: OnnxNode, data: Sequence[str], value: Value) -> Value | Refusal:
        """Follow how an average loses its fraction: its sign times the floor of its magnitude."""
        match node.operator, len(data):
            case "Sign", 1:
                return replace(value, part="sign")
            case "Abs", 1 if any(r.operator == "Sign" for r in self._readers[data[0]]):
                return replace(value, part="magnitude")
            case "Floor", 1 if value.part == "magnitude":
                return value
            case "Mul", 2:
                return replace(value, part=None)
        return Refusal(node.name, f"the accelerator has no {node.operator} of an average")

    # What follows an operator

    def _behind(self, node: OnnxNode, name: str, value: Value) -> Value | Refusal:
        """Return the result of a node that may belong to the layer in front of it."""
        kind = node.operator
        single = len(self._readers[name]) == 1 and name not in self._graph.outputs
        layer = value.inputs[0] if value.open and single else None
        if kind in ("Relu", "Abs"):
            if value.positive:
                return value
            name = "ReLU" if kind == "Relu" else "Abs"
            if layer is not None and self.layers[layer].keys["activate"] == "None":
                pooled = bool(value.pool)
                if not (pooled and kind == "Abs") and "avg_pool" not in value.pool:
                    self.layers[layer].keys["activate"] = name
                    return replace(value, positive=True)
            return self._rectifier(node, value, name)
        before = None if layer is None else Before(self.layers[layer], self.tensors[layer])
        if kind == "Clip":
            limits = bounds(node, self._constants_of(node.inputs))
            return clipped(node, value, limits, before)
        if kind in ("Mul", "Div", "Add", "Sub") and before is not None:
            (constant,) = (self._constants.get(n) for n in node.inputs if n not in self._values)
            found = None if constant is None else scaled(node, value, constant, before)
            if found is not None:
                return found
        if kind == "BatchNormalization" and before is not None and not value.positive:
            return normalized(node, value, self._constants_of(node.inputs[1:5]), before)
        whole = layer is not None or value.join == "elements" or value.averaged
        if kind == "Floor" and whole:
            return value
        why = f"the accelerator has no {kind}"
        if kind == "BatchNormalization":
            why = "batch normalization that follows no layer"
            return Refusal(node.name, why, "Put it directly behind a Conv.")
        instead = _INSTEAD.get(kind)
        return Refusal(node.name, why, instead) if instead else Refusal(node.name, why)

    def _constants_of(self, names: Sequence[str]) -> list[Array | None]:
        """Return the values of names that are constants, None for data and what is missing."""
        return [None if n in self._values else self._constants.get(n) for n in names]

    # Layers

    def _operator(self, node: OnnxNode, value: Value) -> Value | Refusal:
        """Add the layer of a node with weights."""
        inputs = [self._constants.get(name) for name in node.inputs[1:3] if name]
        if node.operator == "MatMul" and node.inputs[0] in self._constants:
            return Refusal(node.name, "the weights stand on the left", "Multiply data by weights.")
        if not inputs or any(one is None for one in inputs):
            return Refusal(
                node.name, "its weights are not constants",
                "Export the integers as weights, without quantize and dequantize nodes.",
            )  # fmt: skip
        weights = np.asarray(inputs[0], np.float64)
        if node.operator in ("Gemm", "MatMul"):
            transposed = node.attributes.get("transB", 0) and node.operator == "Gemm"
            weights = weights if transposed or weights.ndim != 2 else weights.T
        found = geometry.operator(node, weights, value.shape)
        if isinstance(found, Refusal):
            return found
        if geometry.enlarges_simply(node, weights):
            weights = geometry.widened(weights)
        bias = np.asarray(inputs[1], np.float64).ravel() if len(inputs) > 1 else None
        if found.before > 1:
            value = self._decimated(node, value, found.before)
        keys = {"op": found.op, **dims(value), **value.pool}
        if value.flat:
            keys["flatten"] = True
            if value.join or value.inputs != (len(self.layers) - 1,):
                keys["in_channels"] = math.prod(value.taken or value.shape)
        keys |= {**found.keys, "activate": "None", "quantization": 8}
        name = self._prefix(node)
        layer = DescribedLayer(
            unused(name.replace(".", "_"), [x.name for x in self.layers]), value.inputs,
            value.join, keys, value.taken or value.shape, found.given, node=node.name, weights=name,
        )  # fmt: skip
        self.tensors[len(self.layers)] = Tensors(weights, bias)
        self.layers.append(layer)
        result = Value((len(self.layers) - 1,), found.given, open=True)
        return self._decimated(node, result, found.after) if found.after > 1 else result

    def _prefix(self, node: OnnxNode) -> str:
        """Return what checkpoints call the layer: by the name of its weights, else of the node."""
        name = node.inputs[1] if node.inputs[0] in self._values else node.inputs[0]
        if name.endswith(".weight"):
            wanted = name.removesuffix(".weight").removesuffix(".op")
        else:
            wanted = node.name.strip("/").replace("/", ".") or f"layer{len(self.layers)}"
        taken = self._prefixes.setdefault(wanted, name)
        return wanted if taken == name else f"{wanted}.{len(self.layers)}"

    def _decimated(self, node: OnnxNode, value: Value, stride: int) -> Value:
        """Return every `stride`-th pixel; the reader does it."""
        if value.pool:
            value = self._pooled(node.name, value)
        sizes = tuple((size - 1) // stride + 1 for size in value.shape[1:])
        pool = {"max_pool": 1, "pool_stride": stride}
        return replace(value, pool=pool, taken=value.shape, shape=(value.shape[0], *sizes))

    def _rectifier(self, node: OnnxNode, value: Value, activation: str) -> Value | Refusal:
        """Add a layer that only applies an activation: kernels that are exactly one."""
        if value.flat or len(value.shape) < 2:
            return Refusal(node.name, "it stands behind no layer", "Put it behind a Conv or Gemm.")
        return self._ones(node.name, value, activation, 1)

    def _ones(self, label: str, value: Value, activation: str, size: int) -> Value:
        """Add a layer of kernels that are exactly one in the middle.

        Those of `size` 3 put a border of zeros around the map.
        """
        channels, axes = value.shape[0], len(value.shape) - 1
        pad = size - 1
        keys = {"op": f"Conv{axes}d", **dims(value), **value.pool,
                "kernel_size": f"{size}x{size}" if axes == 2 else size, "pad": pad,
                "activate": activation, "quantization": 8}  # fmt: skip
        name = unused(label, [x.name for x in self.layers])
        given = (channels, *(n + 2 * pad - size + 1 for n in value.shape[1:]))
        layer = DescribedLayer(name, value.inputs, value.join, keys, value.taken or value.shape,
                               given, node=label, weights=name)  # fmt: skip
        kernels = np.zeros((channels, channels, *(size,) * axes))
        middle: Any = (np.arange(channels), np.arange(channels), *(size // 2,) * axes)
        kernels[middle] = 64
        self.tensors[len(self.layers)] = Tensors(kernels, None, 1, rounded=True, made=True)
        self.layers.append(layer)
        positive = value.positive or activation != "None"
        return Value((len(self.layers) - 1,), given, positive=positive)

    def _sum(self, node: OnnxNode, data: Sequence[str]) -> Value | Refusal:
        """Add an element-wise layer."""
        values = [self._whole(name) for name in data]
        if values[0].shape != values[1].shape:
            shapes = " and ".join(times(value.shape) for value in values)
            return Refusal(
                node.name, f"its operands have the shapes {shapes}", "Add results of one shape."
            )
        inputs = tuple(value.inputs[0] for value in values)
        name = unused(node.name, [x.name for x in self.layers])
        shape = values[0].shape
        self.layers.append(
            DescribedLayer(name, inputs, "elements", {"op": node.operator}, shape, shape,
                           node=node.name)
        )  # fmt: skip
        positive = node.operator == "Add" and all(value.positive for value in values)
        return Value((len(self.layers) - 1,), shape, "elements", positive=positive)

    def _whole(self, name: str) -> Value:
        """Return a value as the result of one layer."""
        value = self._values[name]
        plain = len(value.inputs) == 1 and not value.pool and not value.flat
        return value if plain else self._pooled(name, value)

    def _joined(self, node: OnnxNode, data: Sequence[str]) -> Value | Refusal:
        """Return joined channels."""
        values = [self._values[name] for name in data]
        if len(node.inputs) == 1:
            return values[0]
        if len(data) != len(node.inputs):
            return Refusal(node.name, "it joins data with a constant")
        if node.attributes.get("axis", 0) not in (1, -len(values[0].shape)):
            return Refusal(node.name, "it joins along another axis", "Join channels: axis=1.")
        values = [self._pooled(n, v) if v.pool or v.flat else v
                  for n, v in zip(data, values, strict=True)]  # fmt: skip
        shape = (sum(value.shape[0] for value in values), *values[0].shape[1:])
        inputs = tuple(index for value in values for index in value.inputs)
        return Value(inputs, shape, "channels", positive=all(v.positive for v in values))

    # Pooling and shapes

    def _pooling(self, node: OnnxNode, name: str, value: Value) -> Value | Refusal:
        """Return a pooled value; the reader pools where it can."""
        found = geometry.pooling(node, value.shape, self._constants)
        if isinstance(found, Refusal):
            return found
        if value.pool or value.flat:
            value = self._pooled(name, value)
        if found.padded and not value.positive and "max_pool" in found.keys:
            return Refusal(node.name, "it pads where negative values come into it; on the "
                           "accelerator zeros stand there",
                           "Put a Relu in front of it, or pool without padding.")  # fmt: skip
        if found.padded:
            value = self._ones(f"{node.name}_padding", value, "None", 3)
        pooled = replace(
            value, pool=found.keys, taken=value.shape, shape=found.given,
            averaged="avg_pool" in found.keys,
            open=value.open and "max_pool" in found.keys and len(self._readers[name]) == 1,
        )  # fmt: skip
        if len(found.given) == 1:  # a mean without the axes that it takes away
            pooled = replace(pooled, shape=(*found.given, *(1 for _ in value.shape[1:])))
            pooled = replace(self._pooled(node.name, pooled), shape=found.given)
        if not self._read_by_operator(node.outputs[0]) and not pooled.open and pooled.pool:
            return self._pooled(node.name, pooled)
        return pooled

    def _read_by_operator(self, name: str) -> bool:
        """Return whether one operator alone takes a value, perhaps clamped before."""
        readers = self._readers.get(name, [])
        if sorted(reader.operator for reader in readers) == ["Abs", "Sign"]:
            sign = next(reader for reader in readers if reader.operator == "Sign")
            (product,) = self._readers[sign.outputs[0]]
            return self._read_by_operator(product.outputs[0])
        if len(readers) != 1 or name in self._graph.outputs:
            return False
        (reader,) = readers
        if reader.operator in _READS:
            return True
        follows = reader.operator in ("Floor", "Clip", "Relu", *_PASSING)
        return follows and self._read_by_operator(reader.outputs[0])

    def _pooled(self, name: str, value: Value) -> Value:
        """Add a layer that only pools, or that puts joined data together."""
        keys = {"op": "Passthrough", **dims(value), **value.pool}
        label = unused(name, [x.name for x in self.layers])
        taken = value.taken or value.shape
        layer = DescribedLayer(label, value.inputs, value.join, keys, taken, value.shape, node=name)
        self.layers.append(layer)
        index = len(self.layers) - 1
        averaged = "avg_pool" in value.pool
        return Value((index,), value.shape, positive=value.positive, averaged=averaged)

    def _reshaped(self, node: OnnxNode, value: Value) -> Value | Refusal:
        """Return flattened data; other changes of the shape are refused unless they are last."""
        shape = geometry.reshaped(node, value.shape, self._constants)
        if shape == value.shape:
            return value
        if shape is not None and len(shape) == 1 and shape[0] == math.prod(value.shape):
            if value.pool:
                value = self._pooled(node.name, value)
            flat = math.prod(value.shape[1:]) > 1
            return replace(value, shape=shape, taken=value.taken or value.shape, flat=flat)
        if self._is_last(node):
            self.left.append(node.name)
            return replace(value, left=True)
        plain = not value.pool and not value.flat and shape is not None and len(shape) > 1
        if plain and shape is not None and shape[0] == value.shape[0]:
            return replace(value, shape=shape, dims=shape[1:], open=False)
        said = times(shape) if shape is not None else "an unknown shape"
        return Refusal(node.name, f"{times(value.shape)} becomes {said}", "Flatten all of it.")

    def _is_last(self, node: OnnxNode) -> bool:
        """Return whether only reshaping and softmax stand behind a node."""
        readers = [r for name in node.outputs for r in self._readers.get(name, [])]
        allowed = (*_RESHAPING, *_PASSING, "Softmax", "LogSoftmax", "Transpose", "Concat")
        return all(
            r.operator == "Shape" or (r.operator in allowed and self._is_last(r)) for r in readers
        )

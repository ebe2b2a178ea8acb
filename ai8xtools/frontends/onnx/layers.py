"""The nodes of an ONNX graph become layers of a description, and tensors with their names.

Source: docs/checkpoints.md, "ONNX graphs".
"""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from dataclasses import replace
from typing import Any

import numpy as np

from ai8xtools.checkpoint.onnx_graph import OnnxGraph, OnnxNode
from ai8xtools.frontends.layers import INPUT, DescribedLayer, Refusal, times, unused
from ai8xtools.frontends.onnx import geometry
from ai8xtools.frontends.onnx.constants import bounds, computed
from ai8xtools.frontends.onnx.folding import Array, Before, clipped, normalized, scaled
from ai8xtools.frontends.onnx.maker import PASSING, READS, Maker
from ai8xtools.frontends.onnx.values import Pending, Tensors, Value, dims

_RESHAPING = ("Flatten", "Reshape", "Squeeze", "Unsqueeze")
_MOST_JOINED = 1024
"""Each result has a channel at least."""
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

_LEAST_AXES = 3
"""Axes of the kernels of a convolution, at least."""


class Follower(Maker):
    """Follows the nodes in order; `layers` and `tensors` (by layer) are what they say."""

    def __init__(
        self, graph: OnnxGraph, shape: tuple[int, ...], *, depthwise: bool = False
    ) -> None:
        super().__init__(graph, shape, depthwise=depthwise)
        self.left: list[str] = []
        self._channels_last = geometry.channels_last(graph)
        self._prefixes: dict[str, str] = {}  # names of layers: the constants that they stand for
        for node in graph.nodes:
            self._visit(node)
        for name in graph.outputs:
            self._deliver(name)

    def _deliver(self, name: str) -> None:
        """Note a result of the graph; a last operator without activation has 32 bits."""
        value = self._values.get(name)
        if value is None:
            return
        if value.pending is not None:
            self.refusals.append(_unfinished(value.pending))
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
        if any(n and n not in self._values and n not in self._constants for n in node.inputs):
            return  # so does this
        if node.operator == "Shape":
            sizes = (1, *self._values[data[0]].shape)
            self._constants[node.outputs[0]] = np.asarray(sizes, np.int64)
            return
        try:
            found = self._step(node, data)
        except (ArithmeticError, ValueError, IndexError, TypeError):
            why = f"its constants or attributes are not those that {node.operator} takes"
            found = Refusal(
                node.name, why, "Export the graph again, or check it with onnx.checker."
            )
        if isinstance(found, Refusal):
            self.refusals.append(found)
        elif found is not None:
            self._values[node.outputs[0]] = found

    def _fold(self, node: OnnxNode) -> None:
        """Compute a node of constants."""
        try:
            with np.errstate(divide="raise", invalid="raise"):
                value = computed(node, [self._constants[name] for name in node.inputs if name])
        except (ArithmeticError, ValueError, IndexError, TypeError, KeyError):
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
            if kind in READS:
                return Refusal(node.name, "what it takes was left to the application")
            self.left.append(node.name)
            inputs = tuple(i for name in data for i in self._values[name].inputs)
            return replace(value, inputs=inputs)
        completes = value.pending is not None
        if completes or kind in ("Slice", "ReduceMean", "ReduceMax"):
            by_axis = self._by_axis(node, value)
            if by_axis is not None:
                return by_axis
            value = replace(value, pending=None)
        if value.border and kind != "Conv":
            return Refusal(node.name, "it takes padded data", "Use the pads of a Conv.")
        if value.averaged and (value.part or kind in ("Sign", "Abs")):
            return self._truncated(node, data, value)
        if kind in READS:
            return self._operator(node, value)
        if kind in ("Add", "Sub") and len(data) == 2:
            return self._sum(node, data)
        if kind == "Concat":
            return self._joined(node, data)
        if kind in PASSING or geometry.cuts_nothing(node, value.shape, self._constants):
            return value
        if kind == "Transpose" and self._channels_last and data[0] == self._graph.input_name:
            return value
        if kind in _RESHAPING or geometry.takes_only(node, value.shape, self._constants):
            return self._reshaped(node, value)
        if "Pool" in kind or kind in ("ReduceMean", "ReduceMax"):
            return self._pooling(node, data[0], value, completes)
        if kind == "Pad":
            return self._bordered(node, value)
        if kind in ("Resize", "Upsample") and geometry.doubles(node, value.shape, self._constants):
            return self._doubled(node, value)
        last = kind == "ReduceL2" or (
            kind in ("Softmax", "LogSoftmax", "Transpose") and self._is_last(node)
        )
        if last:
            self.left.append(node.name)
            return replace(value, left=True)
        return self._behind(node, data[0], value)

    def _by_axis(self, node: OnnxNode, value: Value) -> Value | Refusal | None:
        """Return what becomes of data of which single axes are cut or reduced.

        None where all are, by a node that reduces, or where there is nothing of the kind.
        """
        kind, waiting = node.operator, value.pending
        if kind == "Slice":
            steps = geometry.skipped(node, value.shape, self._constants)
        else:
            axes = geometry.reduced_axes(node, value.shape, self._constants)
            steps = {axis: 0 for axis in axes if axis > 1} if "Reduce" in kind else None
            if steps is not None and waiting is not None and not _keeps(waiting.node):
                (gone,) = waiting.axes
                steps = {axis + (axis >= gone): 0 for axis in steps}
        if waiting is not None and (waiting.node.operator != kind or steps is None):
            return _unfinished(waiting)
        if steps is None:
            return None
        steps = {**steps, **(waiting.axes if waiting is not None else {})}
        if len(steps) < len(value.shape) - 1:
            return replace(value, pending=Pending(node, steps))
        if kind != "Slice":
            return None
        if len(set(steps.values())) > 1:
            return Refusal(node.name, f"its steps are {times(tuple(steps.values()))}",
                           "Use one step for both axes.")  # fmt: skip
        return self._decimated(node, replace(value, pending=None), next(iter(steps.values())))

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
        if _is_rectification(node, self._constants_of(node.inputs)):
            kind = "Relu"
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
            if any(map(math.isnan, limits)):
                return Refusal(node.name, "a limit is not a number", "Use Relu.")
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
            return self._normalized(node, value)
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
        matrix = node.operator in ("Gemm", "MatMul")
        if weights.ndim != 2 if matrix else weights.ndim < _LEAST_AXES:
            return Refusal(node.name, f"its weights have {weights.ndim} axes",
                           "Give weights the axes that ONNX has for them.")  # fmt: skip
        if matrix and not (node.attributes.get("transB", 0) and node.operator == "Gemm"):
            weights = weights.T
        node, weights = geometry.as_convolution(node, weights)
        found = geometry.operator(node, weights, value.shape, value.border)
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
        count = sum(len(value.inputs) for value in values)
        if count > _MOST_JOINED:
            return Refusal(node.name, f"it joins {count} results; the limit is {_MOST_JOINED}",
                           "Join fewer of them.")  # fmt: skip
        inputs = tuple(index for value in values for index in value.inputs)
        return Value(inputs, shape, "channels", positive=all(v.positive for v in values))

    # Pooling and shapes

    def _pooling(self, node: OnnxNode, name: str, value: Value, completes: bool) -> Value | Refusal:
        """Return a pooled value; the reader pools where it can.

        A node that `completes` another one reduces the axes that are left.
        """
        found = geometry.pooling(node, value.shape, self._constants, whole=completes)
        if isinstance(found, Refusal):
            return found
        if value.pool or value.flat:
            value = self._pooled(name, value)
        if found.padded and not value.positive and "max_pool" in found.keys:
            return Refusal(node.name, "it pads where negative values come into it; on the "
                           "accelerator zeros stand there",
                           "Put a Relu in front of it, or pool without padding.")  # fmt: skip
        if found.padded:
            value = self._ones(f"{node.name}_padding", value, border=1)
        for keys in found.first:
            sizes = tuple(
                (n - w) // s + 1
                for n, w, s in zip(value.shape[1:], *map(_sides(value), keys.values()), strict=True)
            )
            pooled = replace(value, pool=keys, taken=value.shape, shape=(value.shape[0], *sizes))
            value = self._pooled(node.name, pooled)
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
        allowed = (*_RESHAPING, *PASSING, "Softmax", "LogSoftmax", "Transpose", "Concat")
        return all(
            r.operator == "Shape" or (r.operator in allowed and self._is_last(r)) for r in readers
        )


def _is_rectification(node: OnnxNode, constants: Sequence[Array | None]) -> bool:
    """Return whether a node limits data to 0 from below, and nothing else."""
    if node.operator == "Clip":
        return bounds(node, constants) == (0.0, math.inf)
    stated = [one for one in constants if one is not None]
    return node.operator == "Max" and len(stated) == 1 and not np.any(stated[0])


def _unfinished(waiting: Pending) -> Refusal:
    """Refuse a node that works on one axis of a map, after which no other does on the others."""
    what, how = ("cuts", "cut") if waiting.node.operator == "Slice" else ("reduces", "reduce")
    return Refusal(waiting.node.name, f"it {what} some of the axes of a map",
                   f"Use one that {what} rows and columns alike." if how == "cut" else
                   "Average rows and columns, or take the maximum of both.")  # fmt: skip


def _keeps(node: OnnxNode) -> bool:
    """Return whether a node that reduces leaves the axes there."""
    return bool(node.attributes.get("keepdims", 1))


def _sides(value: Value) -> Callable[[Any], tuple[int, ...]]:
    """Return what makes a number for each axis of a map of the key of a description."""
    axes = len(value.shape) - 1
    return lambda key: tuple(key) if isinstance(key, list) else (key,) * axes

"""A graph of operators in whole numbers becomes layers of a description, with their tensors.

Source: docs/checkpoints.md, "ONNX graphs".
"""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from dataclasses import replace
from typing import Any, assert_never

import numpy as np

from ai8xtools.frontends.graph import geometry, kernels, passes
from ai8xtools.frontends.graph.nodes import Graph, Node
from ai8xtools.frontends.graph.operators import (
    BatchNormalization,
    Clip,
    Concat,
    Constant,
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
    MeanVarianceNormalization,
    Pad,
    Pool,
    Reduce,
    Reshape,
    Resize,
    Slice,
    Softmax,
    Transpose,
)
from ai8xtools.frontends.graph.tail import without_tail
from ai8xtools.frontends.layers import INPUT, DescribedLayer, Refusal, times, unused
from ai8xtools.frontends.onnx.door import INSTEAD
from ai8xtools.frontends.onnx.folding import Before, clipped, scaled
from ai8xtools.frontends.onnx.maker import Maker
from ai8xtools.frontends.onnx.sums import Sums
from ai8xtools.frontends.onnx.values import Tensors, Value, dims

PASSES = (
    passes.folded_normalizations, passes.constants_second, passes.whole_by_channel, passes.limits,
    passes.truncations, passes.division_apart, passes.padding, passes.reductions, passes.sections,
    passes.channel_orders, passes.transposes, passes.flattened_weights, passes.elements_first,
    passes.folded_normalizations,
)  # fmt: skip
"""What is done with a graph before."""

_MOST_JOINED = 1024
"""Each result has a channel at least."""


class Follower(Maker):
    """Follows the nodes in order; `layers` and `tensors` (by layer) are what they say.

    `left` are nodes behind the last layer that the application computes, `doubts` what is refused
    should the layers depart. `fractions`: the integers come from elsewhere, and the graph does not
    say what is rounded.
    """

    def __init__(self, graph: Graph, *, depthwise: bool = False, fractions: bool = False) -> None:
        graph, left = without_tail(graph)
        self.left = list(dict.fromkeys(node.place for node in left))
        shaping = (kernels.channel_sections, kernels.dense_groups(depthwise=depthwise),
                   kernels.square_kernels)  # fmt: skip
        graph = passes.improved(graph, (*PASSES, *shaping))
        super().__init__(graph, depthwise=depthwise)
        self._prefixes: dict[str, str] = {}  # names of layers: the constants that they stand for
        for node in graph.nodes:
            self._visit(node)
        sums = Sums(self.layers, self.tensors, exact=not fractions)
        for node in graph.outputs:
            self._deliver(node, sums)
        sums.deliver()
        self.refusals += sums.refusals()
        self.doubts = tuple(sums.doubts())

    def _deliver(self, node: Node, sums: Sums) -> None:
        """Note a result of the graph; what joins results of 32 bits is left to the application."""
        value = self._values.get(node)
        if value is None:
            return
        joined = isinstance(node.operator, Concat) and len(value.inputs) > 1
        if joined and sums.leave(value.inputs):
            self.left.append(node.place)
        elif value.pool or joined:
            value = self._pooled(node.place, value)
        for index in set(value.inputs) - {INPUT}:
            self.layers[index].is_output = True

    def _visit(self, node: Node) -> None:
        data = [one for one in node.inputs if one.constant is None]
        if not data or any(one not in self._values for one in data):
            return  # it is the input, a constant, or takes what has been refused
        result = self._step(node, data)
        if isinstance(result, Refusal):
            self.refusals.append(result)
        else:
            self._values[node] = result

    def _step(self, node: Node, data: Sequence[Node]) -> Value | Refusal:
        """Return the result of a node that takes data."""
        value, operator = self._values[data[0]], node.operator
        match operator:
            case Conv() | ConvTranspose() | Gemm():
                return self._operator(node, value)
            case Each() if len(data) == 2 and operator.function in (Function.ADD, Function.SUB):
                return self._sum(node, operator.function, data)
            case Clip() | Each():
                return self._behind(node, operator, value)
            case BatchNormalization():
                return self._normalized(node, value)
            case Concat():
                return self._joined(node, operator, data)
            case Reshape():
                return self._reshaped(node, value)
            case Pool() | Reduce():
                return self._pooling(node, operator, value)
            case Slice():
                step = geometry.step_of(node, operator)
                if isinstance(step, Refusal):
                    return step
                return self._decimated(node.place, value, step)
            case Pad():
                return self._bordered(node, operator, value)
            case Resize() if geometry.doubles(operator, node.inputs[0].shape):
                return self._doubled(node, value)
            case Dropout():
                return value
            case (
                Foreign() | MatMul() | Resize() | Softmax() | Transpose() | LpNormalization()
                | MeanVarianceNormalization()
            ):  # fmt: skip
                return self._without(node)
            case Input() | Constant():
                raise TypeError(f"{node.place} takes nothing")
            case _:
                assert_never(operator)

    def _without(self, node: Node) -> Refusal:
        why, instead = f"the accelerator has no {node.name}", INSTEAD.get(node.name)
        return Refusal(node.place, why, instead) if instead else Refusal(node.place, why)

    # What follows an operator

    def _behind(self, node: Node, operator: Clip | Each, value: Value) -> Value | Refusal:
        """Return the result of a node that may belong to the layer in front of it."""
        layer = value.inputs[0] if value.open and self._alone(node.inputs[0]) is node else None
        function = operator.function if isinstance(operator, Each) else None
        if operator in (Clip(0.0, math.inf), Each(Function.ABS)):
            if value.positive:
                return value
            name = "ReLU" if function is None else "Abs"
            if layer is not None and self.layers[layer].keys["activate"] == "None":
                pooled = bool(value.pool)
                if not (pooled and name == "Abs") and "avg_pool" not in value.pool:
                    self.layers[layer].keys["activate"] = name
                    return replace(value, positive=True)
            return self._rectifier(node, value, name)
        before = None if layer is None else Before(self.layers[layer], self.tensors[layer])
        if isinstance(operator, Clip):
            return clipped(node, value, operator, before)
        constant = node.inputs[-1].constant
        if constant is not None and before is not None:
            result = scaled(node, operator.function, value, constant, before)
            if result is not None:
                return result
        whole = layer is not None or value.join == "elements" or value.averaged
        if (function is Function.FLOOR and whole) or (
            function is Function.TRUNC and value.averaged
        ):
            return value
        return self._without(node)

    # Layers

    def _operator(self, node: Node, value: Value) -> Value | Refusal:
        """Add the layer of a node with weights."""
        values = [one.constant for one in node.inputs[1:]]
        if any(one is None for one in values):
            return Refusal(node.place, "its weights are not constants",
                           "Export the integers as weights of Conv.")  # fmt: skip
        weights, *bias = (np.asarray(one, np.float64) for one in values)
        spec = geometry.operator(node, weights)
        if isinstance(spec, Refusal):
            return spec
        assert spec.weights is not None
        if isinstance(node.operator, Conv) and node.operator.moves:
            return self._moved(node, spec, value)
        if spec.before > 1:
            value = self._decimated(node.place, value, spec.before)
        keys = {"op": spec.op, **dims(value), **value.pool}
        if value.flat:
            keys["flatten"] = True
            if value.join or value.inputs != (len(self.layers) - 1,):
                keys["in_channels"] = math.prod(value.taken or value.shape)
        keys |= {**spec.keys, "activate": "None"}
        name = self._prefix(node)
        layer = DescribedLayer(
            unused(name.replace(".", "_"), [x.name for x in self.layers]), value.inputs,
            value.join, keys, value.taken or value.shape, spec.shape, node=node.place,
            weights=name,
        )  # fmt: skip
        offset = np.broadcast_to(bias[0].ravel(), spec.shape[:1]) if bias else None
        self.tensors[len(self.layers)] = Tensors(spec.weights, offset)
        self.layers.append(layer)
        result = Value((len(self.layers) - 1,), spec.shape, open=True)
        return self._decimated(node.place, result, spec.after) if spec.after > 1 else result

    def _prefix(self, node: Node) -> str:
        """Return what checkpoints call the layer: by the name of its weights, else of the node."""
        name = node.inputs[1].place
        if name.endswith(".weight"):
            path = name.removesuffix(".weight").removesuffix(".op")
        else:
            path = node.place.strip("/").replace("/", ".") or f"layer{len(self.layers)}"
        taken = self._prefixes.setdefault(path, name)
        return path if taken == name else f"{path}.{len(self.layers)}"

    def _sum(self, node: Node, function: Function, data: Sequence[Node]) -> Value | Refusal:
        """Add an element-wise layer."""
        values = [self._whole(one) for one in data]
        if values[0].shape != values[1].shape:
            shapes = " and ".join(times(value.shape) for value in values)
            return Refusal(
                node.place, f"its operands have the shapes {shapes}", "Add results of one shape."
            )
        inputs = tuple(value.inputs[0] for value in values)
        name = unused(node.place, [x.name for x in self.layers])
        shape = values[0].shape
        self.layers.append(
            DescribedLayer(name, inputs, "elements", {"op": function.value}, shape, shape,
                           node=node.place)
        )  # fmt: skip
        positive = function is Function.ADD and all(value.positive for value in values)
        return Value((len(self.layers) - 1,), shape, "elements", positive=positive)

    def _joined(self, node: Node, concat: Concat, data: Sequence[Node]) -> Value | Refusal:
        """Return joined channels."""
        if len(data) != len(node.inputs):
            return Refusal(node.place, "it joins data with a constant")
        if concat.axis != 1:
            return Refusal(node.place, "it joins along another axis", "Join channels: axis=1.")
        values = [self._values[one] for one in data]
        values = [self._pooled(one.place, v) if v.pool or v.flat else v
                  for one, v in zip(data, values, strict=True)]  # fmt: skip
        shape = (sum(value.shape[0] for value in values), *values[0].shape[1:])
        count = sum(len(value.inputs) for value in values)
        if count > _MOST_JOINED:
            return Refusal(node.place, f"it joins {count} results; the limit is {_MOST_JOINED}",
                           "Join fewer of them.")  # fmt: skip
        inputs = tuple(index for value in values for index in value.inputs)
        return Value(inputs, shape, "channels", positive=all(v.positive for v in values))

    # Pooling and shapes

    def _pooling(self, node: Node, operator: Pool | Reduce, value: Value) -> Value | Refusal:
        """Return a pooled value; the reader pools where it can."""
        spec = geometry.pooling(node, operator)
        if isinstance(spec, Refusal):
            return spec
        if value.pool or value.flat:
            value = self._pooled(node.place, value)
        if spec.padded and not value.positive and "max_pool" in spec.keys:
            return Refusal(node.place, "it pads where negative values come into it; on the "
                           "accelerator zeros stand there",
                           "Put a Relu in front of it, or pool without padding.")  # fmt: skip
        if spec.padded:
            value = self._ones(f"{node.place}_padding", value, border=1)
        for keys in spec.first:
            sizes = tuple(
                (n - w) // s + 1
                for n, w, s in zip(value.shape[1:], *map(_sides(value), keys.values()), strict=True)
            )
            pooled = replace(value, pool=keys, taken=value.shape, shape=(value.shape[0], *sizes))
            value = self._pooled(node.place, pooled)
        pooled = replace(
            value, pool=spec.keys, taken=value.shape, shape=spec.shape,
            averaged="avg_pool" in spec.keys, open=False,
        )  # fmt: skip
        if len(spec.shape) == 1:  # a mean without the axes that it takes away
            pooled = replace(pooled, shape=(*spec.shape, *(1 for _ in value.shape[1:])))
            pooled = replace(self._pooled(node.place, pooled), shape=spec.shape)
        if not self._read_by_operator(node) and pooled.pool:
            return self._pooled(node.place, pooled)
        return pooled

    def _reshaped(self, node: Node, value: Value) -> Value | Refusal:
        """Return flattened data; other changes of the shape are refused."""
        shape = node.shape[1:]
        if shape == value.shape:
            return value
        if len(shape) == 1 and math.prod(node.shape[:1]) == 1:
            if value.pool:
                value = self._pooled(node.place, value)
            flat = math.prod(value.shape[1:]) > 1
            return replace(value, shape=shape, taken=value.taken or value.shape, flat=flat)
        plain = not value.pool and not value.flat and len(shape) > 1
        if plain and shape[0] == value.shape[0]:
            return replace(value, shape=shape, dims=shape[1:], open=False)
        change = f"{times(value.shape)} becomes {times(shape) or 'another shape'}"
        return Refusal(node.place, change, "Flatten all of it.")


def _sides(value: Value) -> Callable[[Any], tuple[int, ...]]:
    """Return what makes a number for each axis of a map of the key of a description."""
    axes = len(value.shape) - 1
    return lambda key: tuple(key) if isinstance(key, list) else (key,) * axes

"""Layers that nodes of a graph take beside their own operators: pooling, kernels of ones.

Source: docs/checkpoints.md, "ONNX graphs".
"""

from __future__ import annotations

import itertools
from collections.abc import Mapping
from dataclasses import replace
from typing import Any

import numpy as np

from ai8xtools.frontends.graph import geometry
from ai8xtools.frontends.graph.nodes import Graph, Node
from ai8xtools.frontends.graph.operators import (
    Array,
    Clip,
    Conv,
    ConvTranspose,
    Each,
    Function,
    Gemm,
    Operator,
    Pad,
)
from ai8xtools.frontends.graph.passes import factors_of
from ai8xtools.frontends.layers import INPUT, DescribedLayer, Refusal, unused
from ai8xtools.frontends.onnx.values import Tensors, Value, dims

READS = Conv | ConvTranspose | Gemm
_ONE = 64
"""A weight that is exactly one with an output shift of 1."""


class Maker:
    """Holds what is known of a graph; `layers` and `tensors` (by layer) are what it says.

    `depthwise`: the chip has depth-wise convolutions.
    """

    def __init__(self, graph: Graph, *, depthwise: bool = False) -> None:
        self.layers: list[DescribedLayer] = []
        self.tensors: dict[int, Tensors] = {}
        self.refusals: list[Refusal] = []
        self._depthwise = depthwise
        shape = graph.input.shape[1:]
        whole = shape if len(shape) > 1 else (*shape, 1, 1)
        self._values: dict[Node, Value] = {graph.input: Value((INPUT,), whole)}
        self._readers: Mapping[Node, list[Node]] = graph.readers()

    def _alone(self, node: Node) -> Node | None:
        """Return the only node that reads a result; None where there are others, or none."""
        readers = self._readers[node]
        return readers[0] if len(readers) == 1 and readers[0] is not node else None

    def _decimated(self, label: str, value: Value, stride: int) -> Value:
        """Return every `stride`-th pixel; the reader does it."""
        if value.pool:
            value = self._pooled(label, value)
        sizes = tuple((size - 1) // stride + 1 for size in value.shape[1:])
        pool = {"max_pool": 1, "pool_stride": stride}
        return replace(value, pool=pool, taken=value.shape, shape=(value.shape[0], *sizes))

    def _rectifier(self, node: Node, value: Value, activation: str) -> Value | Refusal:
        """Add a layer that only applies an activation: kernels that are exactly one."""
        if value.flat or len(value.shape) < 2:
            return Refusal(node.place, "it stands behind no layer", "Put it behind a Conv or Gemm.")
        return self._ones(node.place, value, activation)

    def _ones(
        self,
        label: str,
        value: Value,
        activation: str = "None",
        *,
        border: int = 0,
        beside: tuple[int, int] = (0, 0),
    ) -> Value:
        """Add a layer of kernels that are exactly one in the middle.

        They put a `border` of zeros (0 or 1) around the map and channels of zeros `beside` its own.
        """
        channels, axes, size = value.shape[0], len(value.shape) - 1, 2 * border + 1
        kernels = np.zeros((sum(beside) + channels, channels, *(size,) * axes))
        middle: Any = (np.arange(channels) + beside[0], np.arange(channels), *(border,) * axes)
        kernels[middle] = _ONE
        keys = {"op": f"Conv{axes}d", "kernel_size": f"{size}x{size}" if axes == 2 else size,
                "pad": 2 * border, "activate": activation}  # fmt: skip
        shape = (len(kernels), *(n + 2 * border for n in value.shape[1:]))
        positive = value.positive or activation != "None"
        return replace(self._of_ones(label, value, keys, kernels, shape), positive=positive)

    def _moved(self, node: Node, spec: geometry.LayerSpec, value: Value) -> Value | Refusal:
        """Add a layer whose kernels, which are exactly one, take data from other places."""
        if value.flat or value.join == "elements":
            return Refusal(node.place, "it moves data of no layer", "Put a Conv before it.")
        keys = {"op": spec.op, **spec.keys, "activate": "None"}
        result = self._of_ones(node.place, value, keys, _ONE * np.asarray(spec.weights), spec.shape)
        return replace(result, positive=value.positive)

    def _of_ones(
        self, label: str, value: Value, keys: dict[str, Any], kernels: Array, shape: tuple[int, ...]
    ) -> Value:
        """Add a layer that stands for no weights of the graph."""
        name = unused(label, [x.name for x in self.layers])
        whole = {"op": keys["op"], **dims(value), **value.pool, **keys}
        layer = DescribedLayer(name, value.inputs, value.join, whole, value.taken or value.shape,
                               shape, node=label, weights=name)  # fmt: skip
        self.tensors[len(self.layers)] = Tensors(kernels, None, 1, rounded=True, added=True)
        self.layers.append(layer)
        return Value((len(self.layers) - 1,), shape)

    def _normalized(self, node: Node, value: Value) -> Value | Refusal:
        """Add a layer for batch normalization that follows none: kernels of 1x1, depth-wise where
        the chip has that.
        """
        if len(value.shape) < 2 or value.flat:
            return Refusal(node.place, "batch normalization that follows no layer",
                           "Put it directly behind a Gemm.")  # fmt: skip
        factor, offset = factors_of(node)
        channels, axes = value.shape[0], len(value.shape) - 1
        alone = self._depthwise and axes == 2
        kernels = factor.reshape(-1, 1) if alone else np.diag(factor)
        keys: dict[str, Any] = {"op": f"Conv{axes}d", "kernel_size": "1x1" if axes == 2 else 1,
                                "pad": 0}  # fmt: skip
        keys |= {"groups": channels} if alone else {}
        keys |= {"activate": "None"}
        kernels = kernels.reshape(*kernels.shape, *(1,) * axes)
        index = len(self.layers)
        result = self._of_ones(node.place, value, keys, kernels, value.shape)
        self.tensors[index] = Tensors(kernels, offset)
        self.layers[index].weights = node.inputs[1].place.removesuffix(".weight")
        return replace(result, open=True)

    def _doubled(self, node: Node, value: Value) -> Value:
        """Add a layer that repeats each pixel in 2x2: transposed kernels that are one."""
        channels = value.shape[0]
        groups = channels if self._depthwise else 1
        kernels = np.zeros((channels, channels // groups, 3, 3))
        own: Any = 0 if groups > 1 else np.arange(channels)
        for row, column in itertools.product((1, 2), (1, 2)):
            kernels[np.arange(channels), own, row, column] = _ONE
        keys: dict[str, Any] = {"op": "ConvTranspose2d", "kernel_size": "3x3", "pad": 1}
        keys |= {"groups": groups} if groups > 1 else {}
        keys |= {"activate": "None"}
        shape = (channels, *(2 * n for n in value.shape[1:]))
        return replace(
            self._of_ones(node.place, value, keys, kernels, shape), positive=value.positive
        )

    def _bordered(self, node: Node, pad: Pad, value: Value) -> Value | Refusal:
        """Return data with zeros around it or beside its channels."""
        sides = geometry.zeros(node, pad)
        if isinstance(sides, Refusal):
            return sides
        border, beside = sides
        if value.flat or len(value.shape) < 2:
            return Refusal(node.place, "it pads flattened data", "Use more outputs of the layer.")
        if border > 1:
            return Refusal(node.place, f"its padding is {border}",
                           "Use a padding of 1, or that of a Conv.")  # fmt: skip
        return self._ones(node.place, value, border=border, beside=beside)

    def _whole(self, node: Node) -> Value:
        """Return a value as the result of one layer."""
        value = self._values[node]
        plain = len(value.inputs) == 1 and not value.pool and not value.flat
        return value if plain else self._pooled(node.place, value)

    def _read_by_operator(self, node: Node) -> bool:
        """Return whether one operator alone takes a value, perhaps clamped before."""
        reader = self._alone(node)
        if reader is None:
            return False
        return isinstance(reader.operator, READS) or (
            _passes(reader.operator) and self._read_by_operator(reader)
        )

    def _pooled(self, name: str, value: Value) -> Value:
        """Add a layer that only pools, or that puts joined data together."""
        keys = {"op": "Passthrough", **dims(value), **value.pool}
        label = unused(f"{name}_result", [x.name for x in self.layers])
        taken = value.taken or value.shape
        layer = DescribedLayer(label, value.inputs, value.join, keys, taken, value.shape, node=name)
        self.layers.append(layer)
        index = len(self.layers) - 1
        averaged = "avg_pool" in value.pool
        return Value((index,), value.shape, positive=value.positive, averaged=averaged)


def _passes(operator: Operator) -> bool:
    """Return whether data may go through a node to the layer that reads it."""
    rounds = isinstance(operator, Each) and operator.function in (Function.FLOOR, Function.TRUNC)
    return rounds or isinstance(operator, Clip)

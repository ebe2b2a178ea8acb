"""Layers that nodes of an ONNX graph take beside their own operators: pooling, kernels of ones.

Source: docs/checkpoints.md, "ONNX graphs".
"""

from __future__ import annotations

import itertools
from dataclasses import replace
from typing import Any

import numpy as np

from ai8xtools.checkpoint.onnx_graph import OnnxGraph, OnnxNode
from ai8xtools.frontends.layers import INPUT, DescribedLayer, Refusal, unused
from ai8xtools.frontends.onnx import geometry
from ai8xtools.frontends.onnx.folding import Array, factors
from ai8xtools.frontends.onnx.values import Tensors, Value, dims

READS = ("Conv", "ConvTranspose", "Gemm", "MatMul")
PASSING = ("Identity", "Dropout")
_ONE = 64
"""A weight that is exactly one with an output shift of 1."""


class Maker:
    """Holds what is known of a graph; `layers` and `tensors` (by layer) are what it says.

    `depthwise`: the chip has depth-wise convolutions.
    """

    def __init__(
        self, graph: OnnxGraph, shape: tuple[int, ...], *, depthwise: bool = False
    ) -> None:
        self.layers: list[DescribedLayer] = []
        self.tensors: dict[int, Tensors] = {}
        self.refusals: list[Refusal] = []
        self._graph = graph
        self._depthwise = depthwise
        self._constants = {name: np.asarray(value) for name, value in graph.constants.items()}
        self._values: dict[str, Value] = {graph.input_name: Value((INPUT,), shape)}
        self._readers: dict[str, list[OnnxNode]] = {}
        for node in graph.nodes:
            for name in node.inputs:
                self._readers.setdefault(name, []).append(node)

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
        return self._ones(node.name, value, activation)

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
                "pad": 2 * border, "activate": activation, "quantization": 8}  # fmt: skip
        given = (len(kernels), *(n + 2 * border for n in value.shape[1:]))
        positive = value.positive or activation != "None"
        return replace(self._made(label, value, keys, kernels, given), positive=positive)

    def _made(
        self, label: str, value: Value, keys: dict[str, Any], kernels: Array, given: tuple[int, ...]
    ) -> Value:
        """Add a layer that stands for no weights of the graph."""
        name = unused(label, [x.name for x in self.layers])
        whole = {"op": keys["op"], **dims(value), **value.pool, **keys}
        layer = DescribedLayer(name, value.inputs, value.join, whole, value.taken or value.shape,
                               given, node=label, weights=name)  # fmt: skip
        self.tensors[len(self.layers)] = Tensors(kernels, None, 1, rounded=True, made=True)
        self.layers.append(layer)
        return Value((len(self.layers) - 1,), given)

    def _normalized(self, node: OnnxNode, value: Value) -> Value | Refusal:
        """Add a layer for batch normalization that follows none: kernels of 1x1, depth-wise where
        the chip has that.
        """
        constants = [self._constants.get(name) for name in node.inputs[1:5]]
        if any(one is None for one in constants):
            return Refusal(node.name, "its factors are not constants")
        if len(value.shape) < 2 or value.flat:
            return Refusal(node.name, "batch normalization that follows no layer",
                           "Put it directly behind a Gemm.")  # fmt: skip
        factor, offset = factors(node, constants)
        channels, axes = value.shape[0], len(value.shape) - 1
        alone = self._depthwise and axes == 2
        kernels = factor.reshape(-1, 1) if alone else np.diag(factor)
        keys: dict[str, Any] = {"op": f"Conv{axes}d", "kernel_size": "1x1" if axes == 2 else 1,
                                "pad": 0}  # fmt: skip
        keys |= {"groups": channels} if alone else {}
        keys |= {"activate": "None", "quantization": 8}
        kernels = kernels.reshape(*kernels.shape, *(1,) * axes)
        index = len(self.layers)
        made = self._made(node.name, value, keys, kernels, value.shape)
        self.tensors[index] = Tensors(kernels, offset)
        self.layers[index].weights = node.inputs[1].removesuffix(".weight")
        return replace(made, open=True)

    def _doubled(self, node: OnnxNode, value: Value) -> Value:
        """Add a layer that repeats each pixel in 2x2: transposed kernels that are one."""
        channels = value.shape[0]
        groups = channels if self._depthwise else 1
        kernels = np.zeros((channels, channels // groups, 3, 3))
        own: Any = 0 if groups > 1 else np.arange(channels)
        for row, column in itertools.product((1, 2), (1, 2)):
            kernels[np.arange(channels), own, row, column] = _ONE
        keys: dict[str, Any] = {"op": "ConvTranspose2d", "kernel_size": "3x3", "pad": 1}
        keys |= {"groups": groups} if groups > 1 else {}
        keys |= {"activate": "None", "quantization": 8}
        given = (channels, *(2 * n for n in value.shape[1:]))
        return replace(self._made(node.name, value, keys, kernels, given), positive=value.positive)

    def _bordered(self, node: OnnxNode, value: Value) -> Value | Refusal:
        """Return data with zeros around it or beside its channels; a convolution pads itself."""
        found = geometry.zeros(node, value.shape, self._constants)
        if isinstance(found, Refusal):
            return found
        border, beside = found
        if value.flat or value.border or len(value.shape) < 2:
            return Refusal(node.name, "it pads flattened data", "Use more outputs of the layer.")
        if not border and not any(beside):
            return value
        readers = self._readers.get(node.outputs[0], [])
        alone = len(readers) == 1 and node.outputs[0] not in self._graph.outputs
        if alone and readers[0].operator == "Conv" and not any(beside) and not value.pool:
            return replace(value, border=border)
        if border > 1:
            return Refusal(node.name, f"its padding is {border}",
                           "Use a padding of 1, or that of a Conv.")  # fmt: skip
        return self._ones(node.name, value, border=border, beside=beside)

    def _whole(self, name: str) -> Value:
        """Return a value as the result of one layer."""
        value = self._values[name]
        plain = len(value.inputs) == 1 and not value.pool and not value.flat
        return value if plain else self._pooled(name, value)

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
        if reader.operator in READS:
            return True
        follows = reader.operator in ("Floor", "Clip", "Relu", *PASSING)
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

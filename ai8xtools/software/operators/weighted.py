"""Convolutions and fully connected layers: sums of 32 bits."""

from __future__ import annotations

import math
from dataclasses import replace

import numpy as np

from ai8xtools.diagnostics import Place
from ai8xtools.frontends.graph.execute import dilated, turned
from ai8xtools.frontends.graph.nodes import Node
from ai8xtools.frontends.graph.operators import (
    Array,
    Conv,
    ConvTranspose,
    Gemm,
)
from ai8xtools.software import bounds, gathering
from ai8xtools.software import graph as steps
from ai8xtools.software.graph import Int64, Interval, Size
from ai8xtools.software.operators.storage import (
    QUANTIZE,
    ROUND,
    RefusedError,
    Storage,
    Stored,
    laid,
)

_WIDE = 32
"""Bits of values that are stored."""


class Weighing(Storage):
    """Stores the sums of layers with weights."""

    def _data(self, node: Node, places: Int64, stored: Stored) -> tuple[int, Interval]:
        """Return a tensor of 8 bits that has places [row, column, channel] in this order."""
        tensor = self._in_order(node.place, stored, places)
        if self._tensors[tensor].bytes_per_value != 1:
            interval = self._ranges[tensor]
            low, high = int(interval.low.min()), int(interval.high.max())
            if low < -128 or high > 127:
                raise RefusedError(f"its data are {low:,} to {high:,}, it takes 8 bits", ROUND)
            tensor = self._in_width(tensor, 1)  # they stand beside wide ones
        return tensor, self._range_of(tensor, places.shape[2])

    def _convolution(self, node: Node, operator: Conv | ConvTranspose) -> Stored:
        weights, axes = self._weights(node), len(node.shape) - 2
        if axes not in (1, 2):
            raise RefusedError(f"it has {axes} axes of pixels", "Use Conv1d or Conv2d.")
        single = (1,) * (2 - axes)
        strides, dilations = (*operator.strides, *single), (*operator.dilations, *single)
        begins = (*(begin for begin, _ in operator.pads), *(0,) * (2 - axes))
        spread = (1, 1)
        if isinstance(operator, ConvTranspose):
            weights = turned(weights, operator.groups)
        kernels = weights.reshape(*weights.shape[:2], *weights.shape[2:], *single)
        if dilations[0] != dilations[1]:
            kernels = dilated(kernels, dilations)
            dilations = (1, 1)
        if isinstance(operator, ConvTranspose):
            reach = [d * (k - 1) for d, k in zip(dilations, kernels.shape[2:], strict=True)]
            begins = tuple(r - b for r, b in zip(reach, begins, strict=True))
            spread, strides = (strides[0], strides[1]), (1, 1)
        stored = self._scaled(node)
        places = laid(stored.places)
        tensor, interval = self._data(node, places, stored)
        size = laid(np.broadcast_to(np.int8(0), node.shape)).shape
        return self._weighted(
            node, stored, tensor, interval, kernels, places.shape[:2], size[:2], operator.groups,
            pad=(begins[0], begins[1]), stride=(strides[0], strides[1]), spread=spread,
            dilation=dilations[0],
        )  # fmt: skip

    def _linear(self, node: Node) -> Stored:
        """Store a fully connected layer: a convolution of pixels, of the last axis as channels."""
        weights, stored = self._weights(node), self._scaled(node)
        inner = np.moveaxis(stored.places, -1, 0).reshape(weights.shape[1], -1).T
        order = np.argsort(inner[0])
        if len(inner) == 1 and self._is_whole(inner[0][order]):  # flattened: weights change places
            inner, weights = inner[:, order], weights[:, order]
        tensor, interval = self._data(node, inner[:, None], stored)
        size = (len(inner), 1)
        sums = self._weighted(node, stored, tensor, interval, weights[:, :, None, None], size, size)
        apart = sums.places.reshape(len(inner), len(weights))
        return Stored(apart.reshape(node.shape), sums.over)

    def _is_whole(self, places: Int64) -> bool:
        """Whether places in order are those of all of a tensor."""
        tensor, start = divmod(int(places[0]), gathering.SPAN)
        if tensor < 0 or start:
            return False
        one = self._tensors[tensor]
        span = int(places[-1]) - int(places[0]) + 1
        return one.pixels * one.channels == len(places) == span

    def _weights(self, node: Node) -> Array:
        if any(one.constant is None for one in node.inputs[1:]):
            raise RefusedError("its weights are not constants", "Use weights that training made.")
        if node.inputs[0].constant is not None:
            raise RefusedError("its data are constants", "Leave it out.")
        return np.asarray(node.inputs[1].constant, np.float64)

    def _weighted(
        self, node: Node, stored: Stored, tensor: int, interval: Interval, kernels: Array,
        in_size: Size, out_size: Size, groups: int = 1, *, pad: Size = (0, 0),
        stride: Size = (1, 1), spread: Size = (1, 1), dilation: int = 1,
    ) -> Stored:  # fmt: skip
        """Store the sums of a convolution, and what is added to them."""
        integers, bits = _whole_weights(kernels)
        over = stored.over * np.int64(1 << bits)
        start = np.zeros(len(kernels), np.int64)
        offset = np.zeros(len(kernels))
        if len(node.inputs) > 2:
            bias = np.asarray(node.inputs[2].constant, np.float64).ravel()
            offset = np.broadcast_to(bias, start.shape) * int(over)
            scale = next((n for n in range(_WIDE) if not (np.ldexp(offset, n) % 1).any()), None)
            if scale is None:
                raise RefusedError("its bias is a fraction", QUANTIZE)
            if scale:
                raise RefusedError("its bias is a fraction of what its sums count", QUANTIZE)
            if abs(offset).max() > bounds.LARGEST:
                raise RefusedError(f"its bias reaches {abs(offset).max():,.0f}", ROUND)
            start = offset.astype(np.int64)
        sums = bounds.sums_of(integers, start, groups, interval)
        reach = int(max(sums.most.max(), -sums.least.min()))
        if reach > bounds.LARGEST:
            raise RefusedError(f"its sums can reach {reach:,}; 32 bits hold {bounds.LARGEST:,}",
                                "Use fewer inputs or smaller weights.")  # fmt: skip
        output = Interval(sums.low, sums.high)
        target = self._tensor(f"{node.place} output", out_size, output)
        self._tensors[target] = replace(self._tensors[target], bytes_per_value=4)
        self._steps.append(
            steps.Convolution(
                source=tensor, target=target, layer=len(self._steps), name=node.place,
                place=Place(), weights=integers, start=start, groups=groups, in_size=in_size,
                out_size=out_size, pad=pad, dilation=dilation, stride=stride, spread=spread,
                right=0, wide=True, input=interval, output=output,
            )
        )  # fmt: skip
        numbers = np.arange(math.prod(node.shape)) + target * gathering.SPAN
        if isinstance(node.operator, Gemm):
            return Stored(numbers, over)
        return self._stored_in(node.shape, target, over)


def _whole_weights(weights: Array) -> tuple[steps.Int8, int]:
    """Return integers, and the power of two that they are divided by."""
    for bits in range(_WIDE):
        whole = np.ldexp(weights, bits)
        if not (whole % 1).any():
            if whole.min(initial=0) < -128 or whole.max(initial=0) > 127:
                break
            return whole.astype(np.int8), bits
    raise RefusedError("its weights do not fit 8 bits", QUANTIZE)

"""A graph becomes steps over maps [C, H, W]: kernels, pooling, limits, sums, joins, enlargement.

Source: docs/q15.md, "Networks".
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import replace
from typing import Protocol, TypeAlias, assert_never

import numpy as np
from numpy.typing import NDArray

from ai8xtools.frontends.graph import passes
from ai8xtools.frontends.graph.execute import turned
from ai8xtools.frontends.graph.nodes import Graph, Node, shape_of
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
from ai8xtools.frontends.graph.tail import without_shares
from ai8xtools.frontends.layers import Refusal, times

Floats: TypeAlias = NDArray[np.float64]
Pair: TypeAlias = tuple[int, int]

PASSES = (
    passes.normalizations, passes.constants_second, passes.limits, passes.by_sums,
    passes.offset_padding, passes.padding, passes.reductions, passes.channel_orders,
    passes.transposes, passes.flattened_weights, passes.into_weights,
    passes.before_weights,
)  # fmt: skip
"""What is done with a graph before; into_weights last, as others make factors and offsets."""

_SERIES = 3
_MOST_ORDERED = 256
"""Values of a flattened result, at most: as many weights order each."""
_INSTEAD = "Use convolutions, ReLU, pooling, sums and concatenations."


class Builder(Protocol):
    """Collects steps; maps are numbers, 0 is the input."""

    def shape(self, tensor: int) -> tuple[int, int, int]:
        """Return (C, H, W)."""

    def convolution(
        self, name: str, source: int, weights: Floats, bias: Floats | None, stride: Pair,
        padding: Pair, dilation: Pair, groups: int, spread: Pair = (1, 1), extra: Pair = (0, 0),
    ) -> int:  # fmt: skip
        """Add a convolution of pixels that are `spread` apart, `extra` zeros behind the last."""

    def enlarge(self, name: str, source: int, factor: Pair) -> int:
        """Add nearest upsampling."""

    def linear(self, name: str, source: int, weights: Floats, bias: Floats | None) -> int:
        """Add a fully connected layer."""

    def pool(
        self, name: str, source: int, average: bool, window: Pair, stride: Pair, padding: Pair
    ) -> int:
        """Add pooling."""

    def clip(self, name: str, source: int, low: float, high: float) -> int:
        """Add a limit."""

    def add(self, name: str, sources: Sequence[int]) -> int:
        """Add a sum."""

    def concat(self, name: str, sources: Sequence[int]) -> int:
        """Add a concatenation."""


class _RefusedError(ValueError):
    """No step stands for a node: why, and what to use instead."""

    def __init__(self, why: str, remedy: str = _INSTEAD) -> None:
        super().__init__(why)
        self.why, self.remedy = why, remedy


class MapsReader:
    """Reads a graph into `into`.

    `output` is the map of the result, `refusals` are the nodes that no step stands for, `left`
    those behind the last step that the application computes.
    """

    def __init__(self, graph: Graph, into: Builder) -> None:
        self.refusals: list[Refusal] = []
        self.output = 0
        self._into = into
        self._maps: dict[Node, int] = {}
        graph, self.left = without_shares(graph)
        graph = passes.improved(graph, PASSES)
        for node in graph.nodes:
            self._visit(node)
        if len(graph.outputs) != 1:
            self.refusals.append(Refusal(
                graph.outputs[0].place, f"the network has {len(graph.outputs)} results that can be "
                "computed", "Let it return one."))  # fmt: skip
        self.output = self._delivered(graph.outputs[0])

    def _delivered(self, node: Node) -> int:
        """Return the map of a result; one that is flattened gets the order that this has."""
        output = self._maps.get(node, 0)
        channels, *size = self._into.shape(output)
        if len(node.shape) > 2 or channels == 1 or math.prod(size) == 1 or node not in self._maps:
            return output
        count = channels * math.prod(size)
        if count > _MOST_ORDERED:
            self.refusals.append(Refusal(
                node.place, f"it flattens the result, {count} values; the limit is {_MOST_ORDERED}",
                "Return the map, and flatten it in the application."))  # fmt: skip
            return output
        return self._into.linear(f"{node.place}.order", output, np.eye(count), None)

    def _visit(self, node: Node) -> None:
        data = [one for one in node.inputs if one.constant is None]
        if any(one not in self._maps for one in data) or node.constant is not None:
            return  # it takes what is refused, or is none of the data
        try:
            self._maps[node] = self._step(node, node.operator, data)
        except _RefusedError as exc:
            self.refusals.append(Refusal(node.place, exc.why, exc.remedy))

    def _step(self, node: Node, operator: Operator, data: Sequence[Node]) -> int:
        """Return the map that a node makes; _RefusedError where it makes none."""
        place, maps = node.place, [self._maps[one] for one in data]
        match operator:
            case Input():
                return 0
            case Conv() | ConvTranspose():
                return self._convolution(node, operator)
            case Gemm():
                return self._linear(node)
            case Pool():
                return self._pool(node, operator)
            case Reduce():
                return self._reduced(node, operator)
            case Clip():
                return self._into.clip(place, maps[0], operator.low, operator.high)
            case Each():
                return self._each(node, operator.function, data)
            case Concat():
                return self._joined(node, operator, data)
            case Reshape():
                return self._reshaped(node)
            case Slice():
                return self._cut(node, operator)
            case Pad():
                return self._padded(node, operator)
            case Resize():
                return self._enlarged(node, operator)
            case Foreign():
                raise _RefusedError(f"there is no kernel for {node.name}", operator.remedy)
            case Dropout():
                return maps[0]
            case MatMul() | BatchNormalization() | Softmax() | LpNormalization():
                raise _RefusedError(f"there is no kernel for {node.name}")
            case Transpose():
                raise _RefusedError("it changes the order of axes", "Leave the channels on axis 1.")
            case Constant():
                raise _RefusedError("it does not depend on the input")
            case _:
                assert_never(operator)

    def _convolution(self, node: Node, operator: Conv | ConvTranspose) -> int:
        weights, bias = _weights(node)
        data = self._map(node.inputs[0])
        if weights.ndim > len(data.shape) + 2 or weights.ndim not in (_SERIES, _SERIES + 1):
            raise _RefusedError(f"it has {weights.ndim - 2} axes", "Use Conv1d or Conv2d.")
        back = isinstance(operator, ConvTranspose)
        if back:
            weights = turned(weights, operator.groups)
        series = weights.ndim == _SERIES
        weights = weights.reshape(*weights.shape[:3], -1)
        one = (1,) if series else ()
        dilations, strides = (*operator.dilations, *one), (*operator.strides, *one)
        pads = (*operator.pads, *(((0, 0),) if series else ()))
        extra = [0, 0]
        spread = (1, 1)
        if isinstance(operator, ConvTranspose):
            reach = [d * (k - 1) for k, d in zip(weights.shape[2:], dilations, strict=True)]
            more = (*operator.output_padding, 0)
            pads = tuple((r - b, r - e + m) for r, (b, e), m in
                         zip(reach, pads, more, strict=False))  # fmt: skip
            spread, strides = (strides[0], strides[1]), (1, 1)
            if min(map(min, pads)) < 0:
                raise _RefusedError("its padding exceeds its kernel", "Use less padding.")
            extra = [max(e - b, 0) for b, e in pads]
            pads = tuple((b, e - x) for (b, e), x in zip(pads, extra, strict=True))
        if any(b != e for b, e in pads):
            weights, pads = _even(_dilated(weights, dilations), pads)
            dilations = (1, 1)
        return self._into.convolution(
            node.place, self._maps[node.inputs[0]], weights, bias, (strides[0], strides[1]),
            (pads[0][0], pads[1][0]), (dilations[0], dilations[1]), operator.groups, spread,
            (extra[0], extra[1]),
        )  # fmt: skip

    def _linear(self, node: Node) -> int:
        weights, bias = _weights(node)
        source = self._maps[node.inputs[0]]
        count = math.prod(self._into.shape(source))
        if weights.shape[1] != count:
            raise _RefusedError(
                f"it works on the last axis of its data, {count} values in all",
                "Flatten the data before it, or use a 1x1 convolution.",
            )
        return self._into.linear(node.place, source, weights, bias)

    def _pool(self, node: Node, operator: Pool) -> int:
        data = self._map(node.inputs[0])
        source, axes = self._maps[data], len(operator.window)
        if set(operator.dilations) != {1}:
            raise _RefusedError("its pooling is dilated", "Use pooling without dilation.")
        whole = replace(operator, ceil=False)
        if operator.ceil and shape_of(whole, [data.shape]) != node.shape:
            raise _RefusedError("ceil_mode keeps incomplete windows", "Use ceil_mode=False.")
        window, strides = _pair(operator.window), _pair(operator.strides)
        pads: Pads = (*operator.pads, *((0, 0),) * (2 - axes))
        if operator.average and operator.counted and any(map(any, pads)):
            kernel = np.full((data.shape[1], 1, *window), 1 / math.prod(window))
            return self._by_channel(node, data, kernel, None, pads, strides)
        if any(b != e for b, e in pads):
            raise _RefusedError("its padding differs between the sides", "Pad all sides alike.")
        return self._into.pool(node.place, source, operator.average, window, strides,
                               (pads[0][0], pads[1][0]))  # fmt: skip

    def _by_channel(
        self, node: Node, data: Node, kernels: Floats, bias: Floats | None,
        pads: Pads = ((0, 0), (0, 0)), strides: Pair = (1, 1),
    ) -> int:  # fmt: skip
        """Return a convolution of each channel by itself; kernels are [C, 1, rows, columns]."""
        kernels, pads = _even(kernels, pads)
        return self._into.convolution(node.place, self._maps[data], kernels, bias, strides,
                                      (pads[0][0], pads[1][0]), (1, 1), len(kernels))  # fmt: skip

    def _reduced(self, node: Node, operator: Reduce) -> int:
        """Return the pooling that takes whole rows, columns or maps together."""
        data, average = self._map(node.inputs[0]), operator.reduction is Reduction.MEAN
        supported = operator.reduction in (Reduction.MEAN, Reduction.MAX)
        if not supported or not set(operator.axes) <= {2, 3}:
            raise _RefusedError(f"it takes the {node.name} over axes {operator.axes}",
                                "Use mean or maximum over rows and columns.")  # fmt: skip
        shape = (*data.shape, 1)[2:4]
        window = (shape[0] if 2 in operator.axes else 1, shape[1] if 3 in operator.axes else 1)
        return self._into.pool(node.place, self._maps[data], average, window, (1, 1), (0, 0))

    def _each(self, node: Node, function: Function, data: Sequence[Node]) -> int:
        """Return a sum, or what is done to each channel."""
        if len(data) == 2 and function is Function.ADD:
            if len({self._into.shape(self._maps[one]) for one in data}) > 1:
                raise _RefusedError("it adds maps of different shapes",
                                    "Add results of layers of the same shape.")  # fmt: skip
            return self._into.add(node.place, [self._maps[one] for one in data])
        value = node.inputs[-1].constant
        if value is None or function not in (Function.ADD, Function.MUL):
            raise _RefusedError(f"there is no kernel for {node.name}")
        channels = self._into.shape(self._maps[data[0]])[0]
        values = passes.along(value, data[0].shape, 1) if len(data[0].shape) > 1 else None
        if values is None or len(values) != channels or node.shape != data[0].shape:
            raise _RefusedError("it takes other constants than one for each channel",
                                "Use a number, or one for each channel.")  # fmt: skip
        ones = np.ones((channels, 1, 1, 1))
        if function is Function.ADD:
            return self._by_channel(node, data[0], ones, values.copy())
        return self._by_channel(node, data[0], ones * values.reshape(-1, 1, 1, 1), None)

    def _joined(self, node: Node, operator: Concat, data: Sequence[Node]) -> int:
        maps = [self._maps[one] for one in data]
        sizes = {self._into.shape(one)[1:] for one in maps}
        flat = len(node.shape) == 2 and sizes != {(1, 1)}
        if len(data) != len(node.inputs) or operator.axis != 1 or len(sizes) > 1 or flat:
            raise _RefusedError("it joins maps of different sizes", "Join channels of equal maps.")
        return self._into.concat(node.place, maps) if len(maps) > 1 else maps[0]

    def _reshaped(self, node: Node) -> int:
        """Return the map of flattened data; other changes of shape are refused."""
        source = self._maps[node.inputs[0]]
        if len(node.shape) == 2 or _whole(node.shape) == self._into.shape(source):
            return source
        before, after = times(node.inputs[0].shape[1:]), times(node.shape[1:])
        raise _RefusedError(f"it makes {after} of {before}",
                            "Flatten only, directly before a fully connected layer.")  # fmt: skip

    def _cut(self, node: Node, operator: Slice) -> int:
        """Return a section: of the channels by kernels of one, of rows and columns by shifts."""
        data = self._map(node.inputs[0])
        start, step, count = (
            (*one, *rest)[1:4]
            for one, rest in ((operator.start, (0, 0)), (operator.step, (1, 1)),
                              (operator.count, (1, 1)))
        )  # fmt: skip
        if min(step) < 1:
            raise _RefusedError("it turns its data around", "Use a step above 0.")
        shape = _whole(data.shape)
        source = self._maps[data]
        if (start[0], step[0], count[0]) != (0, 1, shape[0]):
            rows = np.eye(shape[0])[start[0] : start[0] + step[0] * count[0] : step[0]]
            source = self._into.convolution(node.place, source, rows[:, :, None, None], None,
                                            (1, 1), (0, 0), (1, 1), 1)  # fmt: skip
        sizes = [n - s * (c - 1) for n, s, c in zip(shape[1:], step[1:], count[1:], strict=True)]
        if all(k <= s and not b for k, s, b in zip(sizes, step[1:], start[1:], strict=True)):
            if step[1:] == (1, 1):
                return source
            return self._into.pool(node.place, source, False, (1, 1), (step[1], step[2]), (0, 0))
        kernel = np.zeros((count[0], 1, *sizes))
        kernel[:, 0, start[1], start[2]] = 1
        return self._into.convolution(node.place, source, kernel, None, (step[1], step[2]),
                                      (0, 0), (1, 1), count[0])  # fmt: skip

    def _padded(self, node: Node, operator: Pad) -> int:
        """Return a map with zeros around, or channels of them beside its own."""
        data = self._map(node.inputs[0])
        pads = (*operator.pads, (0, 0), (0, 0))[:4]
        if operator.mode != "constant" or operator.value or any(pads[0]):
            raise _RefusedError(f"it pads by {operator.mode}", "Pad with zeros.")
        if min(map(min, pads)) < 0:
            raise _RefusedError("its padding is negative", "Use less padding before.")
        channels, beside = data.shape[1], pads[1]
        if not any(beside):
            return self._by_channel(node, data, np.ones((channels, 1, 1, 1)), None, pads[2:])
        kernels = np.pad(np.eye(channels), (beside, (0, 0)))[:, :, None, None]
        kernels, around = _even(kernels, pads[2:])
        return self._into.convolution(node.place, self._maps[data], kernels, None, (1, 1),
                                      (around[0][0], around[1][0]), (1, 1), 1)  # fmt: skip

    def _enlarged(self, node: Node, operator: Resize) -> int:
        data = self._map(node.inputs[0])
        factors = [len(p) // n for p, n in zip(operator.places, data.shape, strict=True)]
        for places, n, factor in zip(operator.places, data.shape, factors, strict=True):
            if places != tuple(i // factor for i in range(n * factor) if factor):
                raise _RefusedError(f"it makes {times(node.shape[1:])} of {times(data.shape[1:])}",
                                    "Enlarge by a whole factor.")  # fmt: skip
        if factors[:2] != [1, 1]:
            raise _RefusedError("it enlarges channels", "Enlarge rows and columns.")
        return self._into.enlarge(node.place, self._maps[data], _pair(tuple(factors[2:])))

    def _map(self, node: Node) -> Node:
        """Return a node whose shape is that of its map; a flattened one is refused."""
        if len(node.shape) > 4 or _whole(node.shape) != self._into.shape(self._maps[node]):
            raise _RefusedError("its data is flattened", "Use maps.")
        return node


def _weights(node: Node) -> tuple[Floats, Floats | None]:
    """Return weights and bias; refuse those that depend on the input."""
    values = [one.constant for one in node.inputs[1:]]
    if any(one is None for one in values):
        raise _RefusedError("its weights are not constants", "Use weights that training made.")
    weights, *bias = (np.array(one, np.float64) for one in values)
    count = node.shape[-1] if weights.ndim == 2 else node.shape[1]
    return weights, np.broadcast_to(bias[0], (count,)).copy() if bias else None


def _whole(shape: Shape) -> tuple[int, int, int]:
    """Return (C, H, W) for data [1, C, ...]."""
    padded = (*shape[1:], 1, 1, 1)
    return padded[0], padded[1], padded[2]


def _pair(values: Shape) -> Pair:
    """Return rows and columns; series have one column."""
    return (values[0], values[1]) if len(values) == 2 else (values[0], 1)


def _dilated(kernels: Floats, dilations: Shape) -> Floats:
    """Return kernels with the zeros between their values."""
    sizes = ((k - 1) * d + 1 for k, d in zip(kernels.shape[2:], dilations, strict=True))
    wide = np.zeros((*kernels.shape[:2], *sizes))
    wide[:, :, :: dilations[0], :: dilations[1]] = kernels
    return wide


def _even(kernels: Floats, pads: Pads) -> tuple[Floats, Pads]:
    """Return kernels with zeros at an end, so that the same padding on both sides does."""
    more = [(max(e - b, 0), max(b - e, 0)) for b, e in pads]
    even = tuple((max(pair),) * 2 for pair in pads)
    return np.pad(kernels, ((0, 0), (0, 0), *more)), even

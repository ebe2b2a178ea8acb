"""A graph becomes steps over maps [C, H, W]: kernels, pooling, limits, sums, joins, enlargement.

Source: docs/q15.md, "Networks".
"""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from dataclasses import replace
from typing import Any, Protocol, TypeAlias, assert_never

import numpy as np
from numpy.typing import NDArray

from ai8xtools.frontends.graph import passes
from ai8xtools.frontends.graph.compositions import (
    compositions,
    linear_weights,
    normalized_by_parts,
)
from ai8xtools.frontends.graph.execute import dilated, turned, value_of
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
    MeanVarianceNormalization,
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
from ai8xtools.values import frozen

Floats: TypeAlias = NDArray[np.float64]
Pair: TypeAlias = tuple[int, int]

_INTERPOLATION = "linearinterpolation"


def composed(node: Node, readers: passes.Readers) -> Node:
    """Operators without a node of their own become others, but for interpolation."""
    kept = isinstance(node.operator, Foreign) and node.operator.plain_name == _INTERPOLATION
    return node if kept else compositions(node, readers)


PASSES = (
    composed, normalized_by_parts, passes.normalizations, passes.constants_second, passes.limits,
    passes.by_sums, passes.offset_padding, passes.padding, passes.reductions, passes.channel_orders,
    passes.transposes, passes.flattened_weights, passes.into_weights,
    passes.before_weights,
)  # fmt: skip
"""What is done with a graph before; into_weights last, as others make factors and offsets."""

_JUMPING = frozenset({Function.CEIL, Function.EQUAL, Function.FLOOR, Function.MOD, Function.ROUND,
                      Function.SIGN, Function.TRUNC})  # fmt: skip
"""No straight lines between points follow them."""
_SERIES = 3
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
        self, name: str, source: int, average: bool, window: Pair, stride: Pair, padding: Pair,
        *, ceil: bool = False,
    ) -> int:  # fmt: skip
        """Add pooling."""

    def gather(self, name: str, source: int, rows: Sequence[int], columns: Sequence[int]) -> int:
        """Add rows and columns by their numbers."""

    def flatten(self, name: str, source: int) -> int:
        """Add the values of a map in the order channel, row, column."""

    def table(self, name: str, source: int, function: Callable[[Floats], Floats]) -> int:
        """Add a function of each element."""

    def multiply(self, name: str, sources: Sequence[int]) -> int:
        """Add a product; of the second map any axis may have one element."""

    def constant(self, name: str, values: Floats) -> int:
        """Add a map that does not depend on the input."""

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


@frozen
class _Elements:
    """A result as a function of each element of another; `sums`: one of sums and limits only."""

    source: Node
    function: Callable[[Floats], Floats]
    sums: bool


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
        self._elements: dict[Node, _Elements] = {}
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
        return self._into.flatten(f"{node.place}.order", output)

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
            case Each() if operator.function in _JUMPING:
                raise _RefusedError(f"there is no kernel for {node.name}")
            case Clip() | Each():
                of = self._of_elements(node)
                if of is not None:
                    self._elements[node] = of
                if isinstance(operator, Clip):
                    return self._into.clip(place, maps[0], operator.low, operator.high)
                if of is not None and not of.sums:
                    source = self._maps[of.source]
                    if isinstance(of.source.operator, Reduce):  # means need a format of their own
                        ones = np.ones((self._into.shape(source)[0], 1, 1, 1))
                        source = self._by_channel(node, of.source, ones, None)
                    return self._into.table(place, source, of.function)
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
            case Foreign() if operator.plain_name == _INTERPOLATION:
                return self._interpolated(node, str(dict(operator.settings)["coordinates"]))
            case Foreign():
                raise _RefusedError(f"there is no kernel for {node.name}", operator.remedy)
            case Dropout():
                return maps[0]
            case (
                MatMul() | BatchNormalization() | Softmax() | LpNormalization()
                | MeanVarianceNormalization()
            ):  # fmt: skip
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
            weights, pads = _even(dilated(weights, dilations), pads)
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
        ceil = operator.ceil and shape_of(replace(operator, ceil=False), [data.shape]) != node.shape
        window, strides = _pair(operator.window), _pair(operator.strides)
        pads: Pads = (*operator.pads, *((0, 0),) * (2 - axes))
        if operator.average and operator.counted and any(map(any, pads)):
            if ceil:
                raise _RefusedError("ceil_mode keeps incomplete windows", "Use ceil_mode=False.")
            kernel = np.full((data.shape[1], 1, *window), 1 / math.prod(window))
            return self._by_channel(node, data, kernel, None, pads, strides)
        if any(b != e for b, e in pads):
            raise _RefusedError("its padding differs between the sides", "Pad all sides alike.")
        return self._into.pool(node.place, source, operator.average, window, strides,
                               (pads[0][0], pads[1][0]), ceil=ceil)  # fmt: skip

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
        """Return a sum or product, or what is done to each channel."""
        place, maps = node.place, [self._maps[one] for one in data]
        if len({self._into.shape(one) for one in maps}) > 1:
            data = [self._map(one) for one in data]
        if function is Function.DIV and len(data) == 2:
            return self._joint(node, Function.MUL, [maps[0], self._into.table(
                f"{place}.inverse", maps[1], np.reciprocal)])  # fmt: skip
        if function not in (Function.ADD, Function.MUL):
            raise _RefusedError(f"there is no kernel for {node.name}")
        if len(data) == 2:
            return self._joint(node, function, maps)
        value = np.asarray(node.inputs[-1].constant, np.float64)
        channels = self._into.shape(maps[0])[0]
        values = passes.along(value, data[0].shape, 1) if len(data[0].shape) > 1 else None
        if values is None or len(values) != channels or node.shape != data[0].shape:
            self._map(data[0])
            whole = value.reshape(_whole((1,) * (len(node.shape) - value.ndim) + value.shape))
            if function is Function.ADD:
                whole = np.broadcast_to(whole, _whole(node.shape)).copy()
            return self._joint(node, function, [maps[0], self._into.constant(place, whole)])
        ones = np.ones((channels, 1, 1, 1))
        if function is Function.ADD:
            return self._by_channel(node, data[0], ones, values.copy())
        return self._by_channel(node, data[0], ones * values.reshape(-1, 1, 1, 1), None)

    def _of_elements(self, node: Node) -> _Elements | None:
        """Return a node as a function of the elements of one result; None for others."""
        parts = [self._elements.get(one) or _Elements(one, np.asarray, sums=True)
                 for one in node.inputs if one.constant is None]  # fmt: skip
        numbers = [one.constant for one in node.inputs]
        several = len({one.source for one in parts}) > 1
        if several or any(one is not None and one.size > 1 for one in numbers):
            return None
        if parts[0].source.shape != node.shape:
            return None

        def function(x: Floats) -> Floats:
            results = iter([one.function(x) for one in parts])
            inputs = [next(results) if one is None else one.ravel()[0] for one in numbers]
            return np.asarray(value_of(node.operator, inputs), np.float64)

        adds = isinstance(node.operator, Clip) or node.operator == Each(Function.ADD)
        sums = adds or (node.operator == Each(Function.MUL) and len(parts) == 1)
        return _Elements(parts[0].source, function, sums and all(one.sums for one in parts))

    def _joint(self, node: Node, function: Function, maps: Sequence[int]) -> int:
        """Return the sum or product of maps, of which smaller ones are repeated."""
        shapes = {one: self._into.shape(one) for one in maps}
        whole = np.broadcast_shapes(*shapes.values())
        first, second = sorted(maps, key=lambda one: -math.prod(shapes[one]))
        channels = {shapes[first][0], shapes[second][0] if function is Function.ADD else whole[0]}
        if channels != {whole[0]} or math.prod(whole) != math.prod(node.shape):
            raise _RefusedError("its operands have different channels",
                                "Use results of layers of the same shape.")  # fmt: skip
        first = self._repeated(node, first, whole)
        if function is Function.MUL:
            return self._into.multiply(node.place, [first, second])
        return self._into.add(node.place, [first, self._repeated(node, second, whole)])

    def _repeated(self, node: Node, source: int, whole: Sequence[int]) -> int:
        """Return a map whose rows and columns are as many as wanted."""
        shape = self._into.shape(source)
        if shape == tuple(whole):
            return source
        rows, columns = ([0] * m if n == 1 else range(n) for n, m in
                         zip(shape[1:], whole[1:], strict=True))  # fmt: skip
        return self._into.gather(f"{node.place}.repeated", source, rows, columns)

    def _interpolated(self, node: Node, coordinates: str) -> int:
        """Return a map that is interpolated, axis by axis: two of its rows count for each."""
        data, into = self._map(node.inputs[0]), self._into
        result = self._maps[data]
        for axis, (n, size) in enumerate(zip(_whole(data.shape), _whole(node.shape), strict=True)):
            if n == size:
                continue
            if axis == 0:
                raise _RefusedError("it enlarges channels", "Enlarge rows and columns.")
            weights = linear_weights(n, size, coordinates)
            parts = []
            for at in np.argsort(-weights, axis=1, kind="stable")[:, :2].T:
                chosen: list[Sequence[int]] = [range(m) for m in into.shape(result)]
                chosen[axis] = at.tolist()
                moved = into.gather(f"{node.place}.moved", result, chosen[1], chosen[2])
                share = weights[np.arange(size), at].reshape(1, *(
                    (-1, 1) if axis == 1 else (1, -1)))  # fmt: skip
                factor = into.constant(f"{node.place}.shares", share)
                parts.append(into.multiply(node.place, [moved, factor]))
            result = into.add(node.place, parts) if n > 1 else parts[0]
        return result

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
        shape, count = self._into.shape(source), math.prod(node.shape)
        if len(node.shape) == 2 or _whole(node.shape) == shape or max(shape) == count:
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
        if any(pads[0]) or operator.value or min(map(min, pads)) < 0:
            raise _RefusedError("its padding is negative, or one of samples", "Pad with zeros.")
        if operator.mode != "constant":
            if any(pads[1]):
                raise _RefusedError(f"it pads channels by {operator.mode}", "Pad with zeros.")
            mode: Any = operator.mode
            rows, columns = (np.pad(np.arange(n), pad, mode).tolist() for n, pad in
                             zip(_whole(data.shape)[1:], pads[2:], strict=True))  # fmt: skip
            return self._into.gather(node.place, self._maps[data], rows, columns)
        channels, beside = data.shape[1], pads[1]
        if not any(beside):
            return self._by_channel(node, data, np.ones((channels, 1, 1, 1)), None, pads[2:])
        kernels = np.pad(np.eye(channels), (beside, (0, 0)))[:, :, None, None]
        kernels, around = _even(kernels, pads[2:])
        return self._into.convolution(node.place, self._maps[data], kernels, None, (1, 1),
                                      (around[0][0], around[1][0]), (1, 1), 1)  # fmt: skip

    def _enlarged(self, node: Node, operator: Resize) -> int:
        data = self._map(node.inputs[0])
        if operator.places[:2] != tuple(tuple(range(n)) for n in data.shape[:2]):
            raise _RefusedError("it enlarges channels", "Enlarge rows and columns.")
        axes = [*zip(operator.places, data.shape, strict=True)]
        factors = [len(places) // n for places, n in axes]
        if all(places == tuple(i // f for i in range(n * f))
               for (places, n), f in zip(axes, factors, strict=True)):  # fmt: skip
            return self._into.enlarge(node.place, self._maps[data], _pair(tuple(factors[2:])))
        rows, columns = (*operator.places[2:], (0,))[:2]
        return self._into.gather(node.place, self._maps[data], rows, columns)

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


def _even(kernels: Floats, pads: Pads) -> tuple[Floats, Pads]:
    """Return kernels with zeros at an end, so that the same padding on both sides does."""
    more = [(max(e - b, 0), max(b - e, 0)) for b, e in pads]
    even = tuple((max(pair),) * 2 for pair in pads)
    return np.pad(kernels, ((0, 0), (0, 0), *more)), even

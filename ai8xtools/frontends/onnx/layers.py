"""A graph of operators in whole numbers becomes layers of a description, with their tensors.

What rounds behind an operator becomes part of its layer.
Source: docs/checkpoints.md, "ONNX graphs".
"""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np

from ai8xtools.frontends.accelerator.lowering import (
    ACTIVATIONS,
    Limits,
    Lowering,
    Parts,
    RefusedError,
    path_of_weights,
    plain,
    takes_activation,
)
from ai8xtools.frontends.accelerator.walk import Walk
from ai8xtools.frontends.graph import passes
from ai8xtools.frontends.graph.nodes import Graph, Node, graph_of, make
from ai8xtools.frontends.graph.operators import (
    Array,
    Clip,
    Concat,
    Dropout,
    Each,
    Function,
    Input,
    Layer,
    Pool,
    Reduce,
    Reduction,
    Reshape,
    Slice,
)
from ai8xtools.frontends.graph.passes import along, factors_of
from ai8xtools.frontends.graph.tail import without_tail
from ai8xtools.frontends.layers import DescribedLayer, Refusal
from ai8xtools.frontends.onnx.sums import Sums
from device import Chip

PASSES = (
    passes.folded_normalizations, passes.constants_second, passes.whole_by_channel, passes.limits,
    passes.truncations, passes.division_apart, passes.padding, passes.reductions, passes.sections,
    passes.channel_orders, passes.transposes, passes.flattened_weights, passes.elements_first,
    passes.folded_normalizations,
)  # fmt: skip
"""What is done with a graph before."""

_ONE = 64
"""A weight that is exactly one with an output shift of 1."""
_WIDE = 2.0**20
"""Results that are limited to more than this have 32 bits."""
_KEEPING = Reshape | Dropout | Slice | Clip
"""Operators whose results are averages if what they take are."""


class WholeNumbers(Lowering):
    """Follows a graph in whole numbers; `layers` and `tensors`, by layer, are what it says.

    `left` are nodes behind the last layer that the application computes, `doubts` what is refused
    should the layers depart. `fractions`: the integers come from elsewhere, and the graph does not
    say what is rounded. `calibrated`: and each result has a factor of its own in them.
    """

    goes_on = False

    def __init__(
        self, graph: Graph, chip: Chip, *, fractions: bool = False, calibrated: bool = False
    ) -> None:
        graph, left = without_tail(graph)
        super().__init__(graph, PASSES, depthwise=chip.has_depthwise, calibrated=calibrated)
        self.left = list(dict.fromkeys(node.place for node in left))
        self.layers: list[DescribedLayer] = []
        self.tensors: dict[int, Parts] = {}
        self.doubts: tuple[Refusal, ...] = ()
        self._parts: dict[str, Parts] = {}
        self._exact = not fractions
        self.lower()
        if not self.refusals:
            self._described(chip)

    def _described(self, chip: Chip) -> None:
        """Make the layers of a description."""
        ends = [self._results[node] for node in self._source.outputs]
        source = self._results[self._source.input]
        lowered = graph_of(source, list(self._results.values()), ends)
        walk = Walk(lowered, chip, leaves=lambda layers, joined: self._sums(layers).leave(joined))
        self.layers, self.left = walk.entries, [*self.left, *walk.left]
        sums = self._sums(self.layers)
        sums.deliver()
        self.refusals += [*walk.refusals, *sums.refusals()]
        self.doubts = tuple(sums.doubts())

    def _sums(self, layers: Sequence[DescribedLayer]) -> Sums:
        self.tensors = {index: self._parts[layer.weights] for index, layer in enumerate(layers)
                        if layer.weights is not None}  # fmt: skip
        return Sums(layers, self.tensors, exact=self._exact, calibrated=self._calibrated)

    # Layers

    def _input(self, node: Node) -> Node:
        return make(node.place, Input(node.shape))

    def _target(self, node: Node) -> str:
        return path_of_weights(node).removesuffix(".op")

    def _layer(self, node: Node, parts: Parts, source: Any) -> Any:
        if parts.norm is not None:
            factor, parts.bias = factors_of(parts.norm)
            parts.weights = parts.weights * factor.reshape(-1, *(1,) * (parts.weights.ndim - 1))
        return super()._layer(node, parts, source)

    def _placed(self, node: Node, target: str, parts: Parts, source: Any, _last: Node) -> Node:
        if parts.constant:
            parts.weights, parts.shift, parts.rounded = _ONE * parts.weights, 1, True
        names = (
            f"{target}.{number}" if number else target for number in range(len(self._parts) + 1)
        )
        target = next(name for name in names if name not in self._parts)
        self._parts[target] = parts
        keys = {**parts.spec.keys, "activate": parts.activation or "None"}
        keys |= {"output_width": 32} if parts.wide else {}
        shape = (1, *parts.spec.shape)
        layer = Layer(target, shape, op=parts.spec.op, keys=keys, bias=parts.bias is not None,
                      target=target)  # fmt: skip
        return make(node.place, layer, source)

    def _pool(self, node: Node, target: str, keys: Mapping[str, Any], source: Any) -> Node:
        (_, window), stride = next(iter(keys.items())), keys["pool_stride"]
        axes = (np.broadcast_to(one, len(source.shape) - 2)
                for one in (window, stride, keys.get("pool_dilation", 1)))  # fmt: skip
        sizes = ((n - d * (w - 1) - 1) // s + 1
                 for n, w, s, d in zip(source.shape[2:], *axes, strict=True))  # fmt: skip
        shape = (*source.shape[:2], *map(int, sizes))
        return make(node.place, Layer(target, shape, pool=keys, target=target), source)

    def _sum(
        self, node: Node, function: Function, data: Sequence[Node], _limits: Limits | None
    ) -> Node:
        layer = Layer(function.value, node.shape, op=function.value,
                      target=f"{plain(node)}_elementwise")  # fmt: skip
        return make(node.place, layer, *(self._results[one] for one in data))

    def _join(self, node: Node, sources: Sequence[Any]) -> Node:
        return make(node.place, Concat(1), *sources)

    def _shaped(self, node: Node, source: Any, shape: tuple[int, ...]) -> Node:
        return make(node.place, Reshape((1, *shape)), source)

    # What follows an operator

    def _takes(self, node: Node, parts: Parts) -> bool:
        operator, constant = node.operator, node.inputs[-1].constant
        if not isinstance(operator, Clip | Each) or (len(node.inputs) > 1 and constant is None):
            return False
        if self._calibrated and takes_activation(node, parts):
            return True
        if operator in ACTIVATIONS:
            parts.activation = parts.activation or ACTIVATIONS[operator]
            return True
        if isinstance(operator, Clip):
            self._clip(node, operator, parts)
            return True
        if constant is None:
            return operator.function is Function.FLOOR
        taken = _shifted if operator.function is Function.ADD else _scaled
        return taken(node, operator.function, constant, parts)

    def _clip(self, node: Node, clip: Clip, parts: Parts | None) -> None:
        """Let a layer limit its results as the chip does by itself; RefusedError for other limits,
        and without a layer for those that change something.
        """
        low, high = clip.low, clip.high
        wide = parts is not None and high > _WIDE and (low < -_WIDE or low == 0.0)
        if not wide and (high not in (127.0, 127 / 128) or low not in (-128.0, -1.0, 0.0)):
            raise RefusedError(f"it limits data to {low:g}..{high:g}, the chip to -128..127",
                               "Use Relu: the chip limits results by itself.", node)  # fmt: skip
        if parts is None:
            if low == 0.0 and node.inputs[0] not in self._positive:
                raise RefusedError(f"it limits to {low:g}..{high:g}", "Use Relu.", node)
            return
        if low == 0.0:
            parts.activation = parts.activation or "ReLU"
        parts.rounded, parts.wide = True, parts.wide or wide

    def _by_element(self, node: Node, operator: Clip | Each, source: Any) -> Any:
        if isinstance(operator, Clip):
            self._clip(node, operator, None)
        elif not _drops_fractions(node, operator.function):
            raise self._without(node)
        self._positive |= {node} if node.inputs[0] in self._positive else set()
        return source


def _drops_fractions(node: Node, function: Function) -> bool:
    """Return whether a node rounds a sum down, which changes nothing, or an average as chips do."""
    data = node.inputs[0]
    while isinstance(data.operator, _KEEPING):
        data = data.inputs[0]
    made = data.operator
    averaged = isinstance(made, Pool) and made.average
    averaged |= isinstance(made, Reduce) and made.reduction is Reduction.MEAN
    added = made in (Each(Function.ADD), Each(Function.SUB))
    return (function is Function.FLOOR and (added or averaged)) or (
        function is Function.TRUNC and averaged
    )


def _scaled(node: Node, function: Function, constant: Array, parts: Parts) -> bool:
    """Let a layer multiply its result by a power of two, or round it; false for others."""
    if function is not Function.MUL or constant.size != 1:
        return False
    factor = float(constant.ravel()[0])
    if factor < 0 and not parts.rounded and parts.activation is None:
        parts.weights, factor = -parts.weights, -factor
        parts.bias = None if parts.bias is None else -parts.bias
    exponent = math.log2(factor) if factor > 0 else 0.5
    if exponent != int(exponent) or parts.rounded:
        raise RefusedError(f"it multiplies by {factor:g}, the chip by powers of two",
                           "Fold the factor into the weights.", node)  # fmt: skip
    if exponent == -7:
        parts.rounded = True
    else:
        parts.shift += int(exponent)
    return True


def _shifted(node: Node, _function: Function, constant: Array, parts: Parts) -> bool:
    """Let a layer add half a unit before it rounds, or a bias; false for others."""
    if constant.size == 1 and float(constant.ravel()[0]) == 0.5 and parts.rounded:
        return True
    shape = node.inputs[0].shape
    bias = along(constant, shape, 1 if len(shape) > 2 else len(shape) - 1)
    if bias is None or parts.activation is not None or parts.rounded:
        return False
    bias = bias * 2.0**-parts.shift
    parts.bias = bias if parts.bias is None else parts.bias + bias
    return True

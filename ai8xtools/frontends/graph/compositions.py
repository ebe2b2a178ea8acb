"""Operators that are composed of others: activations, normalizations, upsampling.

A pass for targets that compute every function of elements; others refuse these by name.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping
from typing import Any

import numpy as np

from ai8xtools.frontends.graph.nodes import Node, constant, make
from ai8xtools.frontends.graph.operators import (
    Array,
    Clip,
    Concat,
    Each,
    Foreign,
    Function,
    Gemm,
    MeanVarianceNormalization,
    Operator,
    Reduce,
    Reduction,
    Reshape,
    Slice,
    Transpose,
)
from ai8xtools.frontends.graph.passes import Readers
from ai8xtools.frontends.graph.recurrent import recurrent

_SELU = (1.6732632423543772, 1.0507009873554805)
_FAR = 1e30
"""Stands for infinity, which masks have."""


class Maker:
    """Makes nodes in the place of one, from its data and settings."""

    def __init__(self, node: Node) -> None:
        assert isinstance(node.operator, Foreign)
        self.node, self.data, self.kind = node, node.inputs[0], node.operator.plain_name
        self._settings = dict(node.operator.settings)

    def get(self, name: str, default: Any) -> Any:
        """Return a setting."""
        value = self._settings.get(name)
        return default if value is None else value

    def __call__(self, operator: Operator, *inputs: Node | float | Array) -> Node:
        """Return a node in the place of the one."""
        nodes = (one if isinstance(one, Node) else constant(np.asarray(one, np.float64))
                 for one in inputs)  # fmt: skip
        return make(self.node.place, operator, *nodes)

    def each(self, name: str, *inputs: Node | float | Array) -> Node:
        """Return what a function makes of elements."""
        return self(Each(Function(name)), *inputs)

    def above(self) -> Node:
        """Return the part of the data above zero."""
        return self(Clip(0.0, np.inf), self.data)

    def exponential(self, scale: float) -> Node:
        """Return exp(x / scale) - 1 of the part below zero."""
        below = self(Clip(-np.inf, 0.0), self.data)
        return self.each("Sub", self.each("Exp", self.each("Mul", below, 1 / scale)), 1.0)


def chosen(place: str, mask: Array, a: Node, b: Node) -> Node:
    """Return `a` where a constant mask is not 0, else `b`; constants without end are far ones."""
    parts, whole = [], [np.zeros(())]
    for one, share in ((a, mask != 0), (b, mask == 0)):
        if one.constant is None:
            parts.append(make(place, Each(Function.MUL), one, constant(share.astype(np.float64))))
        else:
            whole.append(np.where(share, np.clip(one.constant, -_FAR, _FAR), 0.0))
    rest = np.asarray(sum(whole))
    if rest.any():
        parts.append(constant(rest))
    return parts[0] if len(parts) == 1 else make(place, Each(Function.ADD), *parts)


def _elu(m: Maker) -> Node:
    return m.each("Add", m.above(), m.each("Mul", m.exponential(1.0), m.get("alpha", 1.0)))


def _celu(m: Maker) -> Node:
    alpha = float(m.get("alpha", 1.0))
    return m.each("Add", m.above(), m.each("Mul", m.exponential(alpha), alpha))


def _selu(m: Maker) -> Node:
    alpha, gamma = m.get("alpha", _SELU[0]), m.get("gamma", _SELU[1])
    whole = m.each("Add", m.above(), m.each("Mul", m.exponential(1.0), alpha))
    return m.each("Mul", whole, gamma)


def _softplus(m: Maker) -> Node:
    """Return log(1 + exp(x)) without powers that leave the range of numbers."""
    beta = float(m.get("beta", 1.0))
    falls = m.each("Exp", m.each("Mul", m.each("Abs", m.data), -beta))
    rest = m.each("Mul", m.each("Log", m.each("Add", falls, 1.0)), 1 / beta)
    return m.each("Add", m.above(), rest)


def _softsign(m: Maker) -> Node:
    return m.each("Div", m.data, m.each("Add", m.each("Abs", m.data), 1.0))


def _mish(m: Maker) -> Node:
    return m.each("Mul", m.data, m.each("Tanh", _softplus(m)))


def _swish(m: Maker) -> Node:
    scaled = m.each("Mul", m.data, m.get("alpha", 1.0))
    return m.each("Mul", m.data, m.each("Sigmoid", scaled))


def _gelu(m: Maker) -> Node:
    x = m.data
    if m.get("approximate", "none") == "tanh":
        cubed = m.each("Mul", m.each("Mul", m.each("Mul", x, x), x), 0.044715)
        inner = m.each("Mul", m.each("Add", x, cubed), math.sqrt(2 / math.pi))
        share = m.each("Add", m.each("Tanh", inner), 1.0)
    else:
        share = m.each("Add", m.each("Erf", m.each("Mul", x, math.sqrt(0.5))), 1.0)
    return m.each("Mul", m.each("Mul", x, share), 0.5)


def _thresholded(m: Maker) -> Node:
    """Return x where it is above a limit, else 0, or the value that is stated."""
    sign = m.each("Sign", m.each("Sub", m.data, m.get("alpha", m.get("threshold", 1.0))))
    value = m.get("value", 0.0)
    above = m.each("Mul", m.each("Sub", m.data, value), m(Clip(0.0, np.inf), sign))
    return m.each("Add", above, value) if value else above


def _normalized(m: Maker, data: Node, axes: tuple[int, ...]) -> Node:
    """Return data less their mean, over the root of their variance."""
    return m(MeanVarianceNormalization(axes, m.get("epsilon", m.get("eps", 1e-5))), data)


def _normalized_by_hand(node: Node) -> Node:
    """Return normalization that an exporter wrote out: what is less its mean over a root."""
    if node.operator != Each(Function.DIV):
        return node
    less, root = node.inputs
    if root.operator != Each(Function.SQRT) or root.inputs[0].operator != Each(Function.ADD):
        return node
    added = sorted(root.inputs[0].inputs, key=lambda one: one.constant is not None)
    variance, epsilon = added[0], added[1].constant
    match variance.operator, less.operator:
        case Reduce(reduction=Reduction.MEAN, keep=True) as over, Each(function=Function.SUB):
            data, mean = less.inputs
        case _:
            return node
    squared = variance.inputs[0]
    power = squared.inputs[-1].constant
    square = squared.operator == Each(Function.MUL) or (
        squared.operator == Each(Function.POW) and power is not None and (power == 2).all()
    )
    same = squared.inputs[0] is less and (power is not None or squared.inputs[-1] is less)
    if not square or not same or mean.operator != over or mean.inputs != (data,):
        return node
    if epsilon is None or epsilon.size != 1:
        return node
    axes = over.axes
    return make(node.place, MeanVarianceNormalization(axes, float(epsilon.ravel()[0])), data)


def normalized_by_parts(node: Node, _readers: Readers) -> Node:
    """Normalization is made of means, products and a power."""
    operator = node.operator
    if not isinstance(operator, MeanVarianceNormalization):
        return node

    def each(name: str, a: Node, b: Node | float) -> Node:
        b = b if isinstance(b, Node) else constant(np.array(b))
        return make(node.place, Each(Function(name)), a, b)

    mean, data = Reduce(Reduction.MEAN, operator.axes, True), node.inputs[0]
    less = each("Sub", data, make(node.place, mean, data))
    variance = make(node.place, mean, each("Mul", less, less))
    return each("Mul", less, each("Pow", each("Add", variance, operator.epsilon), -0.5))


def _scaled(m: Maker, data: Node, shape: tuple[int, ...]) -> Node:
    """Return data times the gain, and the offset, that follow the data of the node."""
    for one, name in zip(m.node.inputs[1:], ("Mul", "Add"), strict=False):
        data = m.each(name, data, m(Reshape(shape), one))
    return data


def _by_channel(m: Maker) -> tuple[int, ...]:
    return (1, m.data.shape[1], *(1,) * (len(m.data.shape) - 2))


def _instance(m: Maker) -> Node:
    axes = tuple(range(2, len(m.data.shape)))
    return _scaled(m, _normalized(m, m.data, axes), _by_channel(m))


def _group(m: Maker) -> Node:
    count, shape = int(m.get("num_groups", 1)), m.data.shape
    apart = m(Reshape((1, count, math.prod(shape) // count)), m.data)
    whole = m(Reshape(shape), _normalized(m, apart, (2,)))
    return _scaled(m, whole, _by_channel(m))


def _layer(m: Maker) -> Node:
    shape = m.data.shape
    first = m.get("axis", -len(m.get("normalized_shape", (1,)))) % len(shape)
    axes = tuple(range(first, len(shape)))
    return _scaled(m, _normalized(m, m.data, axes), (1,) * first + shape[first:])


def _adaptive(m: Maker) -> Node:
    """Return means, or maxima, of windows of different sizes, one axis after the other."""
    data, sizes = m.data, m.node.shape
    for axis, (n, size) in enumerate(zip(data.shape, sizes, strict=True)):
        if n == size:
            continue
        ends = [(i * n // size, -(-(i + 1) * n // size)) for i in range(size)]
        if m.kind == "adaptiveavgpool":
            weights = np.array([[begin <= j < end for j in range(n)] for begin, end in ends])
            data = _along(m, data, axis, weights / weights.sum(1, keepdims=True))
            continue
        parts = []
        for begin, end in ends:
            shape, start = list(data.shape), [0] * len(data.shape)
            shape[axis], start[axis] = end - begin, begin
            cut = m(Slice(tuple(start), (1,) * len(shape), tuple(shape)), data)
            parts.append(m(Reduce(Reduction.MAX, (axis,), True), cut))
        data = m(Concat(axis), *parts)
    return data


def _along(m: Maker, data: Node, axis: int, weights: Array) -> Node:
    """Return the product of an axis and a matrix."""
    order = list(range(len(data.shape)))
    order[axis], order[-1] = order[-1], order[axis]
    turned = m(Transpose(tuple(order)), data)
    return m(Transpose(tuple(order)), m(Gemm(), turned, weights))


def _interpolated(m: Maker) -> Node:
    """Return data whose axes are interpolated one after the other: products with matrices."""
    data, sizes = m.data, m.node.shape
    for axis, (n, size) in enumerate(zip(data.shape, sizes, strict=True)):
        if n == size:
            continue
        weights = linear_weights(n, size, m.get("coordinates", "half_pixel"))
        data = _along(m, data, axis, weights)
    return data


def linear_weights(n: int, size: int, coordinates: str) -> Array:
    """Return by how much each of `n` values counts for each of `size`."""
    i = np.arange(size, dtype=np.float64)
    match coordinates:
        case "align_corners":
            x = i * ((n - 1) / (size - 1)) if size > 1 else i * 0
        case "asymmetric":
            x = i * (n / size)
        case _:
            x = (i + 0.5) * (n / size) - 0.5 if size > 1 or coordinates == "half_pixel" else i * 0
    x = x.clip(0, n - 1)
    first = np.minimum(np.floor(x).astype(int), max(n - 2, 0))
    weights = np.zeros((size, n))
    rows = np.arange(size)
    weights[rows, first] += 1 - (x - first)
    weights[rows, np.minimum(first + 1, n - 1)] += x - first
    return weights


_COMPOSED: Mapping[str, Callable[[Maker], Node | None]] = {
    "elu": _elu, "celu": _celu, "selu": _selu, "softplus": _softplus, "softsign": _softsign,
    "mish": _mish, "swish": _swish, "gelu": _gelu, "thresholdedrelu": _thresholded,
    "threshold": _thresholded,
    "instancenormalization": _instance, "instancenorm": _instance, "batchnorm": _instance,
    "groupnormalization": _group, "groupnorm": _group,
    "layernormalization": _layer, "layernorm": _layer, "linearinterpolation": _interpolated,
    "adaptiveavgpool": _adaptive, "adaptivemaxpool": _adaptive,
    "rnn": recurrent, "gru": recurrent, "lstm": recurrent,
}  # fmt: skip


def compositions(node: Node, _readers: Readers) -> Node:
    """Operators without a node of their own become those that they are made of."""
    if not isinstance(node.operator, Foreign) or not node.inputs:
        return _normalized_by_hand(node)
    composed = _COMPOSED.get(node.operator.plain_name)
    result = None if composed is None else composed(Maker(node))
    return result if result is not None and result.shape == node.shape else node

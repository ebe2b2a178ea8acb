"""Products of matrices: with a constant they are layers, of two results sums of products."""

from __future__ import annotations

from itertools import product as pairs

import numpy as np

from ai8xtools.frontends.graph.nodes import Node, constant, make
from ai8xtools.frontends.graph.operators import (
    Concat,
    Each,
    Function,
    Gemm,
    MatMul,
    Reduce,
    Reduction,
    Reshape,
    Shape,
    Slice,
    Transpose,
)
from ai8xtools.frontends.graph.passes import Readers

_AT_A_TIME = 1 << 11
"""Products of elements that are stored together."""


def products_of_constants(node: Node, _readers: Readers) -> Node:
    """The product of a constant matrix and data is a fully connected layer."""
    if not isinstance(node.operator, MatMul):
        return node
    a, b = node.inputs
    left = a.constant is not None
    matrix, data = (a, b) if left else (b, a)
    if matrix.constant is None or any(n > 1 for n in matrix.shape[:-2]):
        return node
    if len(matrix.shape) > len(data.shape):
        return node
    weights = np.asarray(matrix.constant).reshape(matrix.shape[-2:])
    if not left:
        return make(node.place, Gemm(), data, constant(weights.T, matrix.place))
    turned = _turned(node.place, data)
    return _turned(node.place, make(node.place, Gemm(), turned, constant(weights, matrix.place)))


def products(node: Node, _readers: Readers) -> Node:
    """Products of two results are sums of products of elements, some rows at a time."""
    if not isinstance(node.operator, MatMul):
        return node
    place, (a, b) = node.place, node.inputs
    *batch, rows, columns = node.shape
    count = a.shape[-1]
    at_a_time = max(_AT_A_TIME // (count * columns), 1)
    parts = []
    for index in pairs(*map(range, batch)):
        right = _matrix(place, b, index, range(count))
        right = make(place, Reshape((1, columns, count, 1)), _turned(place, right))
        for first in range(0, rows, at_a_time):
            some = range(first, min(first + at_a_time, rows))
            left = _turned(place, _matrix(place, a, index, some))
            left = make(place, Reshape((1, 1, count, len(some))), left)
            each = make(place, Each(Function.MUL), left, right)
            sums = make(place, Reduce(Reduction.SUM, (2,), True), each)
            sums = make(place, Reshape((columns, len(some))), sums)
            parts.append(_turned(place, sums))
    joined = parts[0] if len(parts) == 1 else make(place, Concat(0), *parts)
    return make(place, Reshape(node.shape), joined)


def _matrix(place: str, node: Node, index: Shape, rows: range) -> Node:
    """Return rows of one of the matrices of a result; one that all share has a batch of 1."""
    *batch, _, columns = node.shape
    own = index[len(index) - len(batch) :]
    start = tuple(min(at, n - 1) for at, n in zip(own, batch, strict=True))
    cut = Slice((*start, rows.start, 0), (1,) * len(node.shape),
                (*(1 for _ in batch), len(rows), columns))  # fmt: skip
    return make(place, Reshape((len(rows), columns)), make(place, cut, node))


def _turned(place: str, node: Node) -> Node:
    """Return matrices whose last two axes are exchanged."""
    axes = len(node.shape)
    return make(place, Transpose((*range(axes - 2), axes - 1, axes - 2)), node)

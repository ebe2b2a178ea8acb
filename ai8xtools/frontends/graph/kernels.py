"""Convolutions of other shapes as those that the accelerator has: of 3x3, without groups.

Kernels grow by zeros. Larger ones read shifted copies of their data, which kernels of ones make.
"""

from __future__ import annotations

import itertools
import math
from collections.abc import Iterator
from dataclasses import replace

import numpy as np

from ai8xtools.frontends.graph.nodes import Node, constant, make
from ai8xtools.frontends.graph.operators import Array, Conv, Pads, Resize, Shape, Slice
from ai8xtools.frontends.graph.passes import Readers, Rule

_SMALL, _LARGE = 3, 5
_SERIES = range(1, 10)
"""Values of kernels of one axis."""


def moved(place: str, data: Node, kernels: Array, pad: int = 0) -> Node:
    """Return data in other places: each filter has a single 1."""
    ones = (1,) * (kernels.ndim - 2)
    operator = Conv(ones, ((pad, pad),) * len(ones), ones, moves=True)
    return make(place, operator, data, constant(kernels))


def channel_sections(node: Node, _readers: Readers) -> Node:
    """A section of channels, or some of them in any order, is what kernels of ones take."""
    operator = node.operator
    if not isinstance(operator, Slice | Resize) or len(node.shape) not in (3, 4):
        return node
    data, taken = node.inputs[0], node.inputs[0].shape
    places = operator.places if isinstance(operator, Resize) else [
        np.arange(n) * step + start
        for start, step, n in zip(operator.start, operator.step, operator.count, strict=True)
    ]  # fmt: skip
    if [axis for axis, n in enumerate(taken) if [*places[axis]] != [*range(n)]] != [1]:
        return node
    chosen = np.array(places[1])
    kernels = np.eye(taken[1])[chosen].reshape(len(chosen), taken[1], *(1,) * (len(taken) - 2))
    return moved(node.place, data, kernels)


def dense_groups(*, depthwise: bool) -> Rule:
    """Return the pass by which groups become kernels with zeros, but for depth-wise ones where the
    chip has these.
    """

    def groups_by_zeros(node: Node, _readers: Readers) -> Node:
        """Kernels of groups have zeros for the channels of others."""
        operator = node.operator
        weights = node.inputs[1].constant if isinstance(operator, Conv) else None
        if not isinstance(operator, Conv) or operator.groups == 1 or weights is None:
            return node
        alone = operator.groups == len(weights) == node.inputs[0].shape[1]
        if depthwise and alone:
            return node
        own, filters = weights.shape[1], len(weights) // operator.groups
        dense = np.zeros((len(weights), own * operator.groups, *weights.shape[2:]))
        for group in range(operator.groups):
            rows = slice(group * filters, (group + 1) * filters)
            dense[rows, group * own : (group + 1) * own] = weights[rows]
        whole = constant(dense, node.inputs[1].place)
        return make(node.place, replace(operator, groups=1), node.inputs[0], whole,
                    *node.inputs[2:])  # fmt: skip

    return groups_by_zeros


def square_kernels(node: Node, _readers: Readers) -> Node:
    """Kernels grow by zeros until their sides and pads are equal; those of 5x5 are split."""
    operator = node.operator
    weights = node.inputs[1].constant if isinstance(operator, Conv) else None
    if not isinstance(operator, Conv) or weights is None or operator.groups > 1:
        return node
    kernel, rest = weights.shape[2:], node.inputs[2:]
    alike = len(set(kernel)) == len({n for pair in operator.pads for n in pair}) == 1
    if alike and (len(kernel) == 1 or kernel[0] in (1, _SMALL)):
        return node
    border = _grown(kernel, operator.pads, operator.dilations)
    if border is None or set(operator.strides) != {operator.strides[0]}:
        return node
    zeros, pad = border
    wide = np.pad(weights, ((0, 0), (0, 0), *zeros))
    name = node.inputs[1].place
    if wide.shape[2:] != (_LARGE, _LARGE):
        pads = ((pad, pad),) * len(kernel)
        return make(node.place, replace(operator, pads=pads), node.inputs[0],
                    constant(wide, name), *rest)  # fmt: skip
    if set(operator.dilations) != {1}:
        return node
    copies = moved(f"{node.place}_copies", node.inputs[0], _copies(wide.shape[1]), pad)
    none = ((0, 0), (0, 0))
    return make(node.place, replace(operator, pads=none), copies, constant(_split(wide), name),
                *rest)  # fmt: skip


def _grown(kernel: Shape, pads: Pads, dilations: Shape) -> tuple[Pads, int] | None:
    """Return zeros (before, behind) by axis and the padding that all sides have then."""
    if len(kernel) == 1:
        sizes = [n for n in _SERIES if n >= kernel[0]]
    else:
        sizes = [n for n in (_SMALL, _LARGE) if n >= max(kernel)]
    for size in sizes:
        ways = [list(_ways(k, size, *p, d)) for k, p, d in
                zip(kernel, pads, dilations, strict=True)]  # fmt: skip
        for way in itertools.product(*ways):
            if len({pad for _, pad in way}) == 1:
                return tuple(zeros for zeros, _ in way), way[0][1]
    return None


def _ways(
    kernel: int, size: int, begin: int, end: int, dilation: int
) -> Iterator[tuple[tuple[int, int], int]]:
    """Yield how many zeros before and behind make both pads of an axis equal, and these."""
    for before in range(size - kernel + 1):
        behind = size - kernel - before
        if begin + before * dilation == end + behind * dilation:
            yield (before, behind), begin + before * dilation


_BLOCKS = (slice(0, 3), slice(3, 5))
"""Of the five rows or columns of a kernel: those that read a copy as it is, and one 2 further."""


def _copies(channels: int) -> Array:
    """Return kernels of ones that make four copies of data, 0 and 2 rows and columns further."""
    kernels = np.zeros((2, 2, channels, channels, _SMALL, _SMALL))
    for row, column in itertools.product(range(2), range(2)):
        kernels[row, column, :, :, 2 * row, 2 * column] = np.eye(channels)
    return kernels.reshape(4 * channels, channels, _SMALL, _SMALL)


def _split(weights: Array) -> Array:
    """Return kernels of 3x3 for the copies in place of those of 5x5."""
    filters, channels = weights.shape[:2]
    split = np.zeros((filters, 2, 2, channels, _SMALL, _SMALL))
    for row, column in itertools.product(range(2), range(2)):
        rows, columns = _BLOCKS[row], _BLOCKS[column]
        part = weights[:, :, rows, columns]
        split[:, row, column, :, row : row + part.shape[2], column : column + part.shape[3]] = part
    return split.reshape(filters, math.prod((4, channels)), _SMALL, _SMALL)

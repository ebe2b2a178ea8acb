"""Convolutions of other shapes as those that the accelerator has: of 3x3, without groups.

Kernels grow by zeros. Larger ones read shifted copies of their data, which kernels of ones make.
"""

from __future__ import annotations

import itertools
import math
from collections.abc import Iterator, Sequence
from dataclasses import replace

import numpy as np

from ai8xtools.frontends.graph.nodes import Node, constant, make
from ai8xtools.frontends.graph.operators import Array, Conv, Pads, Resize, Shape, Slice
from ai8xtools.frontends.graph.passes import Readers, Rule

_LARGEST = {1: 9, 2: 3}
"""Values on a side of the chip's largest kernels, by number of axes."""
_MOST = 32
"""Kernels that are split are smaller than this."""
_MOST_PAD = 2
_MOST_CHANNELS = 1024
"""Of data in the accelerator."""


def moved(
    place: str, data: Node, kernels: Array, pad: int = 0, dilations: Shape | None = None
) -> Node:
    """Return data in other places: each filter has a single 1."""
    ones = (1,) * (kernels.ndim - 2)
    operator = Conv(ones, ((pad, pad),) * len(ones), dilations or ones, moves=True)
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
        whole = constant(_dense(weights, operator.groups), node.inputs[1].place)
        return make(node.place, replace(operator, groups=1), node.inputs[0], whole,
                    *node.inputs[2:])  # fmt: skip

    return groups_by_zeros


def _dense(weights: Array, groups: int) -> Array:
    """Return kernels of groups with zeros for the channels of others."""
    own, filters = weights.shape[1], len(weights) // groups
    dense = np.zeros((len(weights), own * groups, *weights.shape[2:]))
    for group in range(groups):
        rows = slice(group * filters, (group + 1) * filters)
        dense[rows, group * own : (group + 1) * own] = weights[rows]
    return dense


def square_kernels(node: Node, _readers: Readers) -> Node:
    """Kernels grow by zeros until their sides and pads are equal; those beyond the chip's are
    split.

    In two dimensions zeros stand between the values of dilated kernels, too.
    """
    operator = node.operator
    weights = node.inputs[1].constant if isinstance(operator, Conv) else None
    if not isinstance(operator, Conv) or weights is None:
        return node
    axes, dilations = weights.ndim - 2, operator.dilations
    if axes == 2:
        weights, dilations = _spread(weights, dilations), (1, 1)
    kernel, largest = weights.shape[2:], _LARGEST[axes]
    alike = len(set(kernel)) == len({n for pair in operator.pads for n in pair}) == 1
    if alike and kernel[0] in ((1, largest) if axes == 2 else range(largest + 1)):
        return node
    border = _grown(node, operator, kernel, dilations)
    if border is None or set(operator.strides) != {operator.strides[0]}:
        return node
    zeros, pad = border
    data, name, groups = node.inputs[0], node.inputs[1].place, operator.groups
    weights = np.pad(weights, ((0, 0), (0, 0), *zeros))
    blocks = -(-(weights.shape[2] - 1) // (largest - 1))
    pads = [min(max(pad - _MOST_PAD * stage, 0), _MOST_PAD) for stage in range(blocks)]
    if blocks > 1:
        copied = _copied(node.place, data, weights, groups, dilations, pads)
        if copied is None:
            return node
        (data, weights), groups = copied, 1
    operator = Conv(operator.strides, ((pads[-1],) * 2,) * axes, dilations, groups)
    return make(node.place, operator, data, constant(weights, name), *node.inputs[2:])


def _spread(weights: Array, dilations: Shape) -> Array:
    """Return kernels with the zeros of their dilations between their values."""
    sizes = (d * (k - 1) + 1 for d, k in zip(dilations, weights.shape[2:], strict=True))
    wide = np.zeros((*weights.shape[:2], *sizes))
    wide[:, :, *(slice(None, None, d) for d in dilations)] = weights
    return wide


def _grown(node: Node, operator: Conv, kernel: Shape, dilations: Shape) -> tuple[Pads, int] | None:
    """Return zeros (before, behind) by axis and the padding that all sides have then.

    The chip pads by at most 2 at a time: copies that lose nothing are made with as much as they
    are moved, later layers pad only behind such.
    """
    largest, axes = _LARGEST[len(kernel)], list(zip(
        kernel, operator.pads, dilations, operator.strides, node.inputs[0].shape[2:],
        node.shape[2:], strict=True))  # fmt: skip
    small = range(1, largest) if len(kernel) == 1 else ()
    for size in (*small, *range(largest, _MOST, largest - 1)):
        if size < max(kernel):
            continue
        layers = max(1, -(-(size - 1) // (largest - 1))) if largest - 1 == _MOST_PAD else 1
        for way in itertools.product(*(list(_ways(size, *axis)) for axis in axes)):
            pads = {pad for _, pad in way}
            if len(pads) == 1 and way[0][1] <= layers * _MOST_PAD:
                return tuple(zeros for zeros, _ in way), way[0][1]
    return None


def _ways(
    size: int, kernel: int, pads: tuple[int, int], dilation: int, stride: int, taken: int,
    results: int,
) -> Iterator[tuple[tuple[int, int], int]]:  # fmt: skip
    """Yield how many zeros before and behind let an axis have the same pads, and these."""
    for before in range(size - kernel + 1):
        pad = pads[0] + before * dilation
        if (taken + 2 * pad - dilation * (size - 1) - 1) // stride + 1 == results:
            yield (before, size - kernel - before), pad


def _copied(
    place: str, data: Node, weights: Array, groups: int, dilations: Shape, pads: Sequence[int]
) -> tuple[Node, Array] | None:
    """Return copies of data, each some steps further, and kernels of the largest size for them.

    A step is as far as a kernel of a single 1 moves, and each layer of copies moves by one.
    Blocks of the kernels without weights have no copy. None: the copies are too many.
    """
    filters, channels, axes = len(weights), data.shape[1], weights.ndim - 2
    largest = _LARGEST[axes]
    parts: dict[Shape, Array] = {}
    covers = [_cover(np.asarray(weights.any(axis=tuple({*range(axes + 2)} - {axis + 2}))), largest,
                     len(pads))
              for axis in range(axes)]  # fmt: skip
    if math.prod(map(len, covers)) * channels > _MOST_CHANNELS:
        return None
    weights = _dense(weights, groups)
    for cover in itertools.product(*covers):
        block = tuple(number for number, _ in cover)
        part = np.zeros((filters, channels, *(largest,) * axes))
        inside = (slice(rows.start - n * (largest - 1), rows.stop - n * (largest - 1))
                  for n, rows in cover)  # fmt: skip
        part[:, :, *inside] = weights[:, :, *(rows for _, rows in cover)]
        if part.any() or not parts:
            parts[block] = part
    wanted = [list(parts)]
    for _ in pads[1:]:
        wanted.insert(0, sorted({tuple(max(b - 1, 0) for b in block) for block in wanted[0]}))
    for number, (before, blocks, pad) in enumerate(zip(wanted, wanted[1:], pads, strict=False)):
        ones = np.zeros((len(blocks), channels, len(before), channels, *(largest,) * axes))
        for row, block in enumerate(blocks):
            source = tuple(max(b - 1, 0) for b in block)
            steps = [(b - s) * (largest - 1) for b, s in zip(block, source, strict=True)]
            own = ones[row, :, before.index(source)]
            own[:, :, *(slice(at, at + 1) for at in steps)] = np.eye(channels).reshape(
                channels, channels, *(1,) * axes)  # fmt: skip
        kernels = ones.reshape(len(blocks) * channels, -1, *ones.shape[4:])
        name = f"{place}_copies_{number + 1}" if number else f"{place}_copies"
        data = moved(name, data, kernels, pad, dilations)
    return data, np.concatenate(list(parts.values()), axis=1)


def _cover(needed: Array, largest: int, blocks: int) -> list[tuple[int, slice]]:
    """Return the fewest blocks that read all that is needed of an axis, and what each reads."""
    step, places = largest - 1, np.flatnonzero(needed)
    cover: list[tuple[int, slice]] = []
    for place in places if len(places) else (0,):
        if not cover or place >= cover[-1][1].stop:
            block = min(int(place) // step, blocks - 1)
            cover.append((block, slice(int(place), block * step + largest)))
    return cover

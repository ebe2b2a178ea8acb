"""Pooling, and axes that are taken together: windows and what becomes of their values."""

from __future__ import annotations

import math
from dataclasses import replace

import numpy as np

from ai8xtools.frontends.graph.nodes import Node
from ai8xtools.frontends.graph.operators import (
    Pool,
    Reduce,
    Reduction,
    Shape,
)
from ai8xtools.software import graph as steps
from ai8xtools.software.graph import Int64, Interval, Load, Size
from ai8xtools.software.operators.storage import RefusedError, Storage, Stored, laid

_WIDE = 32
"""Bits of values that are stored."""


class Windowing(Storage):
    """Stores the values of windows."""

    def _pool(self, node: Node, operator: Pool) -> Stored:
        if len(operator.window) not in (1, 2):
            raise RefusedError(f"it pools {len(operator.window)} axes", "Pool rows and columns.")
        stored = self._scaled(node)
        over = stored.over * _counts(node, operator) if operator.average else stored.over
        begins = tuple(begin for begin, _ in operator.pads)
        return self._windows(
            node, stored.places, over, operator.average, _pair(operator.window), node.shape,
            stride=_pair(operator.strides), pad=_pair(begins, 0),
            dilation=_pair(operator.dilations),
        )  # fmt: skip

    def _reduced(self, node: Node, operator: Reduce) -> Stored:
        """Store what axes are taken together to: windows over all of them."""
        stored, shape = self._scaled(node), node.inputs[0].shape
        sums = operator.reduction in (Reduction.MEAN, Reduction.SUM)
        if not sums and operator.reduction is not Reduction.MAX:
            raise RefusedError(f"there is no kernel for {node.name}")
        count = math.prod(shape[axis] for axis in operator.axes)
        over = stored.over * (count if operator.reduction is Reduction.MEAN else 1)
        places, kept = stored.places, tuple(1 if axis in operator.axes else n
                                            for axis, n in enumerate(shape))  # fmt: skip
        if shape[0] == 1 and len(shape) in (3, 4) and min(operator.axes) > 1:
            window = _pair(tuple(n if axis + 2 in operator.axes else 1
                                 for axis, n in enumerate(shape[2:])))  # fmt: skip
        else:  # other axes become rows
            left = [axis for axis in range(len(shape)) if axis not in operator.axes]
            places = places.transpose((*left, *operator.axes)).reshape(1, -1, count)
            window, kept = (count, 1), (*places.shape[:2], 1)
        result = self._windows(node, places, over, sums, window, kept)
        return Stored(result.places.reshape(node.shape), result.over)

    def _windows(
        self, node: Node, places: Int64, over: Int64, sums: bool, window: Size, shape: Shape,
        *, stride: Size = (1, 1), pad: Size = (0, 0), dilation: Size = (1, 1),
    ) -> Stored:  # fmt: skip
        """Store what the values of windows become; `shape` is that of the results."""
        ordered = laid(places)
        tensor = self._in_order(node.place, self._stored[node.inputs[0]], ordered)
        size, channels = ordered.shape[:2], ordered.shape[2]
        out_size = laid(np.broadcast_to(np.int8(0), shape)).shape[:2]
        interval = self._range_of(tensor, channels)
        low, high = interval.low, interval.high
        if sums:
            count = math.prod(window)
            low, high = np.minimum(low, 0) * count, np.maximum(high, 0) * count
        target = self._tensor(f"{node.place} output", out_size, Interval(low, high))
        if sums:
            self._tensors[target] = replace(self._tensors[target], bytes_per_value=4)
        self._steps.append(
            steps.Windows(
                source=tensor, target=target, layer=len(self._steps), name=node.place,
                channels=channels, in_size=size, out_size=out_size, sums=sums, window=window,
                stride=stride, pad=pad, dilation=dilation, element=Load(0), bits=_WIDE,
            )
        )  # fmt: skip
        return self._stored_in(shape, target, over)


def _pair(values: Shape, single: int = 1) -> Size:
    """Return rows and columns; series have one column."""
    return (values[0], values[1]) if len(values) == 2 else (values[0], single)


def _counts(node: Node, pool: Pool) -> Int64:
    """Return by how many values the windows of an average divide, in the shape of the result."""
    counts = np.ones((), np.int64)
    for axis, (n, w, s, (begin, end), d) in enumerate(zip(
        node.inputs[0].shape[2:], pool.window, pool.strides, pool.pads, pool.dilations, strict=True
    )):  # fmt: skip
        taps = np.arange(node.shape[axis + 2])[:, None] * s + np.arange(w) * d
        low, high = (0, n + begin + end) if pool.counted else (begin, begin + n)
        along = ((taps >= low) & (taps < high)).sum(1)
        counts = counts * along.reshape(-1, *(1,) * (len(node.shape) - 3 - axis))
    return counts.reshape(()) if counts.size == 1 else _alike(counts)


def _alike(counts: Int64) -> Int64:
    """Return one count where all are equal."""
    first: Int64 = counts.ravel()[:1]
    return first.reshape(()) if (counts == first).all() else counts

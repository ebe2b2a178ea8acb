"""Where values of nodes stand: tensors, places in them, and the copies that put them in order."""

from __future__ import annotations

import math
from dataclasses import replace

import numpy as np

from ai8xtools.frontends.graph.nodes import Node
from ai8xtools.frontends.graph.operators import (
    Array,
    Shape,
)
from ai8xtools.software import bounds, gathering
from ai8xtools.software import graph as steps
from ai8xtools.software.graph import Int64, Interval, Size
from ai8xtools.values import frozen

_LONGEST = 65535
"""Rows and columns are counted in 16 bits."""
_MOST_RUNS = 4096
INSTEAD = "Use another operator, or compute this part in the application."
ROUND = "Round and limit it first: Mul by a power of two, Add 0.5, Floor, Clip to -128..127."
QUANTIZE = ("Quantize a graph of fractions first (quantize.py --device MCU --calibrate DATA); in "
             "one of whole numbers round what is computed: Floor, Clip to -128..127.")  # fmt: skip
FILLED = -2
"""No place; one less than those of the first tensor, so that no run begins there."""


class RefusedError(ValueError):
    """No step stands for a node: why, and what to use instead."""

    def __init__(self, why: str, remedy: str = INSTEAD) -> None:
        super().__init__(why)
        self.why, self.remedy = why, remedy


@frozen
class Stored:
    """Where the values of a node stand, in its shape: numbers of elements, see `gathering.SPAN`.

    A value is its element / `over`; where the place is `FILLED`, the element is `fill`.
    """

    places: Int64
    over: Int64
    fill: int = 0


def laid(values: Array) -> Array:
    """Return values in the shape of a node [1, ...] in the order of memory: row, column, channel.

    Series have one column; what has no batch of one, or more than four axes, is one pixel.
    """
    if values.shape[:1] != (1,) or values.ndim not in (2, 3, 4):
        return values.reshape(1, 1, -1)
    maps = values.reshape(*values.shape[1:], *(1,) * (4 - values.ndim))
    return maps.transpose(1, 2, 0)


class Storage:
    """Tensors and steps as they grow; `_stored` tells where the values of nodes stand."""

    def __init__(self) -> None:
        self._tensors: list[steps.Tensor] = []
        self._ranges: list[Interval] = []
        self._steps: list[steps.Step] = []
        self._stored: dict[Node, Stored] = {}

    def _tensor(self, name: str, size: Size, interval: Interval) -> int:
        """Add a tensor of as many bytes as its values need."""
        low, high = int(interval.low.min()), int(interval.high.max())
        if low < -(1 << 31) or high >= 1 << 31:
            raise RefusedError(f"its results reach {max(-low, high):,}; 32 bits hold "
                                f"{bounds.LARGEST:,}", ROUND)  # fmt: skip
        if max(size) > _LONGEST:
            raise RefusedError(f"it has {max(size):,} rows or columns, the limit is {_LONGEST:,}",
                                "Cut the data into parts.")  # fmt: skip
        narrow = low >= -128 and high <= 127
        index = len(self._tensors)
        self._tensors.append(
            steps.Tensor(index, name, *size, len(interval.low), 1 if narrow else 4)
        )
        self._ranges.append(interval)
        return index

    def _stored_in(self, shape: Shape, tensor: int, over: Int64) -> Stored:
        """Return where results of a shape stand: in a tensor, in the order of memory."""
        numbers = np.arange(math.prod(shape)).reshape(shape)
        order = laid(numbers).ravel()
        places = np.empty(order.size, np.int64)
        places[order] = np.arange(order.size)
        return Stored(places.reshape(shape) + tensor * gathering.SPAN, over)

    def _in_order(self, name: str, stored: Stored, places: Int64) -> int:
        """Return a tensor that holds places [row, column, channel] in this order."""
        flat = places.ravel()
        first, start = divmod(int(flat[0]), gathering.SPAN)
        if flat[0] >= 0 and start == 0:
            one = self._tensors[first]
            whole = one.pixels * one.channels == flat.size
            if whole and np.array_equal(flat, flat[0] + np.arange(flat.size)):
                return first
        return self._copied(name, stored, places)

    def _copied(self, name: str, stored: Stored, places: Int64) -> int:
        sources = [int(n) for n in np.unique(places // gathering.SPAN) if n >= 0]
        widths = {self._tensors[one].bytes_per_value for one in sources}
        low, high = np.full(places.shape, stored.fill), np.full(places.shape, stored.fill)
        for one in sources:
            mine = places // gathering.SPAN == one
            channels = places[mine] % gathering.SPAN % self._tensors[one].channels
            low[mine], high[mine] = (
                self._ranges[one].low[channels],
                self._ranges[one].high[channels],
            )
        interval = Interval(low.min((0, 1)), high.max((0, 1)))
        target = self._tensor(f"{name} in order", places.shape[:2], interval)
        width = self._tensors[target].bytes_per_value
        if widths != {width}:  # values of several widths: the widest holds all
            width = max(*widths, width)
            self._tensors[target] = replace(self._tensors[target], bytes_per_value=width)
            for one in sources:
                if self._tensors[one].bytes_per_value != width:
                    mine = places // gathering.SPAN == one
                    places = places + mine * (self._in_width(one, width) - one) * gathering.SPAN
        filled = bool((places < 0).any())
        if filled and width > 1 and stored.fill not in (0, -1):
            raise RefusedError(f"it pads values of 32 bits with {stored.fill}", ROUND)
        pieces = gathering.pieces(places.ravel(), width)
        if len(pieces) > _MOST_RUNS:
            raise RefusedError("it moves its values too irregularly", INSTEAD)
        tensors = {piece.source: self._tensors[piece.source] for piece in pieces}
        by_rows = not filled and gathering.is_by_rows(pieces, tensors, self._tensors[target])
        self._steps.append(
            steps.Copy(sources=tuple(dict.fromkeys(piece.source for piece in pieces)),
                       target=target, layer=len(self._steps), name=name, pieces=pieces,
                       by_rows=by_rows, fill=stored.fill if filled else None)
        )  # fmt: skip
        return target

    def _in_width(self, tensor: int, width: int) -> int:
        """Return a tensor with the values of another in `width` bytes each."""
        one = self._tensors[tensor]
        size = (one.rows, one.columns)
        target = self._tensor(one.name, size, self._ranges[tensor])
        self._tensors[target] = replace(self._tensors[target], bytes_per_value=width)
        self._steps.append(
            steps.Elements(sources=(tensor,), target=target, layer=len(self._steps), name=one.name,
                           channels=one.channels, size=size, shapes=((*size, one.channels),),
                           element=steps.Load(0), bits=8 * width)
        )  # fmt: skip
        return target

    def _range_of(self, tensor: int, channels: int) -> Interval:
        """Return what the channels of a tensor can be, where it is read with so many."""
        interval = self._ranges[tensor]
        if len(interval.low) == channels:
            return interval
        return Interval(np.full(channels, interval.low.min()),
                        np.full(channels, interval.high.max()))  # fmt: skip

    def _scaled(self, node: Node) -> Stored:
        stored = self._stored[node.inputs[0]]
        if stored.over.size > 1:
            raise RefusedError("its data are of several scales", ROUND)
        return stored

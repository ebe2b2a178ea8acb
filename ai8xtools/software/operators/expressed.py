"""What is done with elements: one expression, or a table, for each result that others need."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from ai8xtools.frontends.graph.execute import value_of
from ai8xtools.frontends.graph.nodes import Node
from ai8xtools.frontends.graph.operators import (
    Array,
    Clip,
    Dropout,
    Each,
    Function,
)
from ai8xtools.software import elements
from ai8xtools.software import graph as steps
from ai8xtools.software.graph import Element, Int64, Interval, Load, Look, Pair
from ai8xtools.software.operators.exact import Exact, InexactError, Quotient
from ai8xtools.software.operators.storage import ROUND, RefusedError, Storage, Stored, laid

_LONG = 63
"""Bits of what is computed with."""
_TABLE = 4
"""Operations on 8 bits from which on a table takes their place."""
OF_ELEMENTS = Each | Clip | Dropout


class Expressing(Storage):
    """Stores what is computed of elements."""

    def _computed(self, node: Node) -> Stored:
        """Store the result of what is done with elements; if need be, what is rounded first."""
        try:
            return self._expressed(node)
        except InexactError:
            limited = [one for one in self._within(node) if one is not node and _is_rounded(one)]
            if not limited:
                raise
            for one in limited:
                self._stored[one] = self._expressed(one)
            return self._expressed(node)

    def _within(self, node: Node) -> list[Node]:
        """Return what is computed of elements for a result and not stored, in order."""
        if node in self._stored or not isinstance(node.operator, OF_ELEMENTS):
            return []
        inside = [inner for one in node.inputs for inner in self._within(one)]
        return [*dict.fromkeys((*inside, node))]

    def _expressed(self, node: Node) -> Stored:
        """Store the result of an expression, or of a table."""
        leaves: dict[Node, int] = {}
        shape = node.shape
        flat = shape[:1] != (1,) or len(shape) not in (2, 3, 4)

        def spread(values: Array) -> Array:
            values = values.reshape((1,) * (len(shape) - values.ndim) + values.shape)
            return np.broadcast_to(values, shape) if flat and values.size > 1 else values

        def in_memory(values: Array) -> Int64:
            wide = spread(np.asarray(values))
            return wide.reshape(1, 1, 1) if wide.size == 1 else laid(wide)

        def leaf(one: Node) -> Quotient | None:
            if (stored := self._stored.get(one)) is None:
                return None
            return Quotient(Load(leaves.setdefault(one, len(leaves))), stored.over)

        try:
            quotient = Exact(leaf, in_memory).quotient(node)
        except InexactError as exc:
            try:
                return self._looked_up(node)
            except InexactError:
                raise exc from None
        if _operations(quotient.element) > _TABLE:
            try:
                return self._looked_up(node)
            except InexactError:
                pass
        operands = [(self._stored[one], in_memory(self._stored[one].places)) for one in leaves]
        target = self._elements(node, quotient.element, operands)
        return self._stored_in(node.shape, target, quotient.over)

    def _elements(
        self, node: Node, element: Element, operands: Sequence[tuple[Stored, Int64]]
    ) -> int:
        """Add what is computed of elements at places [row, column, channel]; return its tensor."""
        rows, columns, channels = laid(np.broadcast_to(np.int8(0), node.shape)).shape
        tensors = [self._in_order(node.place, stored, places) for stored, places in operands]
        ranges = [self._range_of(tensor, places.shape[2])
                  for tensor, (_, places) in zip(tensors, operands, strict=True)]  # fmt: skip
        limits = [(one.low.reshape(1, 1, -1), one.high.reshape(1, 1, -1)) for one in ranges]
        try:
            low, high = elements.bounds(element, limits)
        except elements.DivisorError as exc:
            raise RefusedError(str(exc), "Limit it first: Clip from 1 on.") from None
        needed = elements.most_bits(element, limits)
        if needed > _LONG:
            raise RefusedError(f"it needs {needed} bits to be computed exactly", ROUND)
        whole = (1, 1, channels)
        interval = Interval(_least(np.minimum, low, whole), _least(np.maximum, high, whole))
        target = self._tensor(f"{node.place} output", (rows, columns), interval)
        self._steps.append(
            steps.Elements(sources=tuple(tensors), target=target, layer=len(self._steps),
                           name=node.place, channels=channels, size=(rows, columns),
                           shapes=tuple(_shape(places) for _, places in operands),
                           element=element, bits=needed)
        )  # fmt: skip
        return target

    def _looked_up(self, node: Node) -> Stored:
        """Store what a table has for a value of 8 bits."""
        leaves = [*dict.fromkeys(self._leaves(node))]
        if len(leaves) != 1:
            raise InexactError(f"{node.name} is computed of several results at once")
        (leaf,) = leaves
        stored = self._stored[leaf]
        if stored.over.size > 1 or leaf.shape != node.shape:
            raise InexactError(f"{node.name} is computed of data of several scales")
        places = laid(stored.places)
        tensor = self._in_order(node.place, stored, places)
        if self._tensors[tensor].bytes_per_value != 1:
            raise InexactError(f"{node.name} is computed of results of 32 bits")
        inputs = {leaf: np.arange(-128, 128) / int(stored.over)}
        with np.errstate(all="ignore"):
            values = self._evaluated(node, inputs)
        low, high = (int(one.min()) for one in
                     (self._ranges[tensor].low, -self._ranges[tensor].high))  # fmt: skip
        used = values[low + 128 : 129 - high]
        if not np.isfinite(used).all() or (used % 1).any():
            raise InexactError(f"the result of {node.name} is no whole number")
        if abs(used).max() >= 1 << 31:
            raise InexactError(f"the result of {node.name} has more than 32 bits")
        whole = np.nan_to_num(values).clip(used.min(), used.max()).astype(np.int64)
        look = Look(Load(0), np.concatenate((whole[128:], whole[:128])))
        target = self._elements(node, look, [(stored, places)])
        return self._stored_in(node.shape, target, np.ones((), np.int64))

    def _leaves(self, node: Node) -> list[Node]:
        """Return the stored nodes that a result is made of."""
        if node.constant is not None:
            return []
        if node in self._stored:
            return [node]
        if not isinstance(node.operator, OF_ELEMENTS):
            raise InexactError(f"there is no kernel for {node.name}")
        return [leaf for one in node.inputs for leaf in self._leaves(one)]

    def _evaluated(self, node: Node, values: dict[Node, Array]) -> Array:
        """Return the values of a node for those of its leaf; constants are numbers."""
        if node in values:
            return values[node]
        if node.constant is not None:
            value = np.asarray(node.constant)
            if value.size != 1:
                raise InexactError("its constants differ between elements")
            return value.reshape(())
        result = value_of(node.operator, [self._evaluated(one, values) for one in node.inputs])
        assert result is not None
        values[node] = result
        return result


def _shape(places: Int64) -> tuple[int, int, int]:
    rows, columns, channels = places.shape
    return rows, columns, channels


def _least(pick: np.ufunc, values: Array, whole: tuple[int, int, int]) -> Int64:
    """Return the extreme of each channel of bounds [row, column, channel]."""
    wide = np.broadcast_to(values, np.broadcast_shapes(values.shape, whole))
    extremes: Int64 = pick.reduce(pick.reduce(wide, 0), 0).astype(np.int64)
    return extremes


def _is_rounded(node: Node) -> bool:
    """Whether a node limits whole numbers."""
    clip = node.operator
    rounded = node.inputs and node.inputs[0].operator == Each(Function.FLOOR)
    return isinstance(clip, Clip) and bool(np.isfinite([clip.low, clip.high]).all() and rounded)


def _operations(element: Element) -> int:
    """Return how many operations an expression has."""
    match element:
        case Pair():
            return 1 + _operations(element.a) + _operations(element.b)
        case _:
            return 0

"""Operators that only move data move the places of values."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from ai8xtools.frontends.graph.execute import value_of
from ai8xtools.frontends.graph.nodes import Node
from ai8xtools.frontends.graph.operators import (
    Pad,
)
from ai8xtools.software import elements
from ai8xtools.software.graph import Load
from ai8xtools.software.operators.expressed import Expressing
from ai8xtools.software.operators.storage import FILLED, INSTEAD, ROUND, RefusedError, Stored, laid


class Moving(Expressing):
    """Stores what moves."""

    def _moved(self, node: Node) -> Stored:
        """Return the places of values that an operator moves."""
        operator = node.operator
        operands = [self._operand(one) for one in node.inputs]
        operands = self._of_one_scale(node, operands)
        fills = {one.fill for one in operands if (one.places < 0).any()}
        fill = next(iter(fills), 0)
        over = operands[0].over
        if isinstance(operator, Pad) and operator.mode == "constant":
            whole = operator.value * int(over)
            if whole % 1:
                raise RefusedError(f"it pads with {operator.value:g}", "Pad with whole numbers.")
            fills.add(int(whole))
            fill, operator = int(whole), Pad(operator.pads, FILLED)
        if len(fills) > 1:
            raise RefusedError("it joins what is padded with different values", INSTEAD)
        places = value_of(operator, [one.places for one in operands])
        assert places is not None
        return Stored(places.astype(np.int64), over, fill)

    def _operand(self, node: Node) -> Stored:
        if node.constant is not None:
            raise RefusedError("it joins data with constants", "Let the application do it.")
        return self._stored[node]

    def _of_one_scale(self, node: Node, operands: Sequence[Stored]) -> list[Stored]:
        """Return results over their common denominator."""
        if any(one.over.size > 1 for one in operands):
            raise RefusedError("it moves data of several scales", ROUND)
        over = np.lcm.reduce([int(one.over) for one in operands])
        results = []
        for stored, source in zip(operands, node.inputs, strict=True):
            factor = over // int(stored.over)
            if factor > 1:
                element = elements.times(Load(0), elements.number(factor))
                tensor = self._elements(source, element, [(stored, laid(stored.places))])
                stored = self._stored_in(source.shape, tensor, over)
            results.append(stored)
        return results

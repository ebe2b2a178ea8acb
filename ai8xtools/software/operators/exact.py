"""What nodes do with elements, as expressions of whole numbers over a denominator."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace

import numpy as np

from ai8xtools.frontends.graph.nodes import Node
from ai8xtools.frontends.graph.operators import Array, Clip, Dropout, Each, Function
from ai8xtools.software import elements
from ai8xtools.software.graph import Arithmetic, Element, Int64, Number, Pair, Root
from ai8xtools.values import frozen

_MOST_BITS = 48
"""Of constants: those that need more are no whole numbers over a power of two."""
_MOST_OVER = 62
"""Bits of denominators."""


class InexactError(ValueError):
    """No expression of whole numbers stands for a node; the message says why."""


@frozen
class Quotient:
    """A value as `element` / `over`, and over `by` if that is there; all of them are above 0.

    `over` is [] or in the shape of a node.
    """

    element: Element
    over: Int64
    by: Element | None = None


_ONE = np.ones((), np.int64)


class Exact:
    """Makes quotients of nodes: `leaf` tells those of stored ones, `laid` brings constants in the
    shape of a node into the order of memory."""

    def __init__(
        self, leaf: Callable[[Node], Quotient | None], laid: Callable[[Array], Int64]
    ) -> None:
        self._leaf, self._laid = leaf, laid
        self._quotients: dict[Node, Quotient] = {}

    def quotient(self, node: Node) -> Quotient:
        """Return the quotient of a node. Raises InexactError."""
        if node not in self._quotients:
            self._quotients[node] = self._leaf(node) or self._computed(node)
        return self._quotients[node]

    def _computed(self, node: Node) -> Quotient:
        if node.constant is not None:
            return self._constant(np.asarray(node.constant))
        match node.operator:
            case Dropout():
                return self.quotient(node.inputs[0])
            case Clip() as clip:
                result = self.quotient(node.inputs[0])
                for end, pick in ((clip.low, elements.larger), (clip.high, elements.smaller)):
                    if np.isfinite(end):
                        result = self._aligned(pick, result, self._constant(np.asarray(end)))
                return result
            case Each() as each:
                return self._each(node, each.function)
            case _:
                raise InexactError(f"there is no kernel for {node.name}")

    def _each(self, node: Node, function: Function) -> Quotient:
        if function is Function.FLOOR and node.inputs[0].operator == Each(Function.SQRT):
            inside = self._floor(self.quotient(node.inputs[0].inputs[0]))
            return Quotient(Root(inside.element), _ONE)
        operands = [self.quotient(one) for one in node.inputs]
        x, y = operands[0], operands[-1]
        minus = elements.number(-1)
        match function:
            case Function.ADD:
                return self._aligned(elements.added, x, y)
            case Function.SUB:
                less = replace(y, element=elements.times(y.element, minus))
                return self._aligned(elements.added, x, less)
            case Function.MAX:
                return self._aligned(elements.larger, x, y)
            case Function.MIN:
                return self._aligned(elements.smaller, x, y)
            case Function.MUL:
                return self._product(x, y)
            case Function.DIV:
                return self._ratio(node, x, y)
            case Function.NEG:
                return replace(x, element=elements.times(x.element, minus))
            case Function.ABS:
                negative = elements.times(x.element, minus)
                return replace(x, element=elements.larger(x.element, negative))
            case Function.SIGN:
                one = elements.smaller(x.element, elements.number(1))
                return Quotient(elements.larger(one, minus), _ONE)
            case Function.PRELU:
                above = replace(x, element=elements.larger(x.element, elements.number(0)))
                below = replace(x, element=elements.smaller(x.element, elements.number(0)))
                return self._aligned(elements.added, above, self._product(below, y))
            case Function.FLOOR:
                return self._floor(x)
            case Function.CEIL:
                return self._ceil(x)
            case Function.TRUNC:
                none = Quotient(elements.number(0), _ONE)
                down = self._aligned(elements.larger, self._floor(x), none)
                up = self._aligned(elements.smaller, self._ceil(x), none)
                return self._aligned(elements.added, down, up)
            case _:
                raise InexactError(f"{node.name} is computed of 8 bits alone")

    def _constant(self, value: Array) -> Quotient:
        for bits in range(_MOST_BITS):
            whole = np.ldexp(np.asarray(value, np.float64), bits)
            if (whole == np.floor(whole)).all() and (abs(whole) < 1 << 53).all():
                integers = whole.astype(np.int64)
                return Quotient(Number(self._laid(integers)), np.int64(1 << bits) * _ONE)
        raise InexactError("its constants are no multiples of a power of two")

    def _product(self, x: Quotient, y: Quotient) -> Quotient:
        """Return a product; what a constant and a denominator have in common is left out."""
        if isinstance(x.element, Number):
            x, y = y, x
        if isinstance(y.element, Number) and x.over.size == 1:
            shared = np.gcd(np.gcd.reduce(y.element.values, axis=None), x.over)
            if shared > 1:
                y = Quotient(Number(y.element.values // shared), y.over)
                x = replace(x, over=x.over // shared)
        over = _limited(x.over.astype(object) * y.over)
        return Quotient(elements.times(x.element, y.element), over, _product(x.by, y.by))

    def _ratio(self, node: Node, x: Quotient, y: Quotient) -> Quotient:
        """Return a quotient by constants, or by data above 0."""
        by = node.inputs[1].constant
        if by is None:
            top = elements.times(x.element, self._number(y.over))
            top = top if y.by is None else elements.times(top, y.by)
            return Quotient(top, x.over, _product(x.by, y.element))
        values = np.asarray(by, np.float64)
        if not values.all():
            raise InexactError("it divides by zero")
        bottom = self._constant(values)
        signed = values * int(bottom.over)
        sign = Number(self._laid(np.sign(signed).astype(np.int64)))
        top = elements.times(x.element, elements.times(sign, elements.number(int(bottom.over))))
        return Quotient(top, x.over * abs(signed).astype(np.int64), x.by)

    def _aligned(
        self, pick: Callable[[Element, Element], Element], x: Quotient, y: Quotient
    ) -> Quotient:
        """Return what is picked of two quotients, over their common denominator."""
        if x.by is not y.by:
            by = _product(x.by, y.by)
            x, y = (
                replace(one, by=by, element=one.element if other.by is None
                        else elements.times(one.element, other.by))
                for one, other in ((x, y), (y, x))
            )  # fmt: skip
        over = _limited(np.lcm(x.over.astype(object), y.over.astype(object)))
        both = (elements.times(q.element, self._number(over // q.over)) for q in (x, y))
        return Quotient(pick(*both), over, x.by)

    def _floor(self, x: Quotient) -> Quotient:
        if x.by is None:
            return Quotient(elements.divided(x.element, self._laid(x.over)), _ONE)
        by = elements.times(x.by, self._number(x.over))
        return Quotient(Pair(Arithmetic.FLOOR, x.element, by), _ONE)

    def _ceil(self, x: Quotient) -> Quotient:
        minus = elements.number(-1)
        down = self._floor(replace(x, element=elements.times(x.element, minus))).element
        return Quotient(elements.times(down, minus), _ONE)

    def _number(self, values: Int64) -> Number:
        return Number(self._laid(values))


def _limited(over: Array) -> Int64:
    """Return denominators that are integers of Python."""
    whole = np.asarray(over, object)
    if whole.max() >= 1 << _MOST_OVER:
        raise InexactError("its constants need too many bits together")
    return whole.astype(np.int64)


def _product(a: Element | None, b: Element | None) -> Element | None:
    """Return the product of two divisors, of which any may be missing."""
    if a is None or b is None:
        return b if a is None else a
    return elements.times(a, b)

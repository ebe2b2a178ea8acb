"""Element-wise expressions of integers, simplified during construction.

Limits move outwards, divisions and offsets become one: what remains is often what a convolution
does with its sums.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import assert_never

import numpy as np

from ai8xtools.software.graph import Arithmetic, Element, Int64, Load, Look, Number, Pair, Root

Bounds = tuple[Int64, Int64]


def number(values: object) -> Number:
    """Return a constant [row, column, channel]; axes of size 1 are broadcast."""
    array = np.asarray(values, np.int64)
    return Number(array.reshape(*(1,) * (3 - array.ndim), *array.shape))


def added(a: Element, b: Element) -> Element:
    """Return a + b."""
    if isinstance(a, Number):
        a, b = b, a
    if not isinstance(b, Number):
        return Pair(Arithmetic.ADD, a, b)
    if isinstance(a, Number):
        return number(a.values + b.values)
    if not b.values.any():
        return a
    match a:
        case Pair(op=Arithmetic.ADD, b=Number() as first):
            return added(a.a, number(first.values + b.values))
        case Pair(op=Arithmetic.MAX | Arithmetic.MIN, b=Number() as limit):
            return _limited(a.op, added(a.a, b), number(limit.values + b.values))
        case _:
            return Pair(Arithmetic.ADD, a, b)


def times(a: Element, b: Element) -> Element:
    """Return a * b."""
    if isinstance(a, Number):
        a, b = b, a
    if not isinstance(b, Number):
        return Pair(Arithmetic.MUL, a, b)
    if isinstance(a, Number):
        return number(a.values * b.values)
    if (b.values == 1).all():
        return a
    match a:
        case Pair(op=Arithmetic.MUL, b=Number() as first):
            return times(a.a, number(first.values * b.values))
        case Pair(op=Arithmetic.ADD, b=Number() as offset):
            return added(times(a.a, b), number(offset.values * b.values))
        case Pair(op=Arithmetic.MAX | Arithmetic.MIN, b=Number() as limit) if (b.values > 0).all():
            return _limited(a.op, times(a.a, b), number(limit.values * b.values))
        case _:
            return Pair(Arithmetic.MUL, a, b)


def larger(a: Element, b: Element) -> Element:
    """Return the maximum of both."""
    return _limited(Arithmetic.MAX, a, b)


def smaller(a: Element, b: Element) -> Element:
    """Return the minimum of both."""
    return _limited(Arithmetic.MIN, a, b)


def _limited(op: Arithmetic, a: Element, b: Element) -> Element:
    if isinstance(a, Number):
        a, b = b, a
    if not isinstance(b, Number):
        return Pair(op, a, b)
    pick = np.maximum if op is Arithmetic.MAX else np.minimum
    match a:
        case Number():
            return number(pick(a.values, b.values))
        case Pair(op=inner, b=Number() as limit) if inner is op:
            return _limited(op, a.a, number(pick(limit.values, b.values)))
        case Pair(op=Arithmetic.MIN, b=Number() as limit) if op is Arithmetic.MAX:
            if (b.values <= limit.values).all():  # the lower limit comes first
                return Pair(Arithmetic.MIN, _limited(Arithmetic.MAX, a.a, b), limit)
            return Pair(op, a, b)
        case _:
            return Pair(op, a, b)


def divided(a: Element, by: Int64) -> Element:
    """Return the floor of a / by; all values of `by` are above 0."""
    if (by == 1).all():
        return a
    match a:
        case Number():
            return number(a.values // by)
        case Pair(op=Arithmetic.MAX | Arithmetic.MIN, b=Number() as limit):
            return _limited(a.op, divided(a.a, by), number(limit.values // by))
        case Pair(op=Arithmetic.FLOOR, b=Number() as first):
            return divided(a.a, first.values * by)
        case Pair(
            op=Arithmetic.ADD,
            a=Pair(op=Arithmetic.FLOOR, b=Number() as first) as inner,
            b=Number() as more,
        ):
            return divided(added(inner.a, number(more.values * first.values)), first.values * by)
    factor, offset, data = _affine(a)
    shared = np.gcd(factor, by)
    if (shared > 1).any():
        less = times(data, number(factor // shared))
        return divided(added(less, number(offset // shared)), by // shared)
    return Pair(Arithmetic.FLOOR, a, number(by))


def _affine(a: Element) -> tuple[Int64, Int64, Element]:
    """Return factor, offset and data of factor * data + offset."""
    factor, offset = np.ones((1, 1, 1), np.int64), np.zeros((1, 1, 1), np.int64)
    match a:
        case Pair(op=Arithmetic.ADD, b=Number() as more):
            offset, a = more.values, a.a
    match a:
        case Pair(op=Arithmetic.MUL, b=Number() as times_):
            factor, a = times_.values, a.a
    return factor, offset, a


def loads(element: Element) -> tuple[int, ...]:
    """Return the operands that an expression reads, each once."""
    match element:
        case Load():
            return (element.operand,)
        case Number():
            return ()
        case Look() | Root():
            return loads(element.data)
        case Pair():
            return tuple(dict.fromkeys((*loads(element.a), *loads(element.b))))
        case _:
            assert_never(element)


def value(element: Element, operands: Sequence[Int64]) -> Int64:
    """Return the value of an expression for operands [row, column, channel], exactly."""
    match element:
        case Load():
            return operands[element.operand]
        case Number():
            return element.values
        case Look():
            entries: Int64 = element.table[value(element.data, operands) & 255]
            return entries
        case Root():
            return _roots(value(element.data, operands))
        case Pair():
            a, b = value(element.a, operands), value(element.b, operands)
            return _computed(element.op, a, b)
        case _:
            assert_never(element)


def _computed(op: Arithmetic, a: Int64, b: Int64) -> Int64:
    match op:
        case Arithmetic.ADD:
            return a + b
        case Arithmetic.MUL:
            return a * b
        case Arithmetic.MAX:
            return np.maximum(a, b)
        case Arithmetic.MIN:
            return np.minimum(a, b)
        case Arithmetic.FLOOR:
            return a // b
        case _:
            assert_never(op)


def _roots(values: Int64) -> Int64:
    roots: Int64 = np.array([math.isqrt(one) for one in values.ravel().tolist()], np.int64)
    return roots.reshape(values.shape)


class DivisorError(ValueError):
    """A divisor, or what a root is taken of, can be too small; the message says how small."""


def bounds(element: Element, operands: Sequence[Bounds]) -> Bounds:
    """Return least and greatest values of an expression, from those of its operands.

    Values are Python's integers: products may leave 64 bits. Raises DivisorError.
    """
    match element:
        case Load():
            low, high = operands[element.operand]
            return low.astype(object), high.astype(object)
        case Number():
            whole = element.values.astype(object)
            return whole, whole
        case Look():
            table = element.table.astype(object)
            return np.array([table.min()]), np.array([table.max()])
        case Root():
            low, high = bounds(element.data, operands)
            if low.min() < 0:
                raise DivisorError(f"it takes the square root of what can be {low.min():,}")
            roots = np.vectorize(math.isqrt, otypes=[object])
            return roots(low), roots(high)
        case Pair():
            a, b = bounds(element.a, operands), bounds(element.b, operands)
            if element.op is Arithmetic.FLOOR and b[0].min() < 1:
                raise DivisorError(f"it divides by what can be {b[0].min():,}")
            if element.op is Arithmetic.MUL or element.op is Arithmetic.FLOOR:
                ends = [_computed(element.op, x, y) for x in a for y in b]
                if element.op is Arithmetic.MUL and element.a is element.b:  # a square
                    least = np.where((a[0] < 0) & (a[1] > 0), 0, np.minimum(ends[0], ends[3]))
                    return least, np.maximum(ends[0], ends[3])
                return np.minimum.reduce(ends), np.maximum.reduce(ends)
            return _computed(element.op, a[0], b[0]), _computed(element.op, a[1], b[1])
        case _:
            assert_never(element)


def most_bits(element: Element, operands: Sequence[Bounds]) -> int:
    """Return how many bits the widest part of an expression needs, its sign included."""
    low, high = bounds(element, operands)
    own = max(int(max(-low.min() - 1, high.max(), 0)).bit_length() + 1, 1)
    match element:
        case Pair():
            parts = (most_bits(one, operands) for one in (element.a, element.b))
            return max(own, *parts)
        case Look() | Root():
            return max(own, most_bits(element.data, operands))
        case _:
            return own

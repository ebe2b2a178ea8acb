"""From the sums of a layer to the activations of the next, in integers only."""

from __future__ import annotations

from typing import assert_never

import numpy as np
from numpy.typing import NDArray

from ai8xtools.software.lowbit.network import Rule
from ai8xtools.values import frozen

Integers = NDArray[np.int64]


@frozen
class Scaled:
    """Activations [tokens, features]; by token the greatest sum, the shift and the factor used."""

    values: Integers
    greatest: Integers
    shift: Integers
    factor: Integers


def requantize(sums: Integers, rule: Rule) -> Scaled:
    """Return the activations 0 to `rule.limit` of sums [tokens, features].

    Sums below zero count as zero. Groups of `rule.group` tokens share a scale.
    """
    positive = np.maximum(sums, 0).astype(np.int64)
    greatest = _of_group(positive, rule.group)
    match rule.kind:
        case "reciprocal":
            return _by_reciprocal(positive, greatest, rule)
        case "shift":
            shift = _shift(greatest, rule.limit)
            values = _shifted(positive, shift, rule)
            return Scaled(values, greatest, shift, np.zeros_like(shift))
        case "max":
            shift = _shift(greatest, rule.limit)
            values = _shifted(positive, shift, rule)
            top = np.maximum(_of_group(values, rule.group), 1)
            factor = np.clip((8 * (rule.limit + 1) - 1) // top, 8, 15)
            values = np.minimum((values * factor[:, None]) >> 3, rule.limit)
            return Scaled(values, greatest, shift, factor)
        case _:
            assert_never(rule.kind)


def _of_group(values: Integers, group: int) -> Integers:
    """Return for each token the greatest value of its group."""
    return np.repeat(values.max(axis=1).reshape(-1, group).max(axis=1), group)


def _shift(greatest: Integers, limit: int) -> Integers:
    """Return the least shift that brings the greatest sum to the limit."""
    return np.array([max(0, int(m).bit_length() - limit.bit_length()) for m in greatest], np.int64)


def _shifted(values: Integers, shift: Integers, rule: Rule) -> Integers:
    half = ((1 << shift) >> 1) if rule.rounds else np.zeros_like(shift)
    shifted: Integers = np.minimum((values + half[:, None]) >> shift[:, None], rule.limit)
    return shifted


def reciprocal(greatest: int, limit: int, bits: int) -> tuple[int, int]:
    """Return shift and factor, of `bits` bits, by which the greatest sum becomes the limit.

    The shift t may be negative; the factor is floor(limit * 2**t / greatest).
    """
    greatest = max(greatest, 1)
    exponent = greatest.bit_length() - limit.bit_length()
    while _times_power(limit, exponent) < greatest:
        exponent += 1
    while _times_power(limit, exponent - 1) >= greatest:
        exponent -= 1
    shift = exponent + bits - 1
    numerator = limit << shift if shift >= 0 else limit
    return shift, numerator // (greatest if shift >= 0 else greatest << -shift)


def _times_power(value: int, exponent: int) -> float:
    """Return value * 2**exponent, exactly: the value has a few bits."""
    return value * 2.0**exponent


def _by_reciprocal(values: Integers, greatest: Integers, rule: Rule) -> Scaled:
    pairs = [reciprocal(int(m), rule.limit, rule.bits) for m in greatest]
    shift = np.array([pair[0] for pair in pairs], np.int64)
    factor = np.array([pair[1] for pair in pairs], np.int64)
    right, left = np.maximum(shift, 0)[:, None], np.maximum(-shift, 0)[:, None]
    half = (1 << right) >> 1 if rule.rounds else np.zeros_like(right)
    products = ((values * factor[:, None] + half) >> right) << left
    return Scaled(np.minimum(products, rule.limit), greatest, shift, factor)

"""Interval arithmetic: the ranges of values, and the proof that sums fit 32 bits.

Bounds hold for all inputs of 8 bits, not only for the sample.
Source: docs/hardware/arithmetic.md, "Where overflow is impossible".
"""

from __future__ import annotations

from typing import assert_never

import numpy as np

from ai8xtools.diagnostics import Diagnostic
from ai8xtools.software.graph import Int8, Int64, Interval
from ai8xtools.synthesis.network import Combination, Layer
from ai8xtools.values import frozen

LARGEST = (1 << 31) - 1


@frozen
class Sums:
    """Bounds of the sums of each filter: int64 [filter].

    `low` and `high` bound the whole sums, `least` and `most` every partial sum in any order.
    """

    low: Int64
    high: Int64
    least: Int64
    most: Int64


def full_range(channels: int) -> Interval:
    """Return the interval of all values of 8 bits."""
    return Interval(np.full(channels, -128, np.int64), np.full(channels, 127, np.int64))


def repeated(interval: Interval, times: int) -> Interval:
    """Return the interval of channels that follow each other several times."""
    return Interval(np.tile(interval.low, times), np.tile(interval.high, times))


def sums_of(weights: Int8, start: Int64, groups: int, interval: Interval) -> Sums:
    """Return the bounds of sums of weights [filter, channel of the group, row, column]."""
    filters, inputs = weights.shape[:2]
    wide = weights.reshape(filters, inputs, -1).astype(np.float64)  # sums of int8 are exact
    positive = wide.clip(0, None).sum(axis=2)
    negative = -wide.clip(None, 0).sum(axis=2)
    lowest, highest = np.minimum(interval.low, 0), np.maximum(interval.high, 0)  # padding is zero
    per_group = filters // groups
    most, least = np.zeros(filters), np.zeros(filters)
    for group in range(groups):
        mine = slice(group * per_group, (group + 1) * per_group)
        part = slice(group * inputs, (group + 1) * inputs)
        most[mine] = positive[mine] @ highest[part] - negative[mine] @ lowest[part]
        least[mine] = positive[mine] @ lowest[part] - negative[mine] @ highest[part]
    up, down = most.astype(np.int64), least.astype(np.int64)
    return Sums(start + down, start + up, np.minimum(start, 0) + down, np.maximum(start, 0) + up)


def overflow(layer: Layer, sums: Sums) -> Diagnostic | None:
    """Return a complaint if a sum could leave 32 bits."""
    bound = int(max(sums.most.max(), -sums.least.min()))
    if bound <= LARGEST:
        return None
    worst = int(np.argmax(np.maximum(sums.most, -sums.least)))
    return layer.diagnostic(
        "E901",
        f"the sum of output channel {worst} can reach {bound:,}; accumulators hold {LARGEST:,}",
        ("op",),
        "Split the layer, or train it with fewer inputs or smaller weights.",
    )


def narrowed(sums: Sums, right: int, low: int, *, absolute: bool) -> Interval:
    """Return the outputs of 8 bits that follow from sums that contain half of the last place."""
    least, most = (_shifted(value, right).clip(-128, 127) for value in (sums.low, sums.high))
    if absolute:
        crossing = (least < 0) & (most > 0)
        ends = np.abs(least), np.abs(most)
        least, most = np.where(crossing, 0, np.minimum(*ends)), np.maximum(*ends)
    return Interval(least.clip(low, 127), most.clip(low, 127))


def _shifted(value: Int64, right: int) -> Int64:
    return value >> right if right >= 0 else value.clip(-128, 127) << -right


def joined(join: Combination, operands: list[Interval]) -> Interval:
    """Return the bounds of combined operands."""
    low, high = operands[0].low, operands[0].high
    match join:
        case Combination.ADD:
            low = np.sum([one.low for one in operands], axis=0)
            high = np.sum([one.high for one in operands], axis=0)
        case Combination.SUB:
            low = low - np.sum([one.high for one in operands[1:]], axis=0)
            high = high - np.sum([one.low for one in operands[1:]], axis=0)
        case Combination.OR | Combination.XOR:  # bits in any way: a sign can only come from a sign
            unsigned = np.all([one.low >= 0 for one in operands], axis=0)
            low, high = np.where(unsigned, 0, -128), np.full_like(high, 127)
        case _:
            assert_never(join)
    return Interval(low.clip(-128, 127), high.clip(-128, 127))

"""Packing of weights for the kernels that multiply two pixels at once, and the proof that they may.

Two pixels share a word, so the sum of each must be a 16-bit number whenever it is taken out.
Source: docs/software.md, "Kernels".
"""

from __future__ import annotations

from collections.abc import Sequence
from functools import partial

import numpy as np
from numpy.typing import NDArray

from ai8xtools.software.graph import Convolution, Interval
from ai8xtools.software.kernels.registry import Core, Kernel, Packed

Int64 = NDArray[np.int64]

LONGEST = 256
"""Longer intervals are not looked for."""
_LENGTHS = range(1, 17)
"""Lengths of runs that software/runtime/conv_lanes.c has code for."""
_SMALL_LENGTHS = range(1, 19)
"""The same on Armv6-M, where a run is told by the place of its code."""
_HALF, _FIRST, _STEP = 2, 4, 14
"""What follows the runs of the first half, where the code of the longest run begins, and the bytes
of code for an input."""
_LANE = np.iinfo(np.int16)


def input_bounds(interval: Interval, taps: int) -> tuple[Int64, Int64]:
    """Return the least and greatest value of each input of a filter, zeros of borders included.

    `taps` are the places of the kernel; inputs are in the order kernel row, column, channel.
    """
    return (
        np.tile(np.minimum(interval.low, 0), taps),
        np.tile(np.maximum(interval.high, 0), taps),
    )


def _extremes(weights: NDArray[np.int8], low: Int64, high: Int64) -> tuple[Int64, Int64]:
    wide = weights.astype(np.int64)
    return np.maximum(wide * low, wide * high), np.minimum(wide * low, wide * high)


def _totals(values: Int64) -> Int64:
    """Return the sums of all inputs in front of each, and of all."""
    return np.concatenate([np.zeros((len(values), 1), np.int64), values.cumsum(1)], axis=1)


def _windows(totals: Int64, length: int) -> Int64:
    windows: Int64 = totals[:, length:] - totals[:, :-length]
    return windows


def _flat(conv: Convolution) -> NDArray[np.int8]:
    return conv.weights.transpose(0, 2, 3, 1).reshape(conv.filters, -1)


def runs_of(
    weights: NDArray[np.int8], low: Int64, high: Int64, lengths: Sequence[int]
) -> list[list[int]]:
    """Return the runs of each pair of filters, each as long as its sums are 16-bit numbers.

    `weights` int8 [filter, input], an even number of filters. `lengths` are ascending, from 1.
    """
    return [_followed(one) for one in _reach(weights, low, high, lengths).tolist()]


def _reach(
    weights: NDArray[np.int8], low: Int64, high: Int64, lengths: Sequence[int]
) -> NDArray[np.int64]:
    """Return the longest run that may begin at an input, int64 [pair of filters, input]."""
    totals = [_totals(values) for values in _extremes(weights, low, high)]
    reach = np.ones((len(weights) // 2, weights.shape[1]), np.int64)
    for length in lengths:
        most, fewest = (_windows(total, length) for total in totals)
        fits = (most <= _LANE.max) & (fewest >= _LANE.min)
        reach[:, : fits.shape[1]][fits[::2] & fits[1::2]] = length
    return reach


def _followed(lengths: list[int]) -> list[int]:
    """Return the runs, of which lengths tell how long one is that begins at an input."""
    runs = []
    begin = 0
    while begin < len(lengths):
        runs.append(lengths[begin])
        begin += lengths[begin]
    return runs


def common_runs(weights: NDArray[np.int8], low: Int64, high: Int64) -> list[int]:
    """Return the runs, up to `LONGEST`, that filters have in common, as long as sums allow.

    `weights` int8 [filter, input]; zero is among what each input can be.
    """
    greatest, least = (_totals(values) for values in _extremes(weights, low, high))
    begin, inputs, runs = 0, weights.shape[1], []
    while begin < inputs:
        ends = [np.searchsorted(one, one[begin] + _LANE.max, "right") for one in greatest]
        ends += [np.searchsorted(-one, -one[begin] - _LANE.min, "right") for one in least]
        end = min(int(min(ends)) - 1, begin + LONGEST, inputs)
        runs.append(max(end - begin, 1))
        begin += runs[-1]
    return runs


def pack_runs(conv: Convolution, lists: int = 1) -> Packed:
    """Order weights by pair of filters, input, filter; behind a pair lengths of runs, a zero.

    With two `lists` inputs are halved: weights of a pair are in the order input of a half, half,
    filter, zeros at the end of the second one; each half has runs of its own.
    """
    flat = _flat(conv)
    flat = np.pad(flat, ((0, conv.filters % 2), (0, 0)))
    low, high = input_bounds(conv.input, conv.kernel[0] * conv.kernel[1])
    size = -(-flat.shape[1] // lists)
    runs = [
        runs_of(flat[:, part], low[part], high[part], _LENGTHS if lists == 1 else _SMALL_LENGTHS)
        for part in (slice(size * one, size * (one + 1)) for one in range(lists))
    ]
    pairs = np.pad(flat, ((0, 0), (0, size * lists - flat.shape[1]))).reshape(-1, 2, lists, size)
    parts: list[NDArray[np.int8]] = []
    for pair, *ends in zip(pairs, *runs, strict=True):
        parts.append(pair.transpose(2, 1, 0).reshape(-1))
        if lists == 1:
            parts.append(np.array([*ends[0], 0], np.int8))
        else:
            parts.append(_places(*ends))
    return Packed(np.concatenate(parts), runs=sum(len(one) for some in runs for one in some))


def _places(*halves: list[int]) -> NDArray[np.int8]:
    """Return where the code of each run begins on Armv6-M, and the ends of both halves."""
    first, second = (
        [_FIRST + _STEP * (_SMALL_LENGTHS[-1] - length) for length in runs] for runs in halves
    )
    return np.array([*first, _HALF, *second, 0], np.uint8).view(np.int8)


def _inputs(conv: Convolution) -> int:
    return conv.channels * conv.kernel[0] * conv.kernel[1]


def _suits(conv: Convolution, core: Core, *, small: bool = False) -> bool:
    named = (core.name == "cortex-m0plus") == small
    return named and core.multiplier and conv.groups == 1 and not conv.transposed


LANES = Kernel(
    "nn_conv_lanes",
    "conv_lanes.c",
    _suits,
    pack_runs,
    scratch_bytes=lambda conv: 8 * _inputs(conv),
    pixels=4,
)
SMALL_LANES = Kernel(
    "nn_conv_lanes",
    "conv_lanes.c",
    partial(_suits, small=True),
    partial(pack_runs, lists=2),
    scratch_bytes=lambda conv: 4 * _inputs(conv),
    pixels=2,
)
"""The same on Armv6-M, which has the registers for blocks of two pixels."""

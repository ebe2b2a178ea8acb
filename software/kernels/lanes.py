"""Packing of weights for the kernels that multiply two pixels at once, and the proof that they may.

Two pixels share a word, so the sum of each must be a 16-bit number whenever it is taken out.
Source: docs/software.md, "Kernels".
"""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from software.graph import Convolution, Interval
from software.kernels.registry import Core, Kernel, Packed

Int64 = NDArray[np.int64]

LONGEST = 256
"""Longer runs are not looked for."""
_LANE = np.iinfo(np.int16)
_LENGTHS = (1, 2, 3, 4, 6, 8, 12, 16, 24)
"""Lengths of runs that software/runtime/conv_lanes.c has code for."""
_SMALL_LENGTHS = tuple(range(1, 17))
"""The same on Armv6-M."""
_STEP_COST, _FLUSH_COST = 8, 11
"""Instructions for an input, and for taking sums out, with two filters on a Cortex-M0+."""


def runs_fit(weights: NDArray[np.int8], low: Int64, high: Int64, length: int) -> bool:
    """Whether the sums of all runs of a length are 16-bit numbers, whatever the inputs are.

    `weights` int8 [filter, input]; `low` and `high` int64 [input], the least and greatest value of
    each input. Runs begin at multiples of the length; the last one may be shorter.
    """
    greatest, least = _extremes(weights, low, high)
    starts = np.arange(0, weights.shape[1], length)
    return bool(
        np.add.reduceat(greatest, starts, axis=1).max(initial=0) <= _LANE.max
        and np.add.reduceat(least, starts, axis=1).min(initial=0) >= _LANE.min
    )


def runs_fit_anywhere(weights: NDArray[np.int8], low: Int64, high: Int64, length: int) -> bool:
    """Whether this holds for runs that begin at any input."""
    greatest, least = _extremes(weights, low, high)
    length = min(length, weights.shape[1])
    sums = [_windows(values, length) for values in (greatest, least)]
    return bool(sums[0].max() <= _LANE.max and sums[1].min() >= _LANE.min)


def flush_interval(
    weights: NDArray[np.int8], low: Int64, high: Int64, *, anywhere: bool = False
) -> int:
    """Return the longest run, up to `LONGEST`, of which all sums are 16-bit numbers."""
    fit = runs_fit_anywhere if anywhere else runs_fit
    return next(n for n in range(LONGEST, 0, -1) if n == 1 or fit(weights, low, high, n))


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


def _windows(values: Int64, length: int) -> Int64:
    sums = np.concatenate([np.zeros((len(values), 1), np.int64), values.cumsum(1)], axis=1)
    windows: Int64 = sums[:, length:] - sums[:, :-length]
    return windows


def _flat(conv: Convolution) -> NDArray[np.int8]:
    return conv.weights.transpose(0, 2, 3, 1).reshape(conv.filters, -1)


def _length(conv: Convolution, lengths: tuple[int, ...] = _LENGTHS) -> int:
    """Return the length of runs that costs least, of those that are proven to fit."""
    flat = _flat(conv)
    low, high = input_bounds(conv.input, conv.kernel[0] * conv.kernel[1])
    proven = [n for n in lengths if n == 1 or runs_fit(flat, low, high, n)]
    inputs = flat.shape[1]
    return min(proven, key=lambda n: -(-inputs // n) * (n * _STEP_COST + _FLUSH_COST))


def _padded(conv: Convolution, length: int) -> int:
    inputs = conv.channels * conv.kernel[0] * conv.kernel[1]
    return -(-inputs // length) * length


def pack_runs(conv: Convolution, length: int) -> Packed:
    """Order weights by filter, kernel row, kernel column, channel, with zeros where runs end."""
    flat = _flat(conv)
    filters = conv.filters + conv.filters % 2
    values = np.zeros((filters, _padded(conv, length)), np.int8)
    values[: conv.filters, : flat.shape[1]] = flat
    return Packed(values.reshape(-1), length)


def _pack(conv: Convolution) -> Packed:
    return pack_runs(conv, _length(conv))


def _pack_small(conv: Convolution) -> Packed:
    return pack_runs(conv, _length(conv, _SMALL_LENGTHS))


def _suits(conv: Convolution, core: Core) -> bool:
    return core.multiplier and conv.groups == 1 and not conv.transposed


def _suits_small(conv: Convolution, core: Core) -> bool:
    return core.name == "cortex-m0plus" and _suits(conv, core)


def _scratch_bytes(conv: Convolution) -> int:
    return 8 * _padded(conv, _length(conv))


def _scratch_bytes_small(conv: Convolution) -> int:
    return 4 * _padded(conv, _length(conv, _SMALL_LENGTHS))


LANES = Kernel("nn_conv_lanes", "conv_lanes.c", _suits, _pack, _scratch_bytes, pixels=4)
SMALL_LANES = Kernel(
    "nn_conv_lanes", "conv_lanes.c", _suits_small, _pack_small, _scratch_bytes_small, pixels=2
)
"""The same on Armv6-M, which has the registers for blocks of two pixels."""

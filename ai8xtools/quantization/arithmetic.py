"""The arithmetic of quantization in float32, step by step as PyTorch does it in training.

Reductions (means, standard deviations) are the exception: PyTorch's order of summation depends on
the processor, so none is reproduced. They are accumulated in float64, whose error over a layer's
weights is far below half a unit of float32, and rounded once: the result is the float32 nearest to
the true value, and the same on every machine. PyTorch's lies within a few units in the last place
of it; such a difference reaches an integer only where a scaled weight falls within that distance of
a rounding edge.
Source: docs/quantization.md, "Ranges"; docs/checkpoints.md, "What quantization changes".
"""

from __future__ import annotations

import math
from typing import TypeAlias

import numpy as np
from numpy.typing import NDArray

Float32s: TypeAlias = NDArray[np.float32]

LARGEST = 2.0**60
"""Parameters and scales up to this magnitude: the product of both and 2^7 is finite in float32."""
BIAS_UNIT = 128  # a stored bias counts 1/128 of a weight unit: it joins 8-bit data times weights


def quantile(values: Float32s, q: np.float32) -> np.float32:
    """Return the q-quantile of values of any shape, linearly interpolated, as torch.quantile does.

    The rank is a float32 product, and the interpolation starts from the nearer neighbour with one
    fused multiply-add. That is exact in float64 up to its final rounding: the product of two
    float32 numbers has at most 48 significant bits.
    """
    ordered = np.sort(values, axis=None)
    rank = np.float32(q) * np.float32(ordered.size - 1)
    last = ordered.size - 1  # float32 rounds the rank, beyond 2^24 elements past the last one
    low, high = ordered[min(math.floor(rank), last)], ordered[min(math.ceil(rank), last)]
    weight = rank - np.float32(math.floor(rank))
    step = np.float64(high - low)
    if weight < np.float32(0.5):
        return np.float32(np.float64(low) + np.float64(weight) * step)
    return np.float32(np.float64(high) - np.float64(np.float32(1) - weight) * step)


def shift_of_range(largest: np.float32, bits: int) -> np.float32:
    """Return s so that 2^s times `largest` lies in (1/2, 1]: floor(log2(1/largest)), limited.

    The limits -7-bits and 23-bits are those of the accelerator's output shift.
    """
    with np.errstate(divide="ignore", over="ignore"):
        inverse = np.float64(np.float32(1) / np.float32(largest))
        exponent = np.floor(np.float32(np.log2(inverse)))
    lowest, highest = np.float32(-7 - bits), np.float32(23 - bits)
    return lowest if exponent < lowest else highest if exponent > highest else exponent


def largest_magnitude(values: Float32s) -> np.float32:
    """Return max(|min|, |max|)."""
    return max(abs(values.min()), abs(values.max()))


def mean_channel_magnitude(values: Float32s) -> np.float32:
    """Return the larger magnitude of the mean channel minimum and the mean channel maximum.

    Channels lie along axis 0.
    """
    channels = values.reshape(values.shape[0], -1)
    return max(abs(mean(channels.min(axis=1))), abs(mean(channels.max(axis=1))))


def magnitude_within_deviations(values: Float32s, count: float) -> np.float32:
    """Return the largest magnitude after limiting to mean ± count standard deviations.

    The deviation is the unbiased one (N-1).
    """
    spread = np.float32(count) * _standard_deviation(values)
    low = max(values.min(), mean(values) - spread)
    high = min(values.max(), mean(values) + spread)
    return max(abs(low), abs(high))


def mean(values: Float32s) -> np.float32:
    """Return the mean of all values."""
    return np.float32(values.mean(dtype=np.float64))


def _standard_deviation(values: Float32s) -> np.float32:
    if values.size < 2:
        return np.float32(0)
    return np.float32(values.std(dtype=np.float64, ddof=1))


def quantize_weights(weights: Float32s, scale: np.float32, bits: int) -> Float32s:
    """Return floor(2^(bits-1)·scale·weights + 1/2), limited to signed integers of `bits` bits."""
    return _round(weights * (np.float32(2 ** (bits - 1)) * scale), bits)


def quantize_bias(
    bias: Float32s, scale: np.float32, bits: int, held_bits: int | None = None
) -> Float32s:
    """Return the bias in steps of weights of `bits` bits, limited to integers of `held_bits` bits.

    Without `held_bits` it is limited as the weights are. It is in the units of the
    checkpoint: multiples of 128·2^(bits-8).
    """
    rounded = _round((bias * scale) * np.float32(2 ** (bits - 1)), held_bits or bits)
    return rounded * np.float32(2.0 ** (bits - 8) * BIAS_UNIT)


def _round(scaled: Float32s, bits: int) -> Float32s:
    limit = 2 ** (bits - 1)
    rounded: Float32s = np.floor(scaled + np.float32(0.5))
    return rounded.clip(np.float32(-limit), np.float32(limit - 1))

"""Powers of two around magnitudes, exactly, and rounding into signed integers.

What fixed-point formats of 8 and 16 bits share. All arithmetic is that of float64; scaling by
powers of two is exact there.
"""

from __future__ import annotations

import math
from typing import TypeAlias

import numpy as np
from numpy.typing import ArrayLike, NDArray

Float64s: TypeAlias = NDArray[np.float64]
Int64s: TypeAlias = NDArray[np.int64]


def ceil_log2(magnitude: float) -> int:
    """Return the least n with magnitude <= 2^n, from mantissa and exponent, without a logarithm.

    Raises ValueError unless 0 < magnitude < infinity.
    """
    if not 0 < magnitude < math.inf:
        raise ValueError(f"no logarithm of {magnitude}")
    mantissa, exponent = math.frexp(magnitude)
    return exponent - 1 if mantissa == 0.5 else exponent


def power_of_two_fraction(magnitude: float, bits: int) -> int:
    """Return k so that `magnitude` times 2^k just fits `bits` bits with sign: b-1-ceil(log2 m).

    It may be negative or exceed b-1; for the magnitude 0 it is b-1.
    """
    return bits - 1 if magnitude == 0 else bits - 1 - ceil_log2(magnitude)


def limits(bits: int) -> tuple[int, int]:
    """Return the least and the greatest signed integer of `bits` bits."""
    half = 1 << (bits - 1)
    return -half, half - 1


def saturated(values: ArrayLike, bits: int) -> Int64s:
    """Round half to even and limit to signed integers of `bits` bits (up to 32)."""
    low, high = limits(bits)
    rounded: Int64s = np.clip(np.rint(np.asarray(values, np.float64)), low, high).astype(np.int64)
    return rounded


def to_fixed(values: ArrayLike, fraction: int, bits: int) -> Int64s:
    """Return values times 2^fraction, rounded half to even and limited to `bits` bits."""
    return saturated(np.ldexp(np.asarray(values, np.float64), fraction), bits)


def largest(values: ArrayLike) -> float:
    """Return the largest magnitude; 0 of nothing."""
    magnitudes = np.abs(np.asarray(values, np.float64))
    return float(magnitudes.max(initial=0.0))


def sqnr_db(exact: ArrayLike, approximation: ArrayLike) -> float:
    """Return the energy of values over that of their errors, in decibels.

    Infinite without an error, minus infinity where only errors are left.
    """
    expected = np.asarray(exact, np.float64)
    noise = float(((expected - np.asarray(approximation, np.float64)) ** 2).sum())
    signal = float((expected**2).sum())
    if noise == 0:
        return math.inf
    return 10 * math.log10(signal / noise) if signal else -math.inf

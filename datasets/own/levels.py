"""Measurements as the integers of a network, computed like the C code of `input_code`.

Source: docs/own-data.md, "Tables" and "Time series".
"""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
from numpy.typing import NDArray

Floats = NDArray[np.float32]
Doubles = NDArray[np.float64]
_LEAST_SPAN = 1e-36
"""What varies less is constant: its factor would be beyond single precision."""


def offsets_and_factors(low: Sequence[float], high: Sequence[float]) -> tuple[Doubles, Floats]:
    """Return what to subtract and to multiply by, so that low..high becomes -128..128.

    The factor of what is constant is 0.
    """
    bottom, top = np.asarray(low, np.float64), np.asarray(high, np.float64)
    span = top - bottom
    factors = np.where(span > _LEAST_SPAN, 256 / np.maximum(span, _LEAST_SPAN), 0)
    return bottom + span / 2, factors.astype(np.float32)


def levels(values: NDArray[np.floating], offset: Doubles, factor: Floats) -> NDArray[np.int8]:
    """Return (values - offset) * factor, rounded to -128..127, halves to even.

    The difference is that of doubles, so that large numbers may differ little; of floats it is what
    floats give, too. `offset` and `factor` are broadcast.
    """
    with np.errstate(over="ignore", invalid="ignore"):
        product = (values - offset).astype(np.float32) * factor
    rounded = np.rint(np.where(factor > 0, product, np.float32(0)))
    return np.clip(rounded, -128, 127).astype(np.int8)

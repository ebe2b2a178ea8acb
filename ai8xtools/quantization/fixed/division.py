"""The correction factor D of a layer: weights divided by it are fractions below one."""

from __future__ import annotations

import enum
import math
from typing import assert_never

import numpy as np
from numpy.typing import ArrayLike

from ai8xtools.quantization.formats import Float64s, Int64s, ceil_log2, to_fixed


class Division(enum.StrEnum):
    """The kinds of D: a power of two, which becomes a shift, or an integer, which multiplies."""

    POWER_OF_TWO = "pow2"
    INTEGER = "int"

    @property
    def shifts(self) -> bool:
        """Whether D is a power of two, which moves the point of the weights."""
        match self:
            case Division.POWER_OF_TWO:
                return True
            case Division.INTEGER:
                return False
            case _:
                assert_never(self)


def divisor(magnitude: float, division: Division) -> float:
    """Return D for weights of a magnitude; 1 for a layer of zeros.

    The power of two falls below 1 for magnitudes up to 0.5, so that all bits are used.
    """
    if magnitude == 0:
        return 1.0
    match division:
        case Division.POWER_OF_TWO:
            return math.ldexp(1.0, ceil_log2(magnitude))
        case Division.INTEGER:
            return float(math.ceil(magnitude))
        case _:
            assert_never(division)


def divided(weights: ArrayLike, by: float, bits: int) -> Int64s:
    """Return weights/D with b-1 fraction bits, rounded half to even and saturated."""
    return to_fixed(np.asarray(weights, np.float64) / by, bits - 1, bits)


def restored(integers: Int64s, by: float, bits: int) -> Float64s:
    """Return the weights that the integers represent."""
    values: Float64s = np.ldexp(integers * by, 1 - bits)
    return values

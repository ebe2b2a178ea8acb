"""Which layers can do with 8 bits or fewer: by the signal-to-noise ratio of weights, by size."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence

import numpy as np
from numpy.typing import NDArray

from ai8xtools.quantization.fixed.division import Division, divided, divisor, restored
from ai8xtools.quantization.formats import largest, sqnr_db
from ai8xtools.values import frozen

FEW, SHORT, LONG = (1, 2, 4), 8, 16
DEFAULT_SQNR_DB = 35.0


@frozen
class Lengths:
    """Bits of each layer, the threshold that led to them (dB), and their bytes.

    `ratios` are the signal-to-noise ratios at 8 bits. `fits`: within the budget, if there is one;
    otherwise all layers have the fewest bits, and `threshold` is None.
    """

    bits: tuple[int, ...]
    threshold: float | None
    size_bytes: int
    ratios: tuple[float, ...]
    fits: bool


def weight_sqnr_db(
    weights: NDArray[np.floating], bits: int, division: Division, magnitude: float | None = None
) -> float:
    """Return the signal-to-noise ratio of weights of `bits` bits, divided for a magnitude.

    The magnitude is the largest of the weights, unless one is given.
    """
    by = divisor(largest(weights) if magnitude is None else magnitude, division)
    return sqnr_db(weights, restored(divided(weights, by, bits), by, bits))


def choose_lengths(
    ratios: Sequence[float],
    sizes: Sequence[int],
    threshold: float,
    budget: int | None = None,
    few: Mapping[int, Sequence[float]] | None = None,
) -> Lengths:
    """Return 8 bits for layers whose ratio reaches the threshold (dB), 16 for the others.

    `ratios` are those at 8 bits, `sizes` count the weights of the layers. With ratios at other
    widths (`few`) layers have the fewest bits that reach the threshold. With a budget (bytes) the
    threshold is lowered for all layers alike, to the largest value at which the weights fit.
    """
    widths = dict(sorted((few or {}).items())) | {SHORT: ratios}
    thresholds = {one for some in widths.values() for one in some if -math.inf < one < threshold}
    for tried in (threshold, *sorted(thresholds, reverse=True)):
        bits = tuple(
            next((width for width, some in widths.items() if some[layer] >= tried), LONG)
            for layer in range(len(ratios))
        )
        size = sum(-(-count * width // 8) for count, width in zip(sizes, bits, strict=True))
        if budget is None or size <= budget:
            return Lengths(bits, tried, size, tuple(ratios), True)
    return Lengths(bits, None, size, tuple(ratios), False)

"""How the weights of a layer use their encoding."""

from __future__ import annotations

import numpy as np

from ai8xtools.quantization.lowbit.encodings import Codes, Encoding, quantized
from ai8xtools.values import frozen


@frozen
class Statistics:
    """The weights of one layer after quantization.

    `values` are the levels that occur, in rising order, `percent` the share of each; the entropy is
    in bits per weight, `capacity_percent` what it is of the bits that a weight takes.
    """

    values: tuple[float, ...]
    percent: tuple[float, ...]
    least: float
    greatest: float
    mean: float
    deviation: float
    entropy_bits: float
    capacity_percent: float


def statistics(codes: Codes, encoding: Encoding) -> Statistics:
    """Count the codes of a layer; mean and deviation are computed in float32, as in training."""
    levels = quantized(codes, encoding)
    values, counts = np.unique(levels, return_counts=True)
    shares = counts / levels.size
    entropy = float(-(shares * np.log2(shares)).sum())
    return Statistics(
        tuple(map(float, values)),
        tuple(map(float, 100 * shares)),
        float(values[0]),
        float(values[-1]),
        float(levels.mean()),
        float(levels.std()),
        entropy,
        100 * entropy / encoding.bits_per_weight,
    )

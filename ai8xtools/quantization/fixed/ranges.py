"""Statistics of weights and data, and the magnitudes that determine formats."""

from __future__ import annotations

from typing import Literal

import numpy as np
from numpy.typing import ArrayLike

from ai8xtools.quantization.formats import largest
from ai8xtools.values import frozen


@frozen
class Rule:
    """The magnitude that is used: the maximum, a percentile, or mean and `number` deviations."""

    kind: Literal["max", "percentile", "sigma"] = "max"
    number: float = 0.0

    def __str__(self) -> str:
        return self.kind if self.kind == "max" else f"{self.kind} {self.number:g}"


@frozen
class Summary:
    """Least and greatest value, mean and (population) variance of some numbers."""

    low: float
    high: float
    mean: float
    variance: float

    @property
    def deviation(self) -> float:
        """The standard deviation."""
        return float(np.sqrt(self.variance))

    @property
    def magnitude(self) -> float:
        """The largest magnitude."""
        return max(abs(self.low), abs(self.high))


def summarize(values: ArrayLike) -> Summary:
    """Return the statistics of numbers, at least one, computed in float64."""
    wide = np.asarray(values, np.float64)
    return Summary(float(wide.min()), float(wide.max()), float(wide.mean()), float(wide.var()))


def weight_magnitude(weights: ArrayLike, rule: Rule) -> float:
    """Return the magnitude that the weights of a layer are divided for.

    Percentiles are interpolated linearly; the deviation is that of the magnitudes (population).
    Larger weights saturate.
    """
    magnitudes = np.abs(np.asarray(weights, np.float64))
    match rule.kind:
        case "max":
            return largest(magnitudes)
        case "percentile":
            return float(np.percentile(magnitudes, rule.number))
        case "sigma":
            return float(magnitudes.mean() + rule.number * magnitudes.std())


def data_magnitude(summary: Summary, rule: Rule) -> float:
    """Return the magnitude that a format of data is made for: "max" or "sigma"."""
    if rule.kind == "max":
        return summary.magnitude
    reach = rule.number * summary.deviation
    return max(abs(summary.mean - reach), abs(summary.mean + reach))

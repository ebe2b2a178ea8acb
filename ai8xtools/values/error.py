"""The error of numbers that a network learned, and that of always answering their mean.

Source: docs/own-data.md, "How good it is".
"""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from typing import Any

from ai8xtools.values.frozen import frozen

_NORMAL = 1.959964
"""Of a normal distribution, 95 % are within so many standard deviations."""
_LEAST_GAIN = 0.1
"""A network is hardly better than the mean if its squared error is smaller by less than this."""


@frozen
class Error:
    """The root of the mean squared error of `count` numbers is `rmse`, within `low` and `high` by
    95 %.

    `trivial` is that of always answering the mean of training, `least_gain` the part of its squared
    error that the network takes away at least (95 %).
    """

    rmse: float
    low: float
    high: float
    trivial: float
    least_gain: float
    count: int

    @staticmethod
    def of(errors: Sequence[float], deviations: Sequence[float]) -> Error:
        """Return the error of at least one number; `deviations` are those from the mean of
        training."""
        squares, others = ([value * value for value in part] for part in (errors, deviations))
        mean, width = _mean_and_width(squares)
        trivial = math.fsum(others) / len(others)
        gain, unsure = _mean_and_width([b - a for a, b in zip(squares, others, strict=True)])
        return Error(
            math.sqrt(mean), math.sqrt(max(0.0, mean - width)), math.sqrt(mean + width),
            math.sqrt(trivial), (gain - unsure) / trivial if trivial else 0.0, len(squares),
        )  # fmt: skip

    @property
    def title(self) -> str:
        """What it is called in the middle of a sentence."""
        return "RMSE"

    def __str__(self) -> str:
        return (
            f"{self.rmse:.4g} ({self.count} numbers; 95 % interval {self.low:.4g} to "
            f"{self.high:.4g}; the mean of training has {self.trivial:.4g})"
        )

    @property
    def doubt(self) -> str | None:
        """A sentence about a network that hardly says more than the mean; None for a better one."""
        gain = 1 - (self.rmse / self.trivial) ** 2 if self.trivial else 0.0
        if self.least_gain > 0 and gain >= _LEAST_GAIN:
            return None
        return (
            "The network is hardly better than always answering the mean of training: its RMSE on "
            f"{self.count} test samples is {self.rmse:.4g}, that of the mean {self.trivial:.4g}"
        )


def error_of(entry: Mapping[str, Any]) -> Error:
    """Return what `dataclasses.asdict` made of one; LookupError, TypeError or ValueError for other
    entries."""
    rmse, low, high, trivial, gain = (
        float(entry[name]) for name in ("rmse", "low", "high", "trivial", "least_gain")
    )
    return Error(rmse, low, high, trivial, gain, int(entry["count"]))


def combined_errors(parts: Sequence[Error]) -> Error:
    """Return the error over the numbers of several parts."""
    count = sum(one.count for one in parts)

    def mean(values: Sequence[float]) -> float:
        return math.fsum(n.count * value for n, value in zip(parts, values, strict=True)) / count

    def width(values: Sequence[float]) -> float:
        return math.hypot(*(n.count * v for n, v in zip(parts, values, strict=True))) / count

    error = mean([one.rmse**2 for one in parts])
    trivial = mean([one.trivial**2 for one in parts])
    off = width([one.high**2 - one.rmse**2 for one in parts])
    unsure = width([(1 - one.least_gain) * one.trivial**2 - one.rmse**2 for one in parts])
    return Error(
        math.sqrt(error), math.sqrt(max(0.0, error - off)), math.sqrt(error + off),
        math.sqrt(trivial), 1 - (error + unsure) / trivial if trivial else 0.0, count,
    )  # fmt: skip


def _mean_and_width(values: Sequence[float]) -> tuple[float, float]:
    """Return the mean, and half the width of its 95 % confidence interval."""
    count = len(values)
    mean = math.fsum(values) / count
    variance = math.fsum((value - mean) ** 2 for value in values) / max(1, count - 1)
    return mean, _NORMAL * math.sqrt(variance / count)

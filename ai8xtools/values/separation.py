"""How well a score distinguishes anomalies from normal samples.

Source: docs/own-data.md, "How good it is".
"""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from typing import Any

from ai8xtools.values.frozen import frozen

_NORMAL = 1.959964
"""Of a normal distribution, 95 % are within so many standard deviations."""
_BELOW = 0.95
_CHANCE = 0.5
_LEAST_GAIN = 0.1
"""A network is hardly better than chance below this part of the way from there to 1."""


@frozen
class Separation:
    """The share `auc` (0..1) of pairs of an anomaly and a normal sample in which the anomaly has
    the higher score: the area under the curve of hits against false alarms.

    Of `count` samples `anomalies` are anomalies; `found` of them, and `alarms` normal ones, have a
    score above `threshold`.
    """

    auc: float
    count: int
    anomalies: int
    found: int
    alarms: int
    threshold: float

    @staticmethod
    def of(scores: Sequence[float], is_anomaly: Sequence[bool], threshold: float) -> Separation:
        """Return how scores separate at least one anomaly from at least one normal sample."""
        pairs = sorted(zip(scores, is_anomaly, strict=True))
        anomalies = sum(is_anomaly)
        below, ranks, at = 0, 0.0, 0
        while at < len(pairs):
            end = at
            while end < len(pairs) and pairs[end][0] == pairs[at][0]:
                end += 1
            equal = sum(anomaly for _, anomaly in pairs[at:end])
            ranks += equal * (below + (end - at - equal) / 2)
            below, at = below + end - at - equal, end
        hits = [anomaly for score, anomaly in pairs if score > threshold]
        auc = ranks / (anomalies * (len(pairs) - anomalies))
        return Separation(
            auc, len(pairs), anomalies, sum(hits), len(hits) - sum(hits), float(threshold)
        )

    @property
    def title(self) -> str:
        """What it is called in the middle of a sentence."""
        return "AUC"

    @property
    def interval(self) -> tuple[float, float]:
        """The 95 % confidence interval of this area, by Hanley and McNeil."""
        area, others = self.auc, self.count - self.anomalies
        first, second = area / (2 - area), 2 * area**2 / (1 + area)
        variance = area * (1 - area) + (self.anomalies - 1) * (first - area**2)
        variance += (others - 1) * (second - area**2)
        width = _NORMAL * math.sqrt(max(0.0, variance / (self.anomalies * others)))
        return max(0.0, area - width), min(1.0, area + width)

    def __str__(self) -> str:
        low, high = self.interval
        return (
            f"{self.auc:.3f} ({self.anomalies} of {self.count} are anomalies; 95 % interval "
            f"{low:.3f} to {high:.3f}); above the threshold {self.found} of {self.anomalies} "
            f"anomalies, {self.alarms} of {self.count - self.anomalies} others"
        )

    @property
    def doubt(self) -> str | None:
        """A sentence about a network that is hardly better than chance; None for a better one."""
        if self.interval[0] > _CHANCE and self.auc >= _CHANCE + _LEAST_GAIN * (1 - _CHANCE):
            return None
        return (
            f"The network is hardly better than chance: its AUC on {self.count} test samples is "
            f"{self.auc:.3f}, 0.5 by chance"
        )


def separation_of(entry: Mapping[str, Any]) -> Separation:
    """Return what `dataclasses.asdict` made of one; LookupError, TypeError or ValueError for other
    entries."""
    count, anomalies, found, alarms = (
        int(entry[name]) for name in ("count", "anomalies", "found", "alarms")
    )
    return Separation(float(entry["auc"]), count, anomalies, found, alarms,
                      float(entry["threshold"]))  # fmt: skip


def combined_separations(parts: Sequence[Separation]) -> Separation:
    """Return the mean area over several parts, whose scores are not comparable; the counts of all
    of them."""
    count, anomalies, found, alarms = (
        sum(getattr(one, name) for one in parts)
        for name in ("count", "anomalies", "found", "alarms")
    )
    area = math.fsum(one.auc for one in parts) / len(parts)
    return Separation(area, count, anomalies, found, alarms, 0.0)


def threshold_of(scores: Sequence[float]) -> float:
    """Return a score that one in twenty of these normal samples exceeds, in a straight line between
    two of them."""
    ordered = sorted(scores)
    place = _BELOW * (len(ordered) - 1)
    low = ordered[int(place)]
    high = ordered[min(int(place) + 1, len(ordered) - 1)]
    return low + (place % 1) * (high - low)

"""The accuracy of a network, with its confidence interval and the accuracy of chance.

Source: docs/own-data.md, "How good it is".
"""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from typing import Any

from ai8xtools.values.error import Error, combined_errors, error_of
from ai8xtools.values.frozen import frozen
from ai8xtools.values.separation import Separation, combined_separations, separation_of

MOST_CLASSES = 32
"""Of which it is kept which class is taken for which."""
_Z = 1.959964
"""Of a normal distribution, 95 % are within so many standard deviations."""
_LEAST_GAIN = 0.1
"""A network is hardly better than chance below this part of the way from there to 1."""


@frozen
class Accuracy:
    """`right` of `count` samples are right.

    `chance` (0..1) is the share that would be right if the same answers came in random order.
    `confusion` [actual, predicted] counts the samples by class, with the names of these `classes`;
    both are empty where that is not known, or for more than MOST_CLASSES.
    """

    right: int
    count: int
    chance: float
    confusion: tuple[tuple[int, ...], ...] = ()
    classes: tuple[str, ...] = ()

    @staticmethod
    def of(confusion: Sequence[Sequence[int]], classes: Sequence[str] = ()) -> Accuracy:
        """Return the accuracy of a confusion matrix [actual, predicted]."""
        count = sum(map(sum, confusion))
        predicted = map(sum, zip(*confusion, strict=True))
        pairs = zip(map(sum, confusion), predicted, strict=True)
        chance = sum(actual * answers for actual, answers in pairs) / max(1, count) ** 2
        right = sum(row[number] for number, row in enumerate(confusion))
        if not len(classes) == len(confusion) <= MOST_CLASSES:
            return Accuracy(right, count, chance)
        return Accuracy(right, count, chance, tuple(map(tuple, confusion)), tuple(classes))

    @property
    def title(self) -> str:
        """What it is called in the middle of a sentence."""
        return "accuracy"

    @property
    def share(self) -> float:
        """Right samples of all, 0..1."""
        return self.right / max(1, self.count)

    @property
    def interval(self) -> tuple[float, float]:
        """The 95 % confidence interval of the accuracy (0..1), by Wilson."""
        if not self.count:
            return 0.0, 1.0
        n, share = self.count, self.right / self.count
        middle = share + _Z**2 / (2 * n)
        width = _Z * math.sqrt(share * (1 - share) / n + _Z**2 / (4 * n**2))
        low, high = ((middle + sign * width) / (1 + _Z**2 / n) for sign in (-1, 1))
        return (0.0 if not self.right else low), (1.0 if self.right == n else high)

    @property
    def is_hardly_better(self) -> bool:
        """Whether chance alone could reach this accuracy, or nearly."""
        is_near = _gain(self.share, self.chance) < _LEAST_GAIN
        return self.interval[0] <= self.chance or is_near

    def __str__(self) -> str:
        low, high = (100 * bound for bound in self.interval)
        interval = f"95 % interval {low:.1f} to {high:.1f} %"
        return f"{100 * self.share:.1f} % ({self.right} of {self.count}; {interval})"

    @property
    def doubt(self) -> str | None:
        """A sentence about a network that is hardly better than chance; None for a better one."""
        if not self.is_hardly_better:
            return None
        return (
            f"The network is hardly better than chance: {100 * self.share:.1f} % of {self.count} "
            f"test samples are right, {100 * self.chance:.1f} % by chance"
        )


@frozen
class Mean:
    """A mean over classes, `share` (0..1) of what `title` names, measured on `count` pictures.

    `chance` (0..1) is that of the same answers in random order.
    """

    title: str
    share: float
    count: int
    chance: float

    def __str__(self) -> str:
        return f"{100 * self.share:.1f} % ({self.count} pictures)"

    @property
    def doubt(self) -> str | None:
        """A sentence about a network that is hardly better than chance; None for a better one."""
        if _gain(self.share, self.chance) >= _LEAST_GAIN:
            return None
        return (
            f"The network is hardly better than chance: its {self.title} on {self.count} test "
            f"pictures is {100 * self.share:.1f} %, {100 * self.chance:.1f} % by chance"
        )


Measured = Accuracy | Mean | Error | Separation


def measured_of(entry: Mapping[str, Any] | None) -> Measured | None:
    """Return what `dataclasses.asdict` made of one; LookupError, TypeError or ValueError for other
    entries."""
    if entry is None:
        return None
    if "rmse" in entry:
        return error_of(entry)
    if "auc" in entry:
        return separation_of(entry)
    count, chance = int(entry["count"]), float(entry["chance"])
    if "right" in entry:
        confusion = tuple(tuple(map(int, row)) for row in entry.get("confusion", ()))
        classes = tuple(map(str, entry.get("classes", ())))
        return Accuracy(int(entry["right"]), count, chance, confusion, classes)
    return Mean(str(entry["title"]), float(entry["share"]), count, chance)


def combined(parts: Sequence[Measured]) -> Measured:
    """Return what was measured of the samples of several parts, the mean over them for means."""
    if all(isinstance(one, Separation) for one in parts):
        return combined_separations([one for one in parts if isinstance(one, Separation)])
    if all(isinstance(one, Error) for one in parts):
        return combined_errors([one for one in parts if isinstance(one, Error)])
    first, count = parts[0], sum(one.count for one in parts)
    share, chance = (
        sum(getattr(one, name) * one.count for one in parts) / count for name in ("share", "chance")
    )
    if isinstance(first, Mean):
        return Mean(first.title, share, count, chance)
    return Accuracy(round(share * count), count, chance)


def doubt_of(measured: Measured | None) -> str | None:
    """Return the doubt about what training measured; None without one."""
    doubt = None if measured is None else measured.doubt
    return None if doubt is None else f"{doubt} (at the end of training)"


def capitalized(title: str) -> str:
    """Return a title for the beginning of a line; abbreviations stay."""
    return title.capitalize() if title.islower() else title


def _gain(share: float, chance: float) -> float:
    """Return which part of the way from chance to 1 is gone."""
    return (share - chance) / (1 - chance) if chance < 1 else 0.0

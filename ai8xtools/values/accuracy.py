"""How often a network is right, with what that is worth: an interval, and what chance would do.

Source: docs/own-data.md, "How good it is".
"""

from __future__ import annotations

import math
from collections.abc import Sequence

from ai8xtools.values.frozen import frozen

_Z = 1.959964
"""Of a normal distribution, 95 % are within so many standard deviations."""
_LEAST_GAIN = 0.1
"""A network is hardly better than chance below this part of the way from there to 1."""


@frozen
class Accuracy:
    """`right` of `count` samples are right.

    `chance` (0..1) is the share that would be right if the same answers came in random order.
    """

    right: int
    count: int
    chance: float

    @staticmethod
    def of(confusion: Sequence[Sequence[int]]) -> Accuracy:
        """Return the accuracy of a confusion matrix [actual, predicted]."""
        count = sum(map(sum, confusion))
        predicted = map(sum, zip(*confusion, strict=True))
        pairs = zip(map(sum, confusion), predicted, strict=True)
        chance = sum(actual * answers for actual, answers in pairs) / max(1, count) ** 2
        right = sum(row[number] for number, row in enumerate(confusion))
        return Accuracy(right, count, chance)

    @property
    def interval(self) -> tuple[float, float]:
        """The accuracies 0..1 that are compatible with what was found, by Wilson, 95 %."""
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
        share = self.right / max(1, self.count)
        gain = (share - self.chance) / (1 - self.chance) if self.chance < 1 else 0.0
        return self.interval[0] <= self.chance or gain < _LEAST_GAIN

    def __str__(self) -> str:
        low, high = (100 * bound for bound in self.interval)
        share = 100 * self.right / max(1, self.count)
        return (
            f"{share:.1f} % ({self.right} of {self.count}; 95 % interval {low:.1f} to {high:.1f} %)"
        )

    @property
    def doubt(self) -> str | None:
        """A sentence about a network that is hardly better than chance; None for a better one."""
        if not self.is_hardly_better:
            return None
        share = 100 * self.right / max(1, self.count)
        return (
            f"The network is hardly better than chance: {share:.1f} % of {self.count} test samples "
            f"are right, {100 * self.chance:.1f} % by chance"
        )


def doubt_of(measured: tuple[int, int, float] | None) -> str | None:
    """Return the doubt about an accuracy that training measured; None without one."""
    doubt = None if measured is None else Accuracy(*measured).doubt
    return None if doubt is None else f"{doubt} (at the end of training)"

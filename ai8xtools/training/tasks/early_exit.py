"""Classification with an early exit.

Source: docs/early-exit.md.
"""

from __future__ import annotations

from typing import Any, ClassVar, Self

from torch import Tensor

from ai8xtools.training.loop.metrics import Meter
from ai8xtools.training.tasks.classification import Classification

_WEIGHT = 0.3
"""Of the exit's loss; that of the last layer counts once."""
_EXIT = "Exit"


class EarlyExit(Classification):
    """Scores of the last layer and of the exit, each [N, classes]; the former are what counts."""

    decimals: ClassVar = {**Classification.decimals, _EXIT: 3}

    def prepare(self, outputs: Any) -> Any:
        """Prepare both."""
        return tuple(super(EarlyExit, self).prepare(one) for one in outputs)

    def loss(self, outputs: Any, targets: Tensor) -> Tensor:
        """Return the weighted sum of both losses; of a single one what it is."""
        if isinstance(outputs, Tensor):
            return super().loss(outputs, targets)
        last, early = outputs
        return super().loss(last, targets) + _WEIGHT * super().loss(early, targets)

    def training_loss(self, outputs: Any, targets: Tensor) -> Tensor:
        """Return the weighted sum of both losses of training."""
        last, early = outputs
        return super().training_loss(last, targets) + _WEIGHT * super().training_loss(
            early, targets
        )

    def meter(self, training: bool) -> Meter:
        """Return a meter of both."""
        return _Both(super().meter(training), super().meter(training))

    def check(self, outputs: Any, target: Any) -> str | None:
        """Check both."""
        return next(filter(None, (super(EarlyExit, self).check(o, target) for o in outputs)), None)


class _Both(Meter):
    """The meter of the last layer, and one of the exit."""

    def __init__(self, last: Meter, early: Meter) -> None:
        self._last, self._early = last, early

    def add(self, outputs: Any, targets: Tensor) -> None:
        """Evaluate a batch."""
        self._last.add(outputs[0], targets)
        self._early.add(outputs[1], targets)

    def merge(self, other: Self) -> None:
        """Add the counts of another meter."""
        self._last.merge(other._last)
        self._early.merge(other._early)

    def values(self, final: bool) -> dict[str, float]:
        """Return the values of the last layer, and the accuracy of the exit in percent."""
        early = self._early.values(final)
        return self._last.values(final) | ({_EXIT: early["Top1"]} if early else {})

    def by_class(self) -> dict[str, dict[str, float | None]]:
        """Return those of the last layer."""
        return self._last.by_class()

    def confusion(self) -> Tensor | None:
        """Return that of the last layer."""
        return self._last.confusion()

"""Regression: networks whose outputs are numbers, not classes."""

from __future__ import annotations

from typing import Any, ClassVar, Self

import torch
from torch import Tensor, nn

from ai8xtools.training.catalog.discovery import DatasetEntry
from ai8xtools.training.loop.metrics import Meter, Scores
from ai8xtools.training.options import TrainingOptions
from ai8xtools.training.tasks.task import Task, dimensions


class Regression(Task):
    """Mean squared error; outputs and targets have the same shape, or differ by axes of one."""

    decimals: ClassVar = {"MSE": 5}

    def __init__(self, entry: DatasetEntry, model: nn.Module, options: TrainingOptions) -> None:
        super().__init__(entry, model, options)
        self.criterion = nn.MSELoss()

    def place(self, targets: Any, device: torch.device) -> Any:
        """Move the targets to the device, from integers of the simulation to those of training."""
        targets = targets.to(device, dtype=torch.float32, non_blocking=True)
        return targets / 128 if self.options.act_mode_8bit else targets

    def loss(self, outputs: Tensor, targets: Tensor) -> Tensor:
        """Return the mean squared error."""
        return super().loss(outputs, targets.view_as(outputs))

    def meter(self, _training: bool) -> Meter:
        """Return a meter of squared errors."""
        return SquaredErrors()

    def rank(self, scores: Scores) -> tuple[float, ...]:
        """Sort by error."""
        return (-scores.values["MSE"],)

    def check(self, outputs: Any, target: Any) -> str | None:
        """Compare the shape of the outputs with the target's."""
        if not isinstance(outputs, Tensor):
            return "the network returns several tensors, as detectors do"
        target = torch.as_tensor(target)
        long = [[n for n in t.shape if n > 1] for t in (outputs, target)]
        if long[0] != long[1]:
            return f"it returns {dimensions(outputs[0])}, the targets are {dimensions(target)}"
        return None


class SquaredErrors:
    """Means squared errors over all numbers of all samples."""

    def __init__(self) -> None:
        self._sum: Tensor | None = None
        self._count = 0

    @torch.no_grad()
    def add(self, outputs: Tensor, targets: Tensor) -> None:
        """Evaluate a batch."""
        squares = (outputs - targets.view_as(outputs)).square().sum(dtype=torch.float64)
        self._sum = squares if self._sum is None else self._sum + squares
        self._count += outputs.numel()

    def merge(self, other: Self) -> None:
        """Add the counts of another meter."""
        if other._sum is not None:
            self._sum = other._sum if self._sum is None else self._sum + other._sum
            self._count += other._count

    def values(self, final: bool) -> dict[str, float]:  # noqa: ARG002 - the interface of meters
        """Return the mean."""
        return {} if self._sum is None else {"MSE": float(self._sum) / self._count}

    def by_class(self) -> dict[str, dict[str, float | None]]:
        """Return nothing."""
        return {}

    def confusion(self) -> Tensor | None:
        """Return nothing."""
        return None

"""Relation-based distillation: the network learns to reproduce the outputs of a teacher."""

from __future__ import annotations

from typing import Any, ClassVar

import torch
from torch import Tensor, nn

from ai8xtools.training.catalog.discovery import DatasetEntry
from ai8xtools.training.loop.metrics import OVERALL, Meter, Scores
from ai8xtools.training.options import TrainingOptions
from ai8xtools.training.tasks.task import Task


class Relations(Task):
    """Takes the loss of another task and is measured by the overall loss alone."""

    decimals: ClassVar[dict[str, int]] = {}

    def __init__(
        self, other: Task, entry: DatasetEntry, model: nn.Module, options: TrainingOptions
    ) -> None:
        super().__init__(entry, model, options)
        self.criterion = other.criterion
        self._other = other

    def place(self, targets: Any, device: torch.device) -> Any:
        """Move the targets as the other task does."""
        return self._other.place(targets, device)

    def loss(self, outputs: Tensor, targets: Any) -> Tensor:
        """Return the loss of the labels, 0 when they do not count."""
        if self.options.kd_student_wt == 0:
            return 0 * outputs.sum()
        return self._other.loss(outputs, targets)

    def check(self, outputs: Any, target: Any) -> str | None:
        """Check as the other task does, unless labels do not count."""
        if self.options.kd_student_wt == 0:
            return None
        return self._other.check(outputs, target)

    @property
    def title(self) -> str:
        """The most important value."""
        return OVERALL

    def meter(self, _training: bool) -> Meter:
        """Return a meter that measures nothing."""
        return Meter()

    def rank(self, scores: Scores) -> tuple[float, ...]:
        """Sort by the overall loss."""
        return (-scores.loss,)

    def result_lines(self, scores: Scores) -> list[str]:
        """Return the line of the overall loss."""
        return [f"==> {OVERALL}: {scores.loss:.3f}"]

    def best_text(self, scores: Scores) -> str:
        """Return the overall loss."""
        return f"{OVERALL}: {scores.loss:.5f}"

    def extras(self, current: Scores, best: Scores) -> dict[str, Any]:
        """Return the losses in place of accuracies."""
        return {
            "current_top1": current.loss,
            "best_top1": best.loss,
            "current_mAP": 0,
            "best_mAP": 0,
        }

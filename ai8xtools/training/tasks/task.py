"""The decisions of a task.

Source: docs/training.md, "What happens in a run".
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Mapping
from typing import Any, ClassVar

import torch
from torch import Tensor, nn
from torch.optim import Optimizer

import ai8x
from ai8xtools.training.catalog.discovery import DatasetEntry
from ai8xtools.training.loop.metrics import Meter, Scores
from ai8xtools.training.options import TrainingOptions
from ai8xtools.values.accuracy import Measured


class Task(ABC):
    """Prepares outputs and targets, computes the loss, measures, ranks and prints results.

    `classes` is the number of labels of the data set. A subclass sets `criterion` and says in
    `decimals` which values it prints in results, in this order.
    """

    decimals: ClassVar[Mapping[str, int]]
    criterion: nn.Module

    def __init__(self, entry: DatasetEntry, model: nn.Module, options: TrainingOptions) -> None:
        self.classes = len(entry.output)
        self.labels = tuple(map(str, entry.output))
        self.is_own = entry.own is not None
        self.options = options
        self.model = model

    # Data

    def place(self, targets: Any, device: torch.device) -> Any:
        """Move the targets of a batch to the device."""
        return targets.to(device, non_blocking=True)

    def prepare(self, outputs: Any) -> Any:
        """Unfold outputs, and bring integers of the simulation to the range of training."""
        if self.options.out_fold_ratio > 1:
            outputs = ai8x.unfold_batch(outputs, self.options.out_fold_ratio)
        return outputs / integer_range(self.model) if self.options.act_mode_8bit else outputs

    def loss(self, outputs: Any, targets: Any) -> Tensor:
        """Return the mean loss of a batch."""
        loss: Tensor = self.criterion(outputs, targets)
        return loss

    def training_loss(self, outputs: Any, targets: Any) -> Tensor:
        """Return the mean loss of a batch in training, where it may differ from that of a test."""
        return self.loss(outputs, targets)

    def divisor(self, targets: Any) -> Tensor:
        """Return the divisor of the mean loss of a batch (scalar): samples, unless overridden.

        Means of parts of a batch count in this relation.
        """
        return torch.tensor(float(len(targets)))

    def optimizers(self) -> list[Optimizer]:
        """Return optimizers of the criterion's own parameters."""
        return []

    def restore(self, extras: dict[str, Any], path: str) -> bool:  # noqa: ARG002
        """Take from a checkpoint what the criterion has learned; False if it holds nothing."""
        return True

    @abstractmethod
    def check(self, outputs: Any, target: Any) -> str | None:
        """Return why prepared outputs [1, ...] do not match the target of a sample, or None."""

    def fault_of_targets(self, targets: Any) -> str | None:  # noqa: ARG002
        """Return why no loss can be computed for the targets of a batch, if that is known."""
        return None

    # Results

    @abstractmethod
    def meter(self, training: bool) -> Meter:
        """Return a new meter, for training batches or for a validation or test."""

    @abstractmethod
    def rank(self, scores: Scores) -> tuple[float, ...]:
        """Return numbers by which epochs are sorted: the greatest tuple is the best."""

    def noted(self, record: Mapping[str, Any], example: Tensor) -> Mapping[str, Any]:  # noqa: ARG002
        """Return what checkpoints say about the user's own data, together with what reading the
        network's outputs takes; `example` is an input."""
        return record

    @property
    def is_judged(self) -> bool:
        """Whether a run ends with how good its networks are: with the user's own data."""
        return False

    def quality(self, scores: Scores, samples: int) -> Measured:
        """Return how good a network is by a pass over test samples, of a task that is judged."""
        raise NotImplementedError

    @property
    def title(self) -> str:
        """The most important value, by its title."""
        return next(iter(self.decimals))

    def result_lines(self, scores: Scores) -> list[str]:
        """Return the lines that show the result of a pass."""
        parts = [*self._parts(scores), f"Loss: {scores.loss:.3f}"]
        return [f"==> {'    '.join(parts)}"]

    def best_text(self, scores: Scores) -> str:
        """Return the results of an epoch for the line that names the best."""
        return "   ".join(self._parts(scores))

    def _parts(self, scores: Scores) -> list[str]:
        return [
            f"{title}: {scores.values[title]:.{digits}f}"
            for title, digits in self.decimals.items()
            if title in scores.values
        ]

    def extras(self, current: Scores, best: Scores) -> dict[str, Any]:
        """Return the entries of a checkpoint about its quality."""
        return {
            "current_top1": current.values[self.title],
            "best_top1": best.values[self.title],
            "current_mAP": 0,
            "best_mAP": 0,
        }


def integer_range(model: nn.Module) -> int:
    """Return the factor by which results of the integer simulation exceed those of training."""
    wide = any(getattr(module, "wide", False) for module in model.modules())
    return 128 * (128 if ai8x.has_thresholds(model) else 256) ** wide


def dimensions(tensor: Tensor) -> str:
    """Return the shape of a tensor for messages."""
    return "x".join(map(str, tensor.shape)) or "scalar"

"""Embeddings: short vectors whose angles tell identities apart (--dr)."""

from __future__ import annotations

from typing import Any

import torch
from torch import Tensor, nn
from torch.optim import Adam, Optimizer

from ai8xtools.diagnostics.errors import InputError
from ai8xtools.training.catalog.discovery import DatasetEntry
from ai8xtools.training.loop.metrics import Meter, Scores
from ai8xtools.training.losses.arcface import SubCenterArcFace
from ai8xtools.training.options import TrainingOptions
from ai8xtools.training.tasks.classification import Classification, ClassificationMeter
from ai8xtools.training.tasks.task import dimensions


class Embedding(Classification):
    """Sub-centre ArcFace, whose centres are learned too; outputs [N, dr], targets [N].

    The accuracy is the share of samples whose nearest centre is of the true class.
    """

    criterion: SubCenterArcFace

    def __init__(self, entry: DatasetEntry, model: nn.Module, options: TrainingOptions) -> None:
        super().__init__(entry, model, options)
        assert options.dr is not None
        self.size = options.dr
        self.criterion = SubCenterArcFace(
            self.classes, self.size, options.scaf_margin, options.scaf_scale
        )
        self._optimizer = Adam(self.criterion.parameters(), options.scaf_lr)

    def optimizers(self) -> list[Optimizer]:
        """Return the optimizer of the centres."""
        return [self._optimizer]

    @property
    def is_judged(self) -> bool:
        """Embeddings are compared with centres that the chip does not have."""
        return False

    def meter(self, training: bool) -> Meter:
        """Return a meter of accuracies by the nearest centre."""
        return EmbeddingMeter(self.criterion, self.options.confusion and not training)

    def extras(self, current: Scores, best: Scores) -> dict[str, Any]:
        """Return the accuracies, the centres and their optimizer."""
        return super().extras(current, best) | {
            "loss_weights": self.criterion.state_dict(),
            "loss_optimizer_state_dict": self._optimizer.state_dict(),
        }

    def restore(self, extras: dict[str, Any], path: str) -> bool:
        """Take the centres of a checkpoint."""
        weights, optimizer = (
            extras.get(key) for key in ("loss_weights", "loss_optimizer_state_dict")
        )
        if weights is None:
            return False
        try:
            self.criterion.load_state_dict(weights)
            if optimizer is not None:
                self._optimizer.load_state_dict(optimizer)
        except (RuntimeError, ValueError, KeyError, TypeError) as exc:
            raise InputError(
                "E609",
                f"the checkpoint's centres of classes do not fit this run ({exc})",
                path,
                "Compare --dr and --dataset.",
            ) from exc
        return True

    def check(self, outputs: Any, target: Any) -> str | None:
        """Compare the length of the output with the option, and the label with the classes."""
        if not isinstance(outputs, Tensor) or tuple(outputs.shape) != (1, self.size):
            shape = dimensions(outputs) if isinstance(outputs, Tensor) else "several tensors"
            return f"it returns {shape}, --dr asks for 1x{self.size}"
        label = torch.as_tensor(target)
        if label.ndim or not 0 <= int(label) < self.classes:
            return f"a label is {label.tolist()}; they are 0 to {self.classes - 1}"
        return None


class EmbeddingMeter(ClassificationMeter):
    """Evaluates embeddings by the nearest centre."""

    def __init__(self, criterion: SubCenterArcFace, matrix: bool) -> None:
        super().__init__(criterion.classes, matrix)
        self._criterion = criterion

    @torch.no_grad()
    def add(self, outputs: Tensor, targets: Tensor) -> None:
        """Evaluate a batch."""
        super().add(self._criterion.logits(outputs), targets)

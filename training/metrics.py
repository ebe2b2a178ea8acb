"""Counting how often a network is right."""

from __future__ import annotations

import math
from dataclasses import dataclass

import torch
from torch import Tensor


@dataclass(frozen=True, slots=True)
class Scores:
    """Means over a set of samples: accuracies in percent (NaN: not measured) and loss.

    `top5` is NaN for up to five classes.
    """

    top1: float
    top5: float
    loss: float

    def __str__(self) -> str:
        top5 = "" if math.isnan(self.top5) else f"Top5: {self.top5:.3f}    "
        return f"Top1: {self.top1:.3f}    {top5}Loss: {self.loss:.3f}"

    def as_dict(self) -> dict[str, float | None]:
        """Return the numbers for a JSON file; what was not measured is None."""
        values = {"top1": self.top1, "top5": self.top5, "loss": self.loss}
        return {name: None if math.isnan(v) else round(v, 6) for name, v in values.items()}


class Counter:
    """Collects losses and hits of batches; sums stay on the device until `scores` is called."""

    def __init__(self, classes: int) -> None:
        self.classes = classes
        self._losses: list[Tensor] = []
        self._sizes: list[int] = []
        self._hits: list[Tensor] = []
        self._judged = 0

    def add_loss(self, loss: Tensor, samples: int) -> None:
        """Add the mean loss (scalar tensor) of a batch of `samples`."""
        self._losses.append(loss.detach())
        self._sizes.append(samples)

    @torch.no_grad()
    def add_hits(self, outputs: Tensor, targets: Tensor) -> None:
        """Compare outputs [N, classes] with targets [N]."""
        best = outputs.topk(min(5, self.classes)).indices == targets.unsqueeze(1)
        self._hits.append(torch.stack([best[:, 0].sum(), best.sum()]))
        self._judged += len(targets)

    @property
    def batches(self) -> int:
        """How many losses were added."""
        return len(self._losses)

    def first_not_finite(self) -> int | None:
        """Return the index of the first added batch whose loss is NaN or infinite, if any."""
        bad = torch.stack(self._losses).isfinite().logical_not().nonzero()
        return int(bad[0]) if len(bad) else None

    def scores(self) -> Scores:
        """Return the means over everything added."""
        losses = torch.stack(self._losses).double().cpu()
        loss = float((losses * torch.tensor(self._sizes)).sum() / sum(self._sizes))
        if not self._judged:
            return Scores(math.nan, math.nan, loss)
        top1, top5 = (100 * torch.stack(self._hits).sum(0).double() / self._judged).tolist()
        return Scores(top1, top5 if self.classes > 5 else math.nan, loss)


def confusion_matrix(predicted: Tensor, actual: Tensor, classes: int) -> Tensor:
    """Return int64 [actual class, predicted class] from labels [N] and [N]."""
    pairs = actual * classes + predicted
    return torch.bincount(pairs.flatten(), minlength=classes * classes).view(classes, classes)

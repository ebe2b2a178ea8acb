"""Classification of samples, or of each pixel of an image (segmentation)."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, ClassVar, Self

import torch
from torch import Tensor, nn
from torch.nn import functional

from ai8xtools.training.catalog.discovery import DatasetEntry
from ai8xtools.training.loop.metrics import Meter, Scores, confusion_matrix
from ai8xtools.training.options import TrainingOptions
from ai8xtools.training.tasks.task import Task, dimensions
from ai8xtools.values.accuracy import Accuracy, Mean, Measured

_MANY = 5
"""With at most this many classes, top-5 accuracy is meaningless."""


class Classification(Task):
    """Cross entropy, accuracies in percent; outputs [N, classes, ...], targets [N, ...]."""

    decimals: ClassVar = {"Top1": 3, "Top5": 3}

    def __init__(self, entry: DatasetEntry, model: nn.Module, options: TrainingOptions) -> None:
        super().__init__(entry, model, options)
        weight = None if entry.weight is None else torch.tensor(entry.weight, dtype=torch.float32)
        self.criterion = nn.CrossEntropyLoss(weight)

    def training_loss(self, outputs: Tensor, targets: Tensor) -> Tensor:
        """Return the loss with --label-smoothing, unless another criterion has taken its place."""
        smoothing = self.options.label_smoothing
        if not smoothing or not isinstance(self.criterion, nn.CrossEntropyLoss):
            return self.loss(outputs, targets)
        weight = self.criterion.weight
        return functional.cross_entropy(outputs, targets, weight, label_smoothing=smoothing)

    def divisor(self, targets: Tensor) -> Tensor:
        """Return the number of labels, weighted by their class."""
        weight = getattr(self.criterion, "weight", None)
        return torch.tensor(float(targets.numel())) if weight is None else weight[targets].sum()

    def meter(self, training: bool) -> Meter:
        """Return a meter of accuracies, with the confusion matrix if requested, and for the user's
        own data."""
        return ClassificationMeter(
            self.classes, not training and (self.is_own or self.options.confusion)
        )

    def rank(self, scores: Scores) -> tuple[float, ...]:
        """Sort by accuracy."""
        return scores.values["Top1"], scores.values.get("Top5", 0.0)

    @property
    def is_judged(self) -> bool:
        """Whether the user's own samples are classified."""
        return self.is_own

    def quality(self, scores: Scores, samples: int) -> Measured:  # noqa: ARG002
        """Return the accuracy."""
        assert scores.confusion is not None
        return Accuracy.of(scores.confusion.tolist(), self.labels)

    def result_lines(self, scores: Scores) -> list[str]:
        """Return the accuracies, and the confusion matrix if requested."""
        lines = super().result_lines(scores)
        if self.options.confusion:
            assert scores.confusion is not None
            rows = scores.confusion.tolist()
            width = len(str(max(map(max, rows))))
            text = "\n ".join("[" + " ".join(f"{n:{width}}" for n in row) + "]" for row in rows)
            lines.append(f"==> Confusion:\n[{text}]")
        return lines

    def check(self, outputs: Any, target: Any) -> str | None:
        """Compare the outputs with the classes and the label."""
        if not isinstance(outputs, Tensor):
            return "the network returns several tensors, as detectors do"
        target = torch.as_tensor(target)
        expected = (1, self.classes, *target.shape)
        if tuple(outputs.shape) != expected:
            return (
                f"it returns {dimensions(outputs)}, but {self.classes} classes with labels of "
                f"shape {list(target.shape)} need {'x'.join(map(str, expected))}"
            )
        low, high = int(target.min()), int(target.max())
        if low < 0 or high >= self.classes:
            return f"a label is {low if low < 0 else high}; they are 0 to {self.classes - 1}"
        return None

    def fault_of_targets(self, targets: Tensor) -> str | None:
        """Return an error for a label without a class, or for targets of another type."""
        if targets.dtype != torch.int64:
            return f"targets of {self.options.dataset} are {targets.dtype}, not torch.int64"
        for label in (int(targets.min()), int(targets.max())):
            if not 0 <= label < self.classes:
                return (
                    f"a label is {label}, but `output` of {self.options.dataset} names "
                    f"{self.classes} classes: labels are 0 to {self.classes - 1}"
                )
        return None


class Segmentation(Classification):
    """Classification of pixels, which also measures how well regions overlap (IoU, percent)."""

    def meter(self, training: bool) -> Meter:
        """Return a meter of accuracies, in a validation or test with overlaps."""
        if training:
            return ClassificationMeter(self.classes, matrix=False)
        return SegmentationMeter(self.labels)

    def quality(self, scores: Scores, samples: int) -> Measured:
        """Return the mean overlap."""
        assert scores.confusion is not None
        return mean_overlap(scores.confusion, samples)

    def result_lines(self, scores: Scores) -> list[str]:
        """Return accuracies, confusion matrix if requested, and the overlap of each class."""
        each = scores.by_class["IoU"].items()
        parts = [f"{label}: {share:.3f}" for label, share in each if share is not None]
        mean = f"==> mIoU: {scores.values['mIoU']:.3f}"
        return [*super().result_lines(scores), "    ".join([mean, *parts])]


class ClassificationMeter(Meter):
    """Counts top-1 and top-5 hits; of [N, classes, ...] each position counts."""

    def __init__(self, classes: int, matrix: bool) -> None:
        self._classes = classes
        self._with_matrix = matrix
        self._judged = 0
        self._hits: Tensor | None = None
        self._matrix: Tensor | None = None

    @torch.no_grad()
    def add(self, outputs: Tensor, targets: Tensor) -> None:
        """Evaluate a batch."""
        first = outputs.topk(min(_MANY, self._classes), dim=1).indices
        best = first == targets.unsqueeze(1)
        self._hits = _sum(self._hits, torch.stack([best[:, 0].sum(), best.sum()]))
        self._judged += targets.numel()
        if self._with_matrix:
            matrix = confusion_matrix(first[:, 0], targets, self._classes)
            self._matrix = _sum(self._matrix, matrix)

    def merge(self, other: Self) -> None:
        """Add the counts of another meter."""
        self._judged += other._judged
        self._hits = _sum(self._hits, other._hits)
        self._matrix = _sum(self._matrix, other._matrix)

    def values(self, final: bool) -> dict[str, float]:  # noqa: ARG002 - the interface of meters
        """Return accuracies in percent; top-5 only when there are more than five classes."""
        if self._hits is None:
            return {}
        top1, top5 = (100 * self._hits.double() / self._judged).tolist()
        return {"Top1": top1} | ({"Top5": top5} if self._classes > _MANY else {})

    def confusion(self) -> Tensor | None:
        """Return the confusion matrix if it is collected."""
        return None if self._matrix is None else self._matrix.cpu()


class SegmentationMeter(ClassificationMeter):
    """Measures overlaps (intersection over union) too."""

    def __init__(self, labels: Sequence[str]) -> None:
        super().__init__(len(labels), matrix=True)
        self._labels = labels

    def values(self, final: bool) -> dict[str, float]:
        """Return accuracies, and the mean overlap of the classes that occur, in percent."""
        if self._matrix is None or not final:
            return super().values(final)
        return {**super().values(final), "mIoU": 100 * _mean(self._matrix)}

    def by_class(self) -> dict[str, dict[str, float | None]]:
        """Return the overlap of each class in percent."""
        if self._matrix is None:
            return {}
        return {"IoU": dict(zip(self._labels, overlaps(self._matrix), strict=True))}


def overlaps(matrix: Tensor) -> list[float | None]:
    """Return intersection over union of each class in percent; None for one that never occurs.

    `matrix` is a confusion matrix [actual, predicted].
    """
    hits = matrix.diagonal()
    unions = matrix.sum(0) + matrix.sum(1) - hits
    pairs = zip(hits.tolist(), unions.tolist(), strict=True)
    return [100 * hit / union if union else None for hit, union in pairs]


def mean_overlap(matrix: Tensor, pictures: int) -> Mean:
    """Return the mean overlap of the classes that occur, of the pixels of so many pictures."""
    actual, predicted = matrix.double().sum(1), matrix.double().sum(0)
    chance = torch.outer(actual, predicted) / actual.sum().clamp(min=1)
    return Mean("mIoU", _mean(matrix), pictures, _mean(chance))


def _mean(matrix: Tensor) -> float:
    present = [share / 100 for share in overlaps(matrix) if share is not None]
    return sum(present) / len(present)


def _sum(a: Tensor | None, b: Tensor | None) -> Tensor | None:
    """Return the sum of the values that are not None."""
    if a is None or b is None:
        return b if a is None else a
    return a + b

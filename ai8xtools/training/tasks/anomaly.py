"""Anomaly detection: networks that return what they do not expect of a sample."""

from __future__ import annotations

from typing import Any, ClassVar

import torch
from torch import Tensor, nn

from ai8xtools.training.catalog.discovery import DatasetEntry
from ai8xtools.training.loop.metrics import Meter, SampleMeter, Scores
from ai8xtools.training.options import TrainingOptions
from ai8xtools.training.tasks.task import Task, dimensions
from ai8xtools.values.separation import Separation, separation_of, threshold_of
from datasets.own.record import ACCURACY

_AREA = "AUC"
_MEAN, _LIMIT = "Residual", "Threshold"


class Anomaly(Task):
    """The mean square of the outputs, which are small for samples like those of training.

    A sample's score is their sum of squares; `threshold` is what hardly any of training exceeds.
    """

    decimals: ClassVar = {_MEAN: 6, _AREA: 3}
    threshold = 0.0

    def __init__(self, entry: DatasetEntry, model: nn.Module, options: TrainingOptions) -> None:
        super().__init__(entry, model, options)
        self.criterion = nn.Identity()

    def loss(self, outputs: Tensor, targets: Tensor) -> Tensor:  # noqa: ARG002 - there are none
        """Return the mean square."""
        return outputs.square().mean()

    def meter(self, training: bool) -> Meter:  # noqa: ARG002
        """Return a meter of scores."""
        return ScoreMeter(self.threshold)

    def rank(self, scores: Scores) -> tuple[float, ...]:
        """Sort by the mean square of normal samples."""
        return (-scores.values[_MEAN],)

    @property
    def is_judged(self) -> bool:
        """The user's own samples are."""
        return True

    def quality(self, scores: Scores, samples: int) -> Separation:  # noqa: ARG002
        """Return how well anomalies are distinguished from others."""
        return separation_of({name.lower(): value for name, value in scores.values.items()})

    def learn_threshold(self, scores: Scores) -> None:
        """Take the threshold from a pass over samples of training."""
        self.threshold = scores.values[_LIMIT]

    def restore(self, extras: dict[str, Any], path: str) -> bool:  # noqa: ARG002
        """Take the threshold that a run noted in the end."""
        self.threshold = float((extras.get(ACCURACY) or {}).get("threshold", 0.0))
        return True

    def check(self, outputs: Any, target: Any) -> str | None:  # noqa: ARG002
        """Refuse several tensors, and single numbers."""
        if not isinstance(outputs, Tensor):
            return "the network returns several tensors, as detectors do"
        if outputs.flatten(1).shape[1] < 2:
            return f"it returns {dimensions(outputs)}, not a difference for each number of a sample"
        return None


class ScoreMeter(SampleMeter):
    """Collects the score and the label of each sample: 0 for normal ones, 1 for anomalies."""

    def __init__(self, threshold: float) -> None:
        super().__init__()
        self._threshold = threshold
        self._numbers = 1

    @torch.no_grad()
    def add(self, outputs: Tensor, targets: Tensor) -> None:
        """Evaluate a batch."""
        squares = outputs.flatten(1).double().square()
        self._numbers = squares.shape[1]
        self._parts.append(torch.stack([squares.sum(1), targets.double()]))

    def values(self, final: bool) -> dict[str, float]:
        """Return the mean square of normal samples; in the end, the threshold that follows from
        their scores and, if there are both kinds, all that `Separation` says."""
        if not self._parts:
            return {}
        scores, labels = torch.cat(self._parts, 1).tolist()
        is_anomaly = [label > 0 for label in labels]
        normal = [score for score, odd in zip(scores, is_anomaly, strict=True) if not odd]
        metrics = {_MEAN: sum(normal) / max(1, len(normal)) / self._numbers}
        if final and normal:
            metrics[_LIMIT] = threshold_of(normal)
        if final and 0 < len(normal) < len(scores):
            result = Separation.of(scores, is_anomaly, self._threshold)
            metrics |= {
                _AREA: result.auc, "Count": result.count, "Anomalies": result.anomalies,
                "Found": result.found, "Alarms": result.alarms, _LIMIT: result.threshold,
            }  # fmt: skip
        return metrics

"""Detection of objects in boxes."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import asdict
from typing import Any, ClassVar

import torch
from torch import Tensor, nn

from ai8xtools.diagnostics.errors import InputError
from ai8xtools.training.catalog.discovery import DatasetEntry
from ai8xtools.training.loop.metrics import Meter, Scores
from ai8xtools.training.losses.multibox import (
    MultiBoxLoss,
    Objects,
    Parameters,
    detect,
    read_parameters,
)
from ai8xtools.training.network.output_order import output_order
from ai8xtools.training.options import TrainingOptions
from ai8xtools.training.tasks.task import Task, dimensions
from ai8xtools.values.accuracy import Mean, Measured
from datasets.errors import library
from datasets.own.record import DETECTOR, KEY
from datasets.torchvision_access import torchvision

Outputs = tuple[Tensor, Tensor]
"""Locations [N, priors, 4] and scores [N, priors, classes + 1]; class 0 is the background."""


class Detection(Task):
    """Multi-box loss, mean average precision at an overlap of one half; targets are `Objects`."""

    decimals: ClassVar = {"mAP": 5}

    def __init__(self, entry: DatasetEntry, model: nn.Module, options: TrainingOptions) -> None:
        super().__init__(entry, model, options)
        if options.obj_detection_params is None:
            raise InputError("E604", "there are no parameters", "--obj-detection-params")
        self.parameters = read_parameters(options.obj_detection_params)
        self._priors = getattr(model, "priors_cxcy", None)
        if not isinstance(self._priors, Tensor):
            raise InputError(
                "E631",
                f"{options.arch} has no prior boxes (priors_cxcy): it is not a detector",
                "--model",
                "Choose a detector, or leave out --obj-detection.",
            )
        loss = self.parameters
        self.criterion = MultiBoxLoss(self._priors, loss.alpha, loss.neg_pos_ratio)

    def place(self, targets: Any, device: torch.device) -> Objects:
        """Collect the boxes and labels of a batch on the device."""
        return Objects.of(targets).to(device)

    def prepare(self, outputs: Outputs) -> Outputs:
        """Bring integers of the simulation to the range of training."""
        if not self.options.act_mode_8bit:
            return outputs
        locations, scores = (
            part / divisor for part, divisor in zip(outputs, self._divisors(), strict=True)
        )
        return locations, scores

    def _divisors(self) -> list[int]:
        """Return by how much integers of locations and scores exceed those of training."""
        flags = (
            getattr(self.model, name, False) for name in ("are_locations_wide", "are_scores_wide")
        )
        wide = (flag() if callable(flag) else flag for flag in flags)
        return [128 * 128 if much else 128 for much in wide]

    def noted(self, record: Mapping[str, Any], example: Tensor) -> Mapping[str, Any]:
        """Add how objects are found in the outputs."""
        order = output_order(self.model, example.unsqueeze(0))
        if KEY not in record or order is None:
            return record
        assert self._priors is not None
        detector = {
            "outputs": list(order.layers), "order": order.order.int(), "priors": self._priors.cpu(),
            "divisors": self._divisors(), "parameters": asdict(self.parameters),
        }  # fmt: skip
        return {**record, KEY: {**record[KEY], DETECTOR: detector}}

    @property
    def is_judged(self) -> bool:
        """Whether the objects are on the user's own pictures."""
        return self.is_own

    def quality(self, scores: Scores, samples: int) -> Measured:
        """Return the precision."""
        return Mean("mAP", scores.values["mAP"], samples, 0.0)

    def divisor(self, targets: Objects) -> Tensor:
        """Return the number of prior boxes that should find an object."""
        assert isinstance(self.criterion, MultiBoxLoss)
        return (self.criterion.match(targets)[1] > 0).sum().float()

    def meter(self, training: bool) -> Meter:
        """Return a meter of precision; training batches are not evaluated."""
        assert isinstance(self.criterion, MultiBoxLoss)
        priors = None if training else self.criterion.priors
        return DetectionMeter(priors, self.parameters, self.labels)

    def rank(self, scores: Scores) -> tuple[float, ...]:
        """Sort by precision, then by loss."""
        return scores.values["mAP"], -scores.loss

    def best_text(self, scores: Scores) -> str:
        """Return precision and loss."""
        return f"{super().best_text(scores)}   vloss: {scores.loss:.3f}"

    def extras(self, current: Scores, best: Scores) -> dict[str, Any]:
        """Return the precisions."""
        values = {"current_mAP": current.values["mAP"], "best_mAP": best.values["mAP"]}
        return {"current_top1": 0, "best_top1": 0, **values}

    def check(self, outputs: Any, target: Any) -> str | None:
        """Compare the outputs with prior boxes and classes, and the target with its ranges."""
        assert self._priors is not None
        if not (isinstance(outputs, Sequence) and len(outputs) == 2):
            return "a detector returns locations and scores"
        priors = len(self._priors)
        for part, last in zip(outputs, (4, self.classes + 1), strict=True):
            if tuple(part.shape) != (1, priors, last):
                return f"it returns {dimensions(part)}, expected is 1x{priors}x{last}"
        boxes, labels = target[0], target[-1]
        if len(labels) and not 1 <= int(labels.min()) <= int(labels.max()) <= self.classes:
            return f"labels are {labels.tolist()}; they are 1 to {self.classes}"
        if len(boxes) and not 0 <= float(boxes.min()) <= float(boxes.max()) <= 1:
            return f"boxes reach from {float(boxes.min())} to {float(boxes.max())}, not from 0 to 1"
        return None


class DetectionMeter(Meter):
    """Mean average precision; `priors` None evaluates nothing."""

    def __init__(
        self, priors: Tensor | None, parameters: Parameters, labels: Sequence[str]
    ) -> None:
        self._priors = priors
        self._parameters = parameters
        self._labels = labels
        self._precision: Any = None

    def add(self, outputs: Outputs, targets: Objects) -> None:
        """Evaluate a batch."""
        if self._priors is None:
            return
        if self._precision is None:
            self._precision = _precision()
        predictions = [
            {"boxes": b[k > 0].cpu(), "labels": k[k > 0].cpu(), "scores": s[k > 0].cpu()}
            for b, k, s in detect(outputs, self._priors, self._parameters)
        ]
        actual = [{"boxes": boxes.cpu(), "labels": labels.cpu()} for boxes, labels in targets]
        self._precision.update(predictions, actual)

    def values(self, final: bool) -> dict[str, float]:
        """Return the precision at the end of a pass: it takes a while to compute."""
        if self._precision is None or not final:
            return {}
        return {"mAP": max(0.0, float(self._precision.compute()["map"]))}

    def by_class(self) -> dict[str, dict[str, float | None]]:
        """Return the precision of each class."""
        if self._precision is None:
            return {}
        result = self._precision.compute()
        pairs = zip(
            result["classes"].reshape(-1).tolist(), result["map_per_class"].reshape(-1).tolist(),
            strict=True,
        )  # fmt: skip
        precisions = {label: value for label, value in pairs if value >= 0}
        return {"mAP": {name: precisions.get(i) for i, name in enumerate(self._labels, 1)}}


def _precision() -> Any:
    """Return torchmetrics' measure, which is imported only for detection."""
    torchvision()  # torchmetrics imports it, which may need some preparation
    for name in ("pycocotools", "torchmetrics.detection"):
        module = library(name, "measures the precision of detectors", "--obj-detection",
                         "torchmetrics pycocotools")  # fmt: skip
    return module.MeanAveragePrecision(iou_thresholds=[0.5], class_metrics=True)

"""Regression: networks whose outputs are numbers, not classes."""

from __future__ import annotations

import math
from dataclasses import astuple, fields
from typing import Any, ClassVar, Self

import torch
from torch import Tensor, nn

import ai8x
from ai8xtools.diagnostics.errors import InputError
from ai8xtools.training.catalog.discovery import DatasetEntry
from ai8xtools.training.loop.metrics import Meter, SampleMeter, Scores
from ai8xtools.training.options import TrainingOptions
from ai8xtools.training.tasks.task import Task, dimensions
from ai8xtools.values.error import Error, error_of
from datasets.own.record import WIDE

_FIELDS = ("RMSE", *(field.name for field in fields(Error)[1:]))


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


class Measurements(Regression):
    """The same for the user's own numbers: outputs and errors are in their units.

    `target` are the mean of the numbers, and their deviation, in training.
    """

    decimals: ClassVar = {"RMSE": 5}

    def __init__(self, entry: DatasetEntry, model: nn.Module, options: TrainingOptions) -> None:
        super().__init__(entry, model, options)
        self.mean, self.deviation = entry.own.preparation.target
        if ai8x.has_thresholds(model):
            raise InputError(
                "E638", "numbers from your own data need the first generation of QAT",
                "--regression", "Leave out --qat-version 2, and policies of that generation.",
            )  # fmt: skip

    def place(self, targets: Any, device: torch.device) -> Any:
        """Move the targets to the device."""
        return targets.to(device, dtype=torch.float32, non_blocking=True)

    def prepare(self, outputs: Any) -> Any:
        """Return outputs in the units of the targets.

        Results of a wide layer have the scale of its weights, since they are not shifted.
        """
        _, layer = self._wide()
        whole = self.options.act_mode_8bit
        one: Tensor | float = 128.0 if whole else 1.0
        if layer is not None and whole:
            one = math.ldexp(one, int(layer.weight_bits) - 1 - int(layer.output_shift))
        elif layer is not None:
            one = layer.scales()[0]
        return outputs / one * self.deviation + self.mean

    def _wide(self) -> tuple[str, Any]:
        """Return the last layer with wide results, and its name; "" and None without one."""
        layers = [
            (name, module) for name, module in self.model.named_modules()
            if getattr(module, "wide", False)
        ]  # fmt: skip
        return layers[-1] if layers else ("", None)

    def loss(self, outputs: Tensor, targets: Tensor) -> Tensor:
        """Return the mean squared error in parts of the variance."""
        return super().loss(outputs / self.deviation, targets / self.deviation)

    def meter(self, _training: bool) -> Meter:
        """Return a meter of errors."""
        return Errors(self.mean)

    def rank(self, scores: Scores) -> tuple[float, ...]:
        """Sort by error."""
        return (-scores.values["RMSE"],)

    @property
    def is_judged(self) -> bool:
        """The user's own numbers are."""
        return True

    def quality(self, scores: Scores, samples: int) -> Error:  # noqa: ARG002
        """Return the error, beside that of the mean."""
        return error_of({name.lower(): scores.values[name] for name in _FIELDS})

    def extras(self, current: Scores, best: Scores) -> dict[str, Any]:
        """Return the error, and the name of the layer whose results have a scale."""
        return super().extras(current, best) | {WIDE: self._wide()[0]}


class Errors(SampleMeter):
    """Collects by how much numbers are off; `mean` is that of training."""

    def __init__(self, mean: float) -> None:
        super().__init__()
        self._mean = mean

    @torch.no_grad()
    def add(self, outputs: Tensor, targets: Tensor) -> None:
        """Evaluate a batch."""
        expected = targets.double()
        pair = outputs.view_as(targets).double() - expected, expected - self._mean
        self._parts.append(torch.stack([part.flatten() for part in pair]))

    def values(self, final: bool) -> dict[str, float]:
        """Return the error; in the end, all that `Error` says."""
        if not self._parts:
            return {}
        errors, deviations = torch.cat(self._parts, 1).tolist()
        metrics = astuple(Error.of(errors, deviations))
        return dict(zip(_FIELDS, metrics, strict=True) if final else [("RMSE", metrics[0])])


class SquaredErrors(Meter):
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

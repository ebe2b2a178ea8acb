"""The measurements of a pass over the data: losses, and quality by the meter of a task."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any, Self

import torch
from torch import Tensor

OVERALL = "Overall Loss"
"""The loss that is minimized."""
OBJECTIVE = "Objective Loss"
"""The loss of the labels alone; it differs from the overall one in distillation."""


@dataclass(frozen=True, slots=True)
class Scores:
    """Means over a set of samples.

    `losses` and `values` have the titles of the log as keys ("Overall Loss", "Top1", ...); what was
    not measured is absent. `by_class` holds results of single classes as {title: {label: value}},
    None for a class that never occurs; `confusion` is the matrix [actual, predicted] if collected.
    """

    losses: Mapping[str, float]
    values: Mapping[str, float]
    by_class: Mapping[str, Mapping[str, float | None]] = field(default_factory=dict)
    confusion: Tensor | None = None

    @property
    def loss(self) -> float:
        """The loss that is minimized."""
        return self.losses[OVERALL]

    def as_dict(self) -> dict[str, Any]:
        """Return everything for a JSON file, with names in lower case."""
        others = {_key(name): round(v, 6) for name, v in self.losses.items() if name != OVERALL}
        values = {_key(name): round(value, 6) for name, value in self.values.items()}
        classes = {f"{_key(name)}_by_class": numbers for name, numbers in self.by_class.items()}
        return {**values, "loss": round(self.loss, 6), **others, **classes}


def _key(title: str) -> str:
    return title.lower().replace(" ", "_")


class Meter:
    """Evaluates the outputs of batches; sums stay on the device until results are asked for.

    This one measures nothing; meters override what they measure.
    """

    def add(self, outputs: Any, targets: Any) -> None:
        """Evaluate a batch."""

    def merge(self, other: Self) -> None:
        """Add the counts of another meter of this kind."""

    def values(self, final: bool) -> dict[str, float]:  # noqa: ARG002 - of those that override it
        """Return numbers by their titles in logs, those that are there before the end or all."""
        return {}

    def by_class(self) -> dict[str, dict[str, float | None]]:
        """Return results of single classes, for the end of a pass."""
        return {}

    def confusion(self) -> Tensor | None:
        """Return the confusion matrix [actual, predicted] on the CPU if it is collected."""
        return None


class SampleMeter(Meter):
    """Collects numbers of each sample [numbers, N]."""

    def __init__(self) -> None:
        self._parts: list[Tensor] = []

    def merge(self, other: Self) -> None:
        """Add the numbers of another meter."""
        self._parts += other._parts


class Tally:
    """Losses of batches beside a meter."""

    def __init__(self, meter: Meter) -> None:
        self.meter = meter
        self._losses: dict[str, list[Tensor]] = {}
        self._sizes: list[int] = []
        self._gradients: list[Tensor] = []

    def add_losses(self, losses: Mapping[str, Tensor], samples: int) -> None:
        """Add the mean losses (scalar tensors) of a batch of `samples`."""
        for name, loss in losses.items():
            self._losses.setdefault(name, []).append(loss.detach())
        self._sizes.append(samples)

    def add_gradient(self, norm: Tensor) -> None:
        """Add the norm of the gradient of the last batch (scalar)."""
        self._gradients.append(norm)

    def merge(self, other: Tally) -> None:
        """Add everything another tally has seen but gradients."""
        for name, losses in other._losses.items():
            self._losses.setdefault(name, []).extend(losses)
        self._sizes += other._sizes
        self.meter.merge(other.meter)

    @property
    def batches(self) -> int:
        """How many batches were added."""
        return len(self._sizes)

    def first_not_finite(self) -> tuple[int, str] | None:
        """Return the first batch whose loss or gradient is NaN or infinite: its index, which one.

        None stands for no such batch.
        """
        pairs = torch.stack(
            [torch.stack(self._losses[OVERALL]).float(), torch.stack(self._gradients).float()], 1
        )
        bad = pairs.isfinite().logical_not().nonzero().tolist()
        return (bad[0][0], ("loss", "gradient")[bad[0][1]]) if bad else None

    def scores(self, final: bool = False) -> Scores:
        """Return the means over everything added; at the end of a pass also by class."""
        sizes = torch.tensor(self._sizes, dtype=torch.float64)
        losses = {}
        for name, values in self._losses.items():  # a loss that began later has fewer values
            weights = sizes[-len(values) :]
            mean = (torch.stack(values).double().cpu() * weights).sum() / weights.sum()
            losses[name] = float(mean)
        if not final:
            return Scores(losses, self.meter.values(final=False))
        meter = self.meter
        return Scores(losses, meter.values(final=True), meter.by_class(), meter.confusion())


def confusion_matrix(predicted: Tensor, actual: Tensor, classes: int) -> Tensor:
    """Return int64 [actual class, predicted class] from labels of any shape."""
    pairs = actual * classes + predicted
    return torch.bincount(pairs.flatten(), minlength=classes * classes).view(classes, classes)

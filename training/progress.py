"""What a run has done so far, kept in its checkpoints so that it can go on as if never ended."""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any, TypeGuard

from training.metrics import Scores

KEY = "run"
"""The entry of a checkpoint's `extras`."""


@dataclass(frozen=True, slots=True)
class Epoch:
    """How an epoch ended: scores of the validation, weights other than 0, lines of metrics.json."""

    number: int
    qat: bool
    scores: Scores
    parameters: int
    metrics: Mapping[str, Any]

    def as_dict(self) -> dict[str, Any]:
        """Return plain values for a checkpoint; what was measured to the last digit."""
        return {
            "epoch": self.number,
            "qat": self.qat,
            "losses": dict(self.scores.losses),
            "values": dict(self.scores.values),
            "parameters": self.parameters,
            "metrics": {key: value for key, value in self.metrics.items() if key != "seconds"},
        }


@dataclass(frozen=True, slots=True)
class Progress:
    """The seed of all random numbers of a run, and its epochs in their order."""

    seed: int
    epochs: list[Epoch] = field(default_factory=list)

    def as_dict(self) -> dict[str, Any]:
        """Return plain values for a checkpoint."""
        return {"seed": self.seed, "epochs": [epoch.as_dict() for epoch in self.epochs]}


def progress_of(extras: Mapping[str, Any], done: int) -> Progress | None:
    """Return the progress that a checkpoint's extras hold of its first `done` epochs.

    None stands for files of other tools, and for entries that have another form.
    """
    found = extras.get(KEY)
    if not isinstance(found, dict) or not _natural(found.get("seed")):
        return None
    entries = found.get("epochs")
    if not isinstance(entries, list) or len(entries) != done:
        return None
    epochs = [_epoch(number, entry) for number, entry in enumerate(entries)]
    complete = [epoch for epoch in epochs if epoch is not None]
    return Progress(found["seed"], complete) if len(complete) == done else None


def _epoch(number: int, entry: Any) -> Epoch | None:
    """Return an epoch from plain values, or None if they are no such thing."""
    if not isinstance(entry, dict) or entry.get("epoch") != number:
        return None
    losses, values, metrics = entry.get("losses"), entry.get("values"), entry.get("metrics")
    qat, parameters = entry.get("qat"), entry.get("parameters")
    if not (_numbers(losses) and losses and _numbers(values) and isinstance(metrics, dict)):
        return None
    if not isinstance(qat, bool) or not _natural(parameters):
        return None
    return Epoch(number, qat, Scores(losses, values), parameters, metrics)


def _natural(value: Any) -> TypeGuard[int]:
    return type(value) is int and value >= 0


def _numbers(value: Any) -> TypeGuard[dict[str, float]]:
    return isinstance(value, dict) and all(
        type(item) in (int, float) and math.isfinite(item) for item in value.values()
    )

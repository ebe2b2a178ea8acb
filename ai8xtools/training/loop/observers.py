"""Observers of training and evaluation, for displays and exports."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Literal

from torch import Tensor, nn

from ai8xtools.training.catalog.discovery import DatasetEntry
from ai8xtools.training.loop.metrics import Scores
from ai8xtools.training.options import TrainingOptions
from ai8xtools.training.saving.logs import Log
from ai8xtools.training.tasks.task import Task

Phase = Literal["training", "validation", "test"]


@dataclass(frozen=True, slots=True)
class Context:
    """The arguments for creating an observer."""

    options: TrainingOptions
    dataset: DatasetEntry
    task: Task
    log: Log


@dataclass(frozen=True, slots=True)
class Seen:
    """A batch after its pass through the network.

    `epoch` is None in the test; `step` counts from 1 to `steps`. `outputs` and `targets` are what
    the loss received: unfolded, scaled, on the device, outputs perhaps with gradients.
    """

    phase: Phase
    epoch: int | None
    step: int
    steps: int
    inputs: Tensor
    outputs: Any
    targets: Any
    model: nn.Module


class Observer:
    """Base class whose methods do nothing; an observer overrides those that it needs.

    It is called in every step: what it keeps should stay on the device until `finished`.
    """

    def seen(self, batch: Seen) -> None:
        """Receive a batch, before the step of the optimizer in training."""

    def finished(self, phase: Phase, epoch: int | None, scores: Scores, model: nn.Module) -> None:
        """Receive the scores of a pass."""

    def ended(self, metrics: Mapping[str, Any]) -> None:
        """Receive all that metrics.json holds, when a training or an evaluation is complete."""

    def close(self) -> None:
        """End the observation; called once when the run ends, also by an error."""


Observers = Sequence[Observer]

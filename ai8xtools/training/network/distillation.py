"""Knowledge distillation: learning from the outputs of a trained network.

Source: docs/training.md, "Knowledge distillation".
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

import torch
from torch import Tensor, nn
from torch.nn import functional

from ai8xtools.training.loop.metrics import OBJECTIVE, OVERALL

DISTILLED = "Distill Loss"
"""The distance of the outputs from the teacher's, before its weight and temperature apply."""


@dataclass(frozen=True, slots=True)
class Distillation:
    """A teacher and how much it counts.

    The overall loss is `student_weight` times that of the labels plus `distill_weight` times the
    distance from the teacher: with `relations` the mean squared difference of the outputs, else
    T² times the Kullback-Leibler divergence of the softened probabilities at `temperature` T.
    `input_range` divides inputs of the student to get those of the teacher (128 for integers).
    """

    teacher: nn.Module
    student_weight: float
    distill_weight: float
    temperature: float
    relations: bool
    start_epoch: int
    input_range: int = 1

    def applies(self, epoch: int | None) -> bool:
        """Return whether the teacher counts in training `epoch`, or in an evaluation (None)."""
        return self.relations if epoch is None else epoch >= self.start_epoch

    def losses(self, loss: Tensor, x: Tensor, outputs: Any) -> Mapping[str, Tensor]:
        """Return the losses of a batch from the loss of the labels, the inputs and the outputs."""
        with torch.no_grad():
            taught = self.teacher(x if self.input_range == 1 else x / self.input_range)
        if self.relations:
            distance = functional.mse_loss(outputs, taught.view_as(outputs))
            scale = self.distill_weight
        else:
            distance = divergence(outputs, taught, self.temperature)
            scale = self.distill_weight * self.temperature**2
        overall = self.student_weight * loss + scale * distance
        return {OVERALL: overall, OBJECTIVE: loss, DISTILLED: distance}


def divergence(student: Tensor, teacher: Tensor, temperature: float) -> Tensor:
    """Return KL(teacher ‖ student) of outputs [N, classes, ...], the mean over all positions."""
    log_student = functional.log_softmax(student / temperature, dim=1)
    log_teacher = functional.log_softmax(teacher / temperature, dim=1)
    total = functional.kl_div(log_student, log_teacher, reduction="sum", log_target=True)
    return total * student.shape[1] / student.numel()


class NoLoss(nn.Module):
    """Replaces the criterion when labels are ignored: always 0, with zero gradient."""

    def forward(self, outputs: Tensor, _targets: Any) -> Tensor:
        """Return 0."""
        return 0 * outputs.sum()


def output_length(model: nn.Module, x: Tensor) -> int | None:
    """Return how many numbers a network gives for a sample; None if not in a single tensor."""
    training = model.training
    with torch.no_grad():
        outputs = model.eval()(x[None])
    model.train(training)
    return outputs.numel() if isinstance(outputs, Tensor) else None

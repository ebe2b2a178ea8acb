"""Outputs of networks as numbers for each class."""

from __future__ import annotations

from typing import Any

from torch import Tensor

from ai8xtools.training.tasks.classification import Classification
from ai8xtools.training.tasks.task import Task


def class_scores(task: Task, outputs: Tensor) -> Tensor:
    """Return a score for each class, [N, classes, ...], from the prepared outputs of a network.

    The embeddings of --dr are scored by the centres they are near to; other tasks than
    classification have a number for each output instead.
    """
    if task.options.dr is None:
        return outputs
    criterion: Any = task.criterion
    scores: Tensor = criterion.logits(outputs)
    return scores


def probabilities(task: Task, outputs: Tensor) -> Tensor:
    """Return `class_scores`, for classes as probabilities that add up to 1."""
    scores = class_scores(task, outputs)
    return scores.softmax(1) if isinstance(task, Classification) else scores

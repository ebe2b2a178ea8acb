"""Which displays need which kind of task."""

from __future__ import annotations

from ai8xtools.diagnostics.errors import InputError
from ai8xtools.training.options import TrainingOptions
from ai8xtools.training.tasks.classification import Classification, Segmentation
from ai8xtools.training.tasks.task import Task


def check(task: Task, options: TrainingOptions) -> None:
    """Raise InputError for a display that the task does not support."""
    if options.pr_curves and not isinstance(task, Classification):
        raise InputError(
            "E638", "precision and recall are measured for classes only", "--pr-curves",
            "Leave out the option.",
        )  # fmt: skip
    if options.embedding and not _has_labelled_samples(task):
        raise InputError(
            "E638", "only samples with one class each are shown as points", "--embedding",
            "Leave out the option.",
        )  # fmt: skip
    if options.save_csv is not None and isinstance(task, Segmentation):
        raise InputError(
            "E638", "a table has one line per sample, not one per pixel", "--save-csv",
            "Leave out the option.",
        )  # fmt: skip


def _has_labelled_samples(task: Task) -> bool:
    return isinstance(task, Classification) and not isinstance(task, Segmentation)

"""Which task a data set and the options mean."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import torch
from torch import Tensor, nn

from ai8xtools.diagnostics.errors import InputError
from ai8xtools.training.catalog.discovery import DatasetEntry
from ai8xtools.training.catalog.own_code import complains_itself, failure, first_line, place_of
from ai8xtools.training.network.distillation import Distillation
from ai8xtools.training.network.exits import refused
from ai8xtools.training.options import TrainingOptions
from ai8xtools.training.tasks.anomaly import Anomaly
from ai8xtools.training.tasks.classification import Classification, Segmentation
from ai8xtools.training.tasks.early_exit import EarlyExit
from ai8xtools.training.tasks.regression import Measurements, Regression
from ai8xtools.training.tasks.task import Task, dimensions
from datasets.own.settings import ANOMALY

Item = tuple[Tensor, Any]
"""A sample: input and target."""
_UNFIT = (RuntimeError, ValueError, TypeError, IndexError, AssertionError)
"""Exceptions of layers for tensors that they cannot process."""


def is_regression(entry: DatasetEntry, options: TrainingOptions) -> bool:
    """Return whether the task is regression: by option, by data set, or for lack of classes."""
    by_data = entry.regression or len(entry.output) == 1
    return options.regression or (by_data and not options.obj_detection)


def task_of(entry: DatasetEntry, options: TrainingOptions, item: Item) -> type[Task]:
    """Return the task of a data set, of which `item` is a sample.

    Raises InputError when the sample does not fit the task.
    """
    if is_boxes(item[1]) != options.obj_detection:
        if options.obj_detection:
            raise InputError(
                "E631", f"{entry.name} has no boxes: its targets are {_kind(item[1])}",
                "--obj-detection", "Leave out the option, or choose a data set of objects.",
            )  # fmt: skip
        raise InputError(
            "E631", f"{entry.name} holds objects in boxes", "--dataset",
            "Add --obj-detection and --obj-detection-params, or choose another data set.",
        )  # fmt: skip
    if options.obj_detection:
        from ai8xtools.training.tasks.detection import Detection

        return Detection
    if entry.own is not None and entry.own.settings.task == ANOMALY:
        return Anomaly
    if options.exit is not None and is_regression(entry, options):
        raise refused(f"{entry.name} has no classes", "Leave out the option.")
    if is_regression(entry, options):
        return Regression if entry.own is None else Measurements
    target = torch.as_tensor(item[1])
    if options.dr is not None:
        from ai8xtools.training.tasks.embedding import Embedding

        return Embedding
    if target.is_floating_point():
        raise InputError(
            "E631", f"the targets of {entry.name} are {_kind(target)}, not class numbers",
            "--dataset", "Add --regression, or choose another data set.",
        )  # fmt: skip
    if options.exit is not None and target.ndim == 0:
        return EarlyExit
    if options.exit is not None:
        why = f"{entry.name} has no single class for each sample"
        raise refused(why, "Leave out the option.")
    return Segmentation if target.ndim > 1 else Classification


def is_boxes(target: Any) -> bool:
    """Return whether the target of a sample is (boxes [n, 4], ..., labels [n])."""
    return (
        isinstance(target, Sequence)
        and len(target) > 1
        and all(isinstance(part, Tensor) for part in target)
        and target[0].ndim == 2
    )


def _kind(target: Any) -> str:
    """Return the kind of a target, for messages."""
    tensor = torch.as_tensor(target)
    kind = "fractions" if tensor.is_floating_point() else "whole numbers"
    return f"{kind} of shape {dimensions(tensor)}"


def check_fit(task: Task, model: nn.Module, item: Item, options: TrainingOptions) -> None:
    """Run the model on a sample; InputError when its input, output or target does not fit."""
    inputs, target = item
    model.eval()
    try:
        with torch.no_grad():
            outputs = task.prepare(model(inputs.unsqueeze(0)))
    except Exception as exc:
        if complains_itself(exc):
            raise
        if not isinstance(exc, _UNFIT):
            raise failure(exc, f"the network {options.arch}", type(model).forward) from exc
        place = place_of(exc)
        change = f"Compare the sizes of its layers at {place}, choose" if place else "Choose"
        raise InputError(
            "E630",
            f"{options.arch} cannot take the inputs of {options.dataset}, "
            f"{dimensions(inputs)}: {first_line(exc)}",
            "--model",
            f"{change} another network or data set, or change --out-fold-ratio.",
        ) from exc
    fault = task.check(outputs, target)
    if fault is not None:
        raise InputError(
            "E630",
            f"{options.arch} does not fit {options.dataset}: {fault}",
            "--model",
            "Choose another network or data set, or change --out-fold-ratio, --regression or "
            "--obj-detection.",
        )


def check_teacher(
    distillation: Distillation, task: Task, model: nn.Module, item: Item, options: TrainingOptions
) -> None:
    """Compare the outputs of teacher and model for a sample; InputError if that is impossible."""
    inputs = item[0].unsqueeze(0)
    try:
        with torch.no_grad():
            distillation.losses(torch.zeros(()), inputs, task.prepare(model(inputs)))
    except _UNFIT as exc:
        raise InputError(
            "E655",
            f"{options.arch} cannot learn from {options.kd_teacher}: {first_line(exc)}",
            "--kd-teacher",
            "Teacher and student take the same inputs and return outputs of the same shape.",
        ) from exc

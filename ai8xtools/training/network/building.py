"""Making the network of a run, or its teacher, for a data set."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import torch
from torch import nn

from ai8xtools.checkpoint import read_checkpoint
from ai8xtools.diagnostics.errors import InputError
from ai8xtools.frontends.accelerator.lowering import remedy_of_limit
from ai8xtools.frontends.modules.mixed import with_rectifiers
from ai8xtools.training.catalog.discovery import LAYER_KEYWORDS, DatasetEntry, ModelEntry
from ai8xtools.training.catalog.own_code import complains_itself, definition, failure, place_of
from ai8xtools.training.network.distillation import Distillation
from ai8xtools.training.network.exits import with_exit
from ai8xtools.training.options import TrainingOptions


def build_model(entry: ModelEntry, dataset: DatasetEntry, options: TrainingOptions) -> nn.Module:
    """Make the network for the data set; InputError when the chip cannot run it.

    The checkpoint of a backbone is checked here first, so that the network never opens a missing,
    damaged or hostile file.
    """
    if options.backbone_checkpoint is not None:
        read_checkpoint(options.backbone_checkpoint, bare=True)
    keywords = _keywords(entry, dataset, options)
    try:
        model: nn.Module = entry.make(**keywords)
    except Exception as exc:
        if complains_itself(exc):
            raise
        if options.backbone_checkpoint is not None:
            _blame_backbone(exc, entry, dataset, options)
        raise _refusal(exc, entry, dataset) from exc
    if not isinstance(model, nn.Module):
        raise InputError(
            "E661",
            f"the function {entry.name} returns {type(model).__name__}; it must return the network",
            definition(entry.make),
            "Let it end with: return MyClass(**kwargs)",
        )
    example = torch.zeros(1, *dataset.input[: entry.dim + 1])
    common = {k: keywords[k] for k in LAYER_KEYWORDS if keywords[k]}
    model = with_rectifiers(model, example, common)
    if options.exit is None:
        return model
    return with_exit(model, options.exit, example, len(dataset.output), common)


def _refusal(exc: Exception, entry: ModelEntry, dataset: DatasetEntry) -> InputError:
    """Return the error for an exception of a network's constructor."""
    surplus = isinstance(exc, TypeError) and "unexpected keyword argument" in str(exc)
    if not surplus and not isinstance(exc, AssertionError | ValueError | RuntimeError | IndexError):
        return failure(exc, f"building {entry.name}", entry.make)
    place = place_of(exc)
    remedy = remedy_of_limit(str(exc))
    remedy = remedy or "Choose another network or data set, or change --device or --use-bias."
    if surplus:
        place = place or definition(entry.make)
        remedy = (
            "Choose another network, or let its function and class accept **kwargs and hand them "
            "to the layers; num_classes, num_channels and dimensions are for the class itself."
        )
    return InputError(
        "E607",
        f"the network cannot be built for {dataset.name} ({'x'.join(map(str, dataset.input))} "
        f"in, {len(dataset.output)} classes): {exc}{f' ({place})' if place else ''}",
        "--model",
        remedy,
    )


def _blame_backbone(
    exc: Exception, entry: ModelEntry, dataset: DatasetEntry, options: TrainingOptions
) -> None:
    """Raise InputError if the network can be built without the checkpoint of its backbone."""
    build_model(entry, dataset, replace(options, backbone_checkpoint=None))
    raise InputError(
        "E607",
        f"{entry.name} cannot use the checkpoint of a backbone ({type(exc).__name__}: {exc})",
        "--backbone-checkpoint",
        "Name the checkpoint of the network's backbone, or leave the option out.",
    ) from exc


def _keywords(entry: ModelEntry, dataset: DatasetEntry, options: TrainingOptions) -> dict[str, Any]:
    """Return the arguments of a network.

    Source: docs/own-models.md.
    """
    channels, height, width = dataset.input
    simulate = options.act_mode_8bit
    bits = 8 if simulate else None
    keywords: dict[str, Any] = {
        "pretrained": False,
        "num_classes": len(dataset.output) + options.obj_detection,  # background is class 0
        "num_channels": channels,
        "dimensions": (height, width),
        "bias": options.use_bias,
        "weight_bits": bits,
        "bias_bits": bits,
        "quantize_activation": simulate,
    }
    if options.obj_detection:
        keywords["device"] = "cpu"  # moved with the model
    if options.dr is not None:
        if not entry.dr:
            raise InputError(
                "E635",
                f"{entry.name} does not let the length of its output be chosen",
                "--dr",
                "Choose a network whose entry in `models` has 'dr': True, or leave the option out.",
            )
        keywords["dimensionality"] = options.dr
    if options.backbone_checkpoint is not None:
        keywords["backbone_checkpoint"] = options.backbone_checkpoint
    if entry.dim > 1 and entry.min_input > width:
        keywords["padding"] = (entry.min_input - width + 1) // 2
    return keywords


def teach(teacher: nn.Module, options: TrainingOptions) -> Distillation:
    """Return how a teacher is used by the options."""
    return Distillation(
        teacher.eval().requires_grad_(False),
        options.kd_student_wt,
        options.kd_distill_wt,
        options.kd_temperature,
        options.kd_relationbased,
        options.kd_start_epoch,
        128 if options.act_mode_8bit else 1,
    )

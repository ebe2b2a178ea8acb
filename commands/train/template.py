"""train.py --yaml-template: the complete description that the network loader writes."""

from __future__ import annotations

from typing import Any

from torch import Tensor, nn

import ai8x
from commands.fits import of_model
from device import Chip
from diagnostics import DiagnosticError, Severity
from diagnostics.errors import ToolError
from frontends.modules.networks import describe, stand_in
from synthesis.configuration import configuration
from synthesis.options import EncodeOptions
from synthesis.pipeline import examine
from training.catalog.own_file import plain_name
from training.export.template import Written
from training.options import TrainingOptions


def complete_description(
    model: nn.Module, example: Tensor, chip: Chip, options: TrainingOptions
) -> Written:
    """Return the description of a network with all places, or why there is none."""
    arch = plain_name(options.arch)
    try:
        found = describe(
            model, example, chip, name=options.arch, arch=arch, dataset=options.dataset
        )
        encoding = EncodeOptions(explain=True)
        source, resolving = of_model(found, stand_in(model, _widths(model)))
        network, placement, _ = examine(source, chip, resolving, encoding)
    except DiagnosticError as refusal:
        errors = [d for d in refusal.diagnostics if d.severity is Severity.ERROR]
        return Written(None, errors[0].message)
    except ToolError as exc:
        return Written(None, exc.message)
    title = (
        f"{arch} (models/) on {options.dataset} for {chip.name}. Written by train.py "
        "--yaml-template from the model; comments tell why a value was chosen."
    )
    count = len(network.layers)
    return Written(configuration(network, placement.layout, title), "", count)


def _widths(model: nn.Module) -> dict[str, int]:
    """Return the bits of weights by layer: those of the policy, or of a trained checkpoint."""
    layers: list[tuple[str, Any]] = [
        (name, layer)
        for name, layer in model.named_modules()
        if isinstance(layer, ai8x.QuantizationAwareModule)
    ]
    return {name: int(layer.weight_bits.item()) or 8 for name, layer in layers}

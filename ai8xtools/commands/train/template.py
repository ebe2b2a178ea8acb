"""train.py --yaml-template: the complete description that the network loader writes."""

from __future__ import annotations

from typing import Any

from torch import Tensor, nn

import ai8x
from ai8xtools.commands.fits import of_model
from ai8xtools.frontends.modules.networks import describe, stand_in
from ai8xtools.synthesis.configuration import configuration
from ai8xtools.synthesis.options import EncodeOptions, PlaceOptions
from ai8xtools.synthesis.pipeline import examine
from ai8xtools.training.catalog.own_file import plain_name
from ai8xtools.training.options import TrainingOptions
from device import Chip


def complete_description(
    model: nn.Module, example: Tensor, chip: Chip, options: TrainingOptions
) -> tuple[str, int]:
    """Return the description of a network with all places, and the number of its layers.

    Raises InputError or DiagnosticError for a network that has none, with all reasons.
    """
    arch = plain_name(options.arch)
    description = describe(
        model, example, chip, name=options.arch, arch=arch, dataset=options.dataset
    )
    source, resolving = of_model(description, stand_in(model, _widths(model)))
    network, placement, _ = examine(
        source, chip, resolving, EncodeOptions(PlaceOptions(explain=True))
    )
    title = (
        f"{arch} (models/) on {options.dataset} for {chip.name}. Written by train.py "
        "--yaml-template from the model; comments tell why a value was chosen."
    )
    return configuration(network, placement.layout, title), len(network.layers)


def _widths(model: nn.Module) -> dict[str, int]:
    """Return the bits of weights by layer: those of the policy, or of a trained checkpoint."""
    layers: list[tuple[str, Any]] = [
        (name, layer)
        for name, layer in model.named_modules()
        if isinstance(layer, ai8x.QuantizationAwareModule)
    ]
    return {name: int(layer.weight_bits.item()) or 8 for name, layer in layers}

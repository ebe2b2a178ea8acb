"""train.py --fits, and the line at the start of each run: whether the network fits the chips."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import torch

import ai8x
from ai8xtools.commands.fits import as_json, as_table, fits_of, of_model, one_line, status_of
from ai8xtools.diagnostics import DiagnosticError, print_result
from ai8xtools.diagnostics.errors import ToolError
from ai8xtools.frontends.modules.networks import describe, stand_in
from ai8xtools.synthesis.fits import ChipFit
from ai8xtools.synthesis.options import ResolveOptions
from ai8xtools.synthesis.parse import Source
from ai8xtools.training.catalog.discovery import find_models
from ai8xtools.training.catalog.imported import imported
from ai8xtools.training.catalog.own_data import dataset_of
from ai8xtools.training.catalog.own_file import named_model, plain_name
from ai8xtools.training.network.building import build_model
from ai8xtools.training.options import TrainingOptions
from ai8xtools.training.policies import qat
from device import Chip, chip_of_die


def found_fits(options: TrainingOptions) -> list[ChipFit]:
    """Return what the network of a run takes of every chip, with the widths of the QAT policy."""
    dataset = dataset_of(options)
    entry = imported(
        named_model(options.arch, find_models, dataset.input), options.arch, None, None
    )
    policy = None if options.qat_policy is None else qat.read_policy(options.qat_policy)

    def described(chip: Chip) -> tuple[Source, ResolveOptions]:
        ai8x.set_device(chip.die, False, False, verbose=False)
        model = build_model(entry, dataset, replace(options, device=chip.die))
        example = torch.zeros(1, *dataset.input[: entry.dim + 1])
        found = describe(model, example, chip, name=options.arch, arch=plain_name(options.arch),
                         dataset=dataset.name)  # fmt: skip
        return of_model(found, stand_in(model, _bits(model, policy)))

    return fits_of(described)


def _bits(model: Any, policy: dict[str, Any] | None) -> dict[str, int]:
    """Return the widths of weights by layer."""
    if policy is None:
        return {}
    overrides = policy.get("overrides", {})
    return {
        name: overrides.get(name, {}).get("weight_bits", policy["weight_bits"])
        for name, layer in model.named_modules()
        if isinstance(layer, ai8x.QuantizationAwareModule)
    }


def show(options: TrainingOptions) -> int:
    """Print the table or JSON; status 0 if the network fits the chip of --device."""
    found = found_fits(options)
    if options.fits == "json":
        print_result(as_json(found))
    else:
        print(as_table(found))
    chip = chip_of_die(options.device)
    return status_of(found, chip)


def line(options: TrainingOptions) -> str | None:
    """Return the verdict in a line; None where the run itself will say what is wrong."""
    try:
        return one_line(found_fits(options))
    except (ToolError, DiagnosticError):
        return None

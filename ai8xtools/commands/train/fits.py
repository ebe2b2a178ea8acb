"""train.py --fits, and the line at the start of each run: whether the network fits the chips."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from typing import Any

import torch

import ai8x
from ai8xtools.commands.fits import (
    as_json,
    as_table,
    diagnostic_of,
    fits_of,
    of_model,
    one_line,
    status_of,
    suggest_the_same,
)
from ai8xtools.diagnostics import (
    Diagnostic,
    DiagnosticError,
    Severity,
    note,
    print_diagnostics,
    print_result,
)
from ai8xtools.diagnostics.errors import ToolError
from ai8xtools.frontends.layers import SUMS_BETWEEN
from ai8xtools.frontends.modules.networks import describe, stand_in
from ai8xtools.synthesis.fits import ChipFit
from ai8xtools.synthesis.options import ResolveOptions
from ai8xtools.synthesis.parse import Source
from ai8xtools.training.catalog.discovery import find_models
from ai8xtools.training.catalog.imported import completed, imported
from ai8xtools.training.catalog.own_data import dataset_of
from ai8xtools.training.catalog.own_file import named_model, plain_name
from ai8xtools.training.network.building import build_model
from ai8xtools.training.options import TrainingOptions
from ai8xtools.training.policies import qat
from device import CHIPS, Chip, chip_of_die


def fits_of_run(options: TrainingOptions, chips: Sequence[Chip] = CHIPS) -> list[ChipFit]:
    """Return what the network of a run takes of each chip, with the widths of the QAT policy."""
    dataset = dataset_of(options)
    entry = named_model(options.arch, find_models, dataset.input)
    entry = imported(entry, options.arch, None, None, asked=options.import_model)
    entry = completed(entry, options.arch)
    policy = None if options.qat_policy is None else qat.read_policy(options.qat_policy)

    def described(chip: Chip) -> tuple[Source, ResolveOptions]:
        ai8x.set_device(chip.die, False, False, verbose=False)
        model = build_model(entry, dataset, replace(options, device=chip.die))
        example = torch.zeros(1, *dataset.input[: entry.dim + 1])
        description = describe(
            model, example, chip,
            name=options.arch, arch=plain_name(options.arch), dataset=dataset.name,
        )  # fmt: skip
        return of_model(description, stand_in(model, _bits(model, policy)))

    return fits_of(described, chips)


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
    fits = fits_of_run(options)
    if options.fits == "json":
        print_result(as_json(fits))
    else:
        print(as_table(fits))
    note(subject=options.arch)
    suggest_the_same("train.py")
    return status_of(fits, chip_of_die(options.device))


def verdict_of(options: TrainingOptions) -> tuple[str | None, Sequence[Diagnostic]]:
    """Return the verdict in a line, and why the chip of --device cannot run the network.

    Errors that the run itself reports are left out.
    """
    verdict: str | None = None
    errors: Sequence[Diagnostic]
    try:
        fits = fits_of_run(options)
    except ToolError as exc:
        errors = (diagnostic_of(exc),)
    except DiagnosticError:
        return None, ()
    else:
        verdict, errors = one_line(fits), fits[CHIPS.index(chip_of_die(options.device))].errors
    return verdict, errors[:_SHOWN] if errors and _is_built(options) else ()


def _is_built(options: TrainingOptions) -> bool:
    """Return whether the run can make its network."""
    try:
        dataset = dataset_of(options)
        entry = named_model(options.arch, find_models, dataset.input)
        if options.import_model:
            entry = imported(entry, options.arch, None, None)
        ai8x.set_device(options.device, False, False, verbose=False)
        build_model(entry, dataset, options)
    except (ToolError, DiagnosticError):
        return False
    return True


def tell(options: TrainingOptions) -> None:
    """Say before the first epoch whether the network fits the chips.

    What the chip of --device cannot run is a warning W679, with --strict the errors that
    ai8xize.py would end with (DiagnosticError). So are sums between layers, which no chip has.
    """
    verdict, errors = verdict_of(options)
    if verdict is not None:
        print(verdict)
    if errors and (options.strict or any(one.code == SUMS_BETWEEN for one in errors)):
        raise DiagnosticError(errors)
    print_diagnostics(
        Diagnostic(
            "W679", f"the trained network could not be deployed to --device: {one.message} "
            f"({one.code} of ai8xize.py)", one.place, one.remedy, Severity.WARNING,
        )
        for one in errors
    )  # fmt: skip


_SHOWN = 3  # errors

"""Whether the first sample of a data set is what its record says, in the range of the chip."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import torch
from torch import Tensor

from ai8xtools.diagnostics.errors import InputError
from ai8xtools.training.catalog.discovery import DatasetEntry
from ai8xtools.training.catalog.own_code import definition
from ai8xtools.training.options import TrainingOptions

_NORMALIZE = "Let the loader apply ai8x.normalize(args) to values 0 to 1, as the last transform."


def check_shape(inputs: Tensor, entry: DatasetEntry) -> None:
    """Raise InputError E663 if the input of a sample has another shape than the record says.

    Networks that accept the input all the same are not refused: records of other tools may be
    inexact.
    """
    shape = tuple(inputs.shape)
    if entry.input not in (shape, (*shape, 1)):
        _refuse(
            entry, "E663", f"the first sample of {entry.name} is {_times(shape)}, but `input` of "
            f"its record says {_times(entry.input)}",
            "Correct `input` in the list `datasets`, or what the loader returns.",
        )  # fmt: skip


def check_input(inputs: Tensor, entry: DatasetEntry, options: TrainingOptions) -> None:
    """Compare the input of a sample with the range of the chip.

    Raises InputError E663 for another type or values that the chip cannot hold: numbers
    beyond -1 to 1, with -8 fractions or numbers beyond -128 to 127.
    """
    if inputs.dtype != torch.float32:
        _refuse(
            entry, "E663", f"inputs of {entry.name} are {inputs.dtype}; they must be torch.float32",
            "Convert images with `.float() / 255`, then apply ai8x.normalize(args).",
        )  # fmt: skip
    fault = _fault(inputs, options.act_mode_8bit)
    if fault is not None:
        _refuse(entry, "E663", f"the first input of {entry.name} {fault}", _NORMALIZE)


def _fault(inputs: Tensor, integers: bool) -> str | None:
    """Return why values do not suit the chip, or None."""
    low, high = float(inputs.min()), float(inputs.max())
    reach = f"has values from {low:g} to {high:g}"
    if not inputs.isfinite().all():
        return "holds values that are not finite"
    if not integers:
        return None if -1 <= low <= high <= 1 else f"{reach}; the network takes -1 to 1"
    if not torch.equal(inputs, inputs.round()):
        return f"{reach} with fractions; with -8 they must be integers -128 to 127"
    if not -128 <= low <= high <= 127:
        return f"{reach}; with -8 they must be integers -128 to 127"
    if -1 <= low < high <= 1:
        return f"{reach}; with -8 they must be integers that span -128 to 127"
    return None


def doubt(inputs: Sequence[Tensor], entry: DatasetEntry, options: TrainingOptions) -> str | None:
    """Return a warning if the inputs seem to be 0 to 1, where the chip wants -1 to 1."""
    if options.act_mode_8bit or not inputs:
        return None
    low = min(float(x.min()) for x in inputs)
    high = max(float(x.max()) for x in inputs)
    if not 0 <= low < high <= 1:
        return None
    return (
        f"{entry.name}: the first {len(inputs)} test samples have values {low:g} to {high:g}; the "
        "chip wants -1 to 1. Use ai8x.normalize(args), which expects values 0 to 1."
    )


def _refuse(entry: DatasetEntry, code: str, message: str, remedy: str) -> None:
    raise InputError(code, message, definition(entry.loader) or "--dataset", remedy)


def _times(shape: Sequence[Any]) -> str:
    return "x".join(map(str, shape)) or "a single number"

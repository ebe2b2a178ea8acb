"""Whether a checkpoint fits a network; if not, how they differ, and which network does fit."""

from __future__ import annotations

import itertools
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, replace
from typing import NoReturn

import torch
from torch import Tensor, nn

from ai8xtools.checkpoint.errors import CheckpointError
from ai8xtools.checkpoint.generations import is_of_normalization
from ai8xtools.diagnostics.errors import InputError
from ai8xtools.frontends.modules.mixed import constant_tensors
from ai8xtools.reading import tables
from ai8xtools.training.catalog.discovery import DatasetEntry, ModelEntry, find_datasets
from ai8xtools.training.network.building import build_model
from ai8xtools.training.options import TrainingOptions

_ROWS = 24
"""Further differences are only counted."""
State = Mapping[str, Tensor]


@dataclass(frozen=True, slots=True)
class Differences:
    """Names a network needs and a file has not, the reverse, and those of different shape."""

    missing: list[str]
    surplus: list[str]
    reshaped: list[str]

    @property
    def fatal(self) -> bool:
        """Whether the network cannot be filled."""
        return bool(self.missing or self.reshaped)

    def __str__(self) -> str:
        parts = (
            (self.missing, "missing"), (self.surplus, "surplus"), (self.reshaped, "another shape")
        )  # fmt: skip
        return ", ".join(f"{len(names)} {what}" for names, what in parts if names)


def differences(own: State, stored: State) -> Differences:
    """Compare the tensors of a network with those of a file."""
    return Differences(
        [name for name in own if name not in stored],
        [name for name in stored if name not in own],
        [name for name in own if name in stored and own[name].shape != stored[name].shape],
    )


def table(own: State, stored: State, differing: Differences) -> str:
    """Return a table of what differs: name, shape in the file, shape in the network."""
    names = [*differing.missing, *differing.reshaped, *differing.surplus]
    rows = [(name, _shape(stored.get(name)), _shape(own.get(name))) for name in names[:_ROWS]]
    if len(names) > _ROWS:
        rows.append((f"and {len(names) - _ROWS} more", "", ""))
    return tables.table(rows, ("tensor", "checkpoint", "network"))


def _shape(tensor: Tensor | None) -> str:
    return "missing" if tensor is None else "x".join(map(str, tensor.shape)) or "scalar"


def refuse(
    own: State,
    stored: State,
    arch: str | None,
    path: str,
    options: TrainingOptions,
    models: Mapping[str, ModelEntry],
    dataset: DatasetEntry,
    option: str = "--model",
) -> None:
    """Raise CheckpointError with a table of the differences and a network that fits, if any.

    Weights that are integers are refused as well, unless the run computes with integers. `option`
    is the one that names the network.
    """
    differing = differences(own, stored)
    if not differing.fatal:
        if quantized(stored) and not options.act_mode_8bit:
            _refuse_integers(path, options.evaluate and option == "--model")
        return
    fitting = next(_fitting(stored, arch, options, models, dataset), None)
    says = f"The file says it is of {arch!r}; compare" if arch else "Compare"
    advice = (
        f"Use {option} {fitting}." if fitting else f"{says} {option}, --dataset and --use-bias."
    )
    raise CheckpointError(
        "E676",
        f"the checkpoint does not belong to the network {options.arch} ({differing})",
        path,
        f"{advice}\n\n{table(own, stored, differing)}",
    )


def quantized(state: State) -> bool:
    """Return whether weights are integers as quantize.py makes them.

    Trained weights are fractions; those that are all 0, or -1, 0 and 1 without a width, may be set
    by hand.
    """
    weights = [tensor for name, tensor in state.items() if name.endswith("op.weight")]
    widths = [tensor for name, tensor in state.items() if name.endswith("weight_bits")]
    if any(not torch.equal(weight, weight.round()) for weight in weights):
        return False
    large = any(bool((weight.abs() > 1).any()) for weight in weights)
    return large or (any(map(torch.any, weights)) and any(map(torch.any, widths)))


def _refuse_integers(path: str, evaluated: bool) -> NoReturn:
    """Raise CheckpointError for a quantized file whose network computes with fractions."""
    raise CheckpointError(
        "E608",
        "the weights are integers, but without -8 the network computes with fractions",
        path,
        "Add -8, or name the checkpoint that training wrote."
        if evaluated
        else "Name the checkpoint that training wrote; a quantized one serves --evaluate -8 only.",
    )


def _fitting(
    stored: State,
    arch: str | None,
    options: TrainingOptions,
    models: Mapping[str, ModelEntry],
    dataset: DatasetEntry,
) -> Iterator[str]:
    """Yield names of networks that fit the file, and options: for this data set, else another."""
    first = [entry for entry in models.values() if entry.name == arch]
    candidates = [*first, *(entry for entry in models.values() if entry.name != arch)]
    cases = itertools.chain(
        itertools.product(candidates, [dataset]), itertools.product(first, _others(dataset))
    )
    options = replace(options, backbone_checkpoint=None)
    for (entry, data), bias in itertools.product(cases, (options.use_bias, not options.use_bias)):
        if _fits(stored, entry, data, replace(options, use_bias=bias)):
            other = f" --dataset {data.name}" if data is not dataset else ""
            without = " without --use-bias" if options.use_bias and not bias else ""
            with_bias = " --use-bias" if bias and not options.use_bias else ""
            yield f"{entry.name}{other}{with_bias}{without}"


def _others(dataset: DatasetEntry) -> Iterator[DatasetEntry]:
    """Yield the other data sets; they are looked up only when they are needed."""
    yield from (entry for entry in find_datasets().values() if entry.name != dataset.name)


def _fits(
    stored: State, entry: ModelEntry, dataset: DatasetEntry, options: TrainingOptions
) -> bool:
    """Return whether the network has exactly the tensors of the file, apart from batch
    normalization."""
    try:
        model = build_model(entry, dataset, options)
    except Exception:  # any network, for data that it was not made for
        return False
    return not differences(expected(model, stored), stored).fatal


def expected(model: nn.Module, stored: State) -> dict[str, Tensor]:
    """Return the tensors a file must hold to fill the model.

    Batch normalization may have been moved into the weights, files of 2020 know no quantile, and
    kernels that are exactly one need not be there.
    """
    normalized = any(map(is_of_normalization, stored))
    constant = constant_tensors(model)
    return {
        name: tensor
        for name, tensor in model.state_dict().items()
        if (normalized or not is_of_normalization(name))
        and (name in stored or not (name.endswith("shift_quantile") or name in constant))
    }


def refuse_fractions(model: nn.Module, path: str) -> None:
    """Raise InputError for weights that are not integers: the simulation would round them to 0."""
    for name, parameter in model.named_parameters():
        if name.endswith("op.weight") and not torch.equal(parameter, parameter.round()):
            raise InputError(
                "E608",
                f"{name} holds fractions, but -8 computes with quantized weights",
                path,
                "Quantize the checkpoint with quantize.py first, or leave out -8.",
            )

"""ai8xize.py --model: the network that is named becomes a description.

Source: docs/own-models.md; docs/options.md, "ai8xize.py".
"""

from __future__ import annotations

import inspect
import itertools
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import replace
from typing import Any

import torch
from torch import nn

import ai8x
from ai8xtools.checkpoint import Checkpoint, read_checkpoint
from ai8xtools.checkpoint.errors import CheckpointError
from ai8xtools.checkpoint.exits import SCORES, exit_of
from ai8xtools.commands.loader.options import ModelSource
from ai8xtools.diagnostics.errors import InputError
from ai8xtools.frontends.modules.networks import describe, stand_in
from ai8xtools.frontends.text import ModelDescription
from ai8xtools.quantization import refuse_foreign
from ai8xtools.reading.npy import NpyError, read_arrays
from ai8xtools.training.catalog.discovery import DatasetEntry, ModelEntry, find_models
from ai8xtools.training.catalog.imported import completed, imported, is_completed, notes_of
from ai8xtools.training.catalog.own_data import dataset_named
from ai8xtools.training.catalog.own_file import is_file_and_class, named_model, own_model
from ai8xtools.training.network.building import build_model
from ai8xtools.training.network.fitting import differences, expected, table
from ai8xtools.training.options import TrainingOptions
from datasets.own.settings import plain_name
from device import Chip

State = Mapping[str, Any]
_USUAL_CLASSES = 10


def describe_model(
    source: ModelSource, chip: Chip, checkpoint_file: str | None, sample_file: str | None
) -> ModelDescription:
    """Return the description of a network of models/ or of FILE:CLASS.

    Its variant (classes, bias) is the one that the checkpoint fits. Raises InputError or
    CheckpointError for what does not fit together.
    """
    checkpoint = None if checkpoint_file is None else read_checkpoint(checkpoint_file)
    dataset = _dataset(source, sample_file)
    entry = _entry(source.model, dataset)
    if dataset is None:
        dataset = _by_defaults(entry, checkpoint, chip, source)
    entry = imported(entry, source.model, None, None, prove=source.prove)
    entry = completed(entry, source.model, prove=source.prove)
    model = _fitting(entry, dataset, checkpoint, chip, checkpoint_file)
    notes = notes_of(model)
    example = torch.zeros(1, *dataset.input[: entry.dim + 1])
    early = None if checkpoint is None else exit_of(checkpoint.extras, checkpoint_file)
    description = describe(
        model, example, chip, name=source.model,
        arch=(checkpoint and checkpoint.arch) or entry.name, dataset=_name_of_data(source, entry),
        frames=source.frames, margins={SCORES: early.margin} if early else {},
    )  # fmt: skip
    left = (f"Left to the application: {node}" for node in description.left)
    return replace(description, notes=(*notes, *description.notes, *left))


def stand_in_of_model(source: ModelSource, chip: Chip, sample_file: str | None) -> Any:
    """Return the description of a network that has not been trained, with random integers."""
    dataset = _dataset(source, sample_file)
    entry = _entry(source.model, dataset)
    if dataset is None:
        dataset = _by_defaults(entry, None, chip, source)
    entry = imported(entry, source.model, None, None, prove=source.prove)
    entry = completed(entry, source.model, prove=source.prove)
    model = _fitting(entry, dataset, None, chip, None)
    example = torch.zeros(1, *dataset.input[: entry.dim + 1])
    description = describe(model, example, chip, name=source.model, arch=entry.name,
                           dataset=_name_of_data(source, entry), frames=source.frames)  # fmt: skip
    return description, stand_in(model, {})


def _dataset(source: ModelSource, sample_file: str | None) -> DatasetEntry | None:
    """Return the input and the classes as far as options tell them: --input-shape, the sample, or
    the data set."""
    entry: DatasetEntry | None = source.data_entry
    if source.dataset is not None and entry is None:
        entry = dataset_named(source.dataset, "--dataset")
    shape = source.input_shape or _sample_shape(sample_file)
    if shape is None:
        return entry
    shape = shape if len(shape) == 3 else (*shape, 1)
    return replace(entry, input=shape) if entry else _any_data(shape, ())


def _name_of_data(source: ModelSource, entry: ModelEntry) -> str:
    """Return the name of the data set for a description."""
    if source.data_entry is not None:
        return str(source.data_entry.name)
    return entry.name if source.dataset is None else plain_name(source.dataset)


def _any_data(shape: tuple[int, ...], classes: Sequence[Any]) -> DatasetEntry:
    """Return a data set without data."""
    return DatasetEntry("the input", shape, tuple(classes), lambda *_: (None, None), None)


def _sample_shape(file: str | None) -> tuple[int, ...] | None:
    """Return the shape of the sample; mistakes in it are reported later."""
    if file is None:
        return None
    try:
        (sample,) = read_arrays(file, most=1)
    except (OSError, NpyError, ValueError):
        return None
    return sample.shape if sample.ndim in (2, 3) else None


def _entry(name: str, dataset: DatasetEntry | None) -> ModelEntry:
    """Return the network of this name."""
    if dataset is None and is_file_and_class(name):
        return own_model(name, 2)
    return named_model(name, find_models, dataset.input if dataset is not None else (1, 1, 1))


def _by_defaults(
    entry: ModelEntry, checkpoint: Checkpoint | None, chip: Chip, source: ModelSource
) -> DatasetEntry:
    """Return the input that the network's class has as default, with the checkpoint's channels."""
    ai8x.set_device(chip.die, False, False, verbose=False)
    defaults: dict[str, Any] = {}
    try:
        parameters = inspect.signature(type(entry.make()).__init__).parameters
        defaults = {name: p.default for name, p in parameters.items()}
    except Exception:  # any constructor of the user's; what it needs is asked for below
        defaults = {}
    size, channels = defaults.get("dimensions"), defaults.get("num_channels")
    if not isinstance(size, tuple) or not isinstance(channels, int):
        raise InputError(
            "E674", f"the size of the input of {source.model} is not known", "--input-shape",
            "Add --input-shape CxHxW (or CxL), or --dataset NAME.",
        )  # fmt: skip
    if checkpoint is not None:
        weights = [t for n, t in checkpoint.state_dict.items() if n.endswith("op.weight")]
        channels = weights[0].shape[1] if weights and weights[0].ndim > 2 else channels
    return _any_data((channels, *size, 1)[:3], ())


def _fitting(
    entry: ModelEntry,
    dataset: DatasetEntry,
    checkpoint: Checkpoint | None,
    chip: Chip,
    file: str | None,
) -> nn.Module:
    """Return the network in the variant that the checkpoint fits; without one, the usual one."""
    ai8x.set_device(chip.die, False, False, verbose=False)
    early = None if checkpoint is None else exit_of(checkpoint.extras, file)
    options = TrainingOptions(
        arch=entry.name,
        dataset=dataset.name,
        device=chip.die,
        exit=None if early is None else early.layer,
    )
    if checkpoint is None:
        classes = dataset.output or range(_USUAL_CLASSES)
        data = replace(dataset, output=tuple(classes))
        try:
            return build_model(entry, data, options)
        except InputError:
            return build_model(entry, data, replace(options, use_bias=True))
    try:
        refuse_foreign(checkpoint, "be deployed")
    except InputError as exc:
        exc.place = file
        raise
    state = {n.removeprefix("module."): t for n, t in checkpoint.state_dict.items()}
    refusal: Exception | None = None
    closest: tuple[int, str, nn.Module] | None = None
    pending = list(_variants(dataset, options, state))
    for data, tried in pending:
        try:
            model = build_model(entry, data, tried)
        except InputError as exc:
            refusal = refusal or exc
            continue
        if is_completed(model) and not checkpoint.is_calibrated:
            raise InputError(
                "E676", "the network computes with results what layers of ai8x do not, so that its "
                "weights need other scales; the checkpoint was quantized without samples", file,
                "Quantize it with --model and --calibrate, or use layers of ai8x: ai8x.Add for +.",
            )  # fmt: skip
        ai8x.use_ranges(model, state)
        own = expected(model, state)
        mismatch = differences(own, state)
        if not mismatch.fatal and not mismatch.surplus:
            return model
        if not dataset.output:  # the classes are not known: those that the shapes tell
            pending += _others(mismatch.reshaped, own, state, data, tried, pending)
        count = len(mismatch.missing) + len(mismatch.reshaped) + len(mismatch.surplus)
        if closest is None or count < closest[0]:
            closest = (count, str(mismatch), model)
    if closest is None:
        assert refusal is not None
        raise refusal
    _, summary, model = closest
    own = expected(model, state)
    raise CheckpointError(
        "E676",
        f"the checkpoint does not belong to the network {entry.name} ({summary})",
        file,
        "Compare --model, --dataset and --input-shape with what it was trained with.\n\n"
        f"{table(own, state, differences(own, state))}",
    )


Variant = tuple[DatasetEntry, TrainingOptions]


def _others(
    reshaped: Sequence[str],
    own: State,
    state: State,
    data: DatasetEntry,
    options: TrainingOptions,
    variants: Sequence[Variant],
) -> Iterator[Variant]:
    """Yield variants with as many classes as make tensors as large as those of the file."""
    counts = {len(tried.output) for tried, _ in variants}
    for name in reshaped:
        if own[name].ndim == 0 or state[name].ndim == 0:
            continue
        classes, rest = divmod(len(data.output) * state[name].shape[0], own[name].shape[0])
        if not rest and classes and classes not in counts:
            yield replace(data, output=tuple(range(classes))), options
            return


def _variants(dataset: DatasetEntry, options: TrainingOptions, state: State) -> Iterator[Variant]:
    """Yield the data sets and options that make a network's variants, the likely ones first."""
    weights = [t for n, t in state.items() if n.endswith("op.weight")]
    last = [t.shape[0] for t in weights[-1:]]
    counts = [len(dataset.output)] if dataset.output else [*last, _USUAL_CLASSES]
    biased = any(n.endswith("op.bias") for n in state)
    for count, bias, boxes in itertools.product(
        dict.fromkeys(counts), (biased, not biased), (False, True)
    ):
        data = replace(dataset, output=tuple(range(count)))
        yield data, replace(options, use_bias=bias, obj_detection=boxes)

"""The user's own data as a data set, and what checkpoints hold about it.

A checkpoint that was trained on such data holds the names of the classes, how files become inputs,
and a sample, so that the other tools need no option for any of it.
Source: docs/own-data.md, "What the checkpoint holds".
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Any

import torch

from ai8xtools.checkpoint import read_checkpoint
from ai8xtools.diagnostics.errors import InputError
from ai8xtools.training.catalog.discovery import DatasetEntry, choose, find_datasets
from ai8xtools.training.options import TrainingOptions
from datasets.own.preparation import Preparation
from datasets.own.record import KEY, VERSION, Recorded, recorded_of
from datasets.own.settings import MARKED, REGRESSION, USUAL, DataSettings, kind_and_path, plain_name


@dataclass(frozen=True, slots=True)
class Source:
    """Where a data set of files comes from, for the record of it.

    `notes` are lines about how the files were understood, complete when they are loaded. `samples`
    counts those of training; of sounds, their files.
    """

    name: str
    settings: DataSettings
    preparation: Preparation
    notes: Sequence[str]
    samples: int

    @property
    def kind(self) -> str:
        """The kind of data, as in KIND:PATH."""
        return (kind_and_path(self.name) or ("",))[0]

    @property
    def is_marked(self) -> bool:
        """Whether targets are marks on pictures, not the classes of samples."""
        return self.kind in MARKED

    def record(self, classes: tuple[str, ...], item: tuple[Any, Any], scale: int) -> dict[str, Any]:
        """Return what a checkpoint holds; `item` is a test sample whose values times `scale` are
        integers."""
        inputs, label = item
        sample = torch.round(inputs * scale).clamp(-128, 127).to(torch.int8)
        classified = not (self.is_marked or self.preparation.target)
        entry = {
            "version": VERSION, "source": self.name, "classes": list(classes),
            "settings": self.settings.as_dict(), "preparation": self.preparation.as_dict(),
            "sample": sample, "sample_class": int(label) if classified else None,
        }  # fmt: skip
        return {KEY: entry}


def dataset_named(
    name: str,
    option: str,
    settings: DataSettings | None = None,
    checkpoint: str | None = None,
    *,
    training: bool = False,
    series: bool = False,
) -> DatasetEntry:
    """Return a data set by name, or of KIND:PATH.

    Choices that `settings` leave open are those of the `checkpoint` that was trained on the data;
    its classes must be those of the data. Only in `training` something is chosen at random.
    `series` means that numbers [N, C, L] in arrays are series, since the network takes nothing
    else. Raises InputError for unknown names and what cannot be used.
    """
    location = kind_and_path(name)
    if location is None:
        return choose(find_datasets(), name, option)
    from datasets.own.sets import limited, load, open_data

    recorded = None if checkpoint is None else recorded_in(checkpoint)
    base = USUAL if recorded is None else recorded.settings.over(USUAL)
    chosen = (settings or DataSettings()).over(base)
    preparation = None if recorded is None else recorded.preparation
    data = open_data(*location, chosen, preparation, series=series)
    if chosen.fold is not None:
        chosen = replace(chosen, fold=data.preparation.fold)
    if recorded is not None:
        _compare(recorded, data.classes, data.preparation, name, str(checkpoint))
    used = chosen if training else limited(chosen)

    def loader(arguments: tuple[str, Any], load_train: bool = True, load_test: bool = True) -> Any:
        return load(data, used, arguments[1], (load_train, load_test))

    entry = _entry(name, data.classes, data.preparation, loader)
    entry = replace(entry, regression=chosen.task == REGRESSION)
    return replace(entry, own=Source(name, chosen, data.preparation, data.notes, data.samples))


def dataset_of(options: TrainingOptions) -> DatasetEntry:
    """Return the data set of a run; a run that resumes or evaluates takes what its checkpoint
    says."""
    source = options.resume_from
    if options.evaluate:
        source = source or options.exp_load_weights_from
    return dataset_named(
        options.dataset, "--dataset", options.own, source, training=not options.evaluate
    )


def recorded_in(path: str) -> Recorded | None:
    """Return what a checkpoint holds about the user's own data; None for any other.

    Raises CheckpointError as `read_checkpoint`, InputError E506 for an entry of another form.
    """
    return recorded_of(read_checkpoint(path, bare=True).extras, path)


def entry_of(recorded: Recorded) -> DatasetEntry:
    """Return the data set of a checkpoint, without data."""
    return _entry(recorded.source, recorded.classes, recorded.preparation, lambda *_: (None, None))


def _compare(
    recorded: Recorded, classes: tuple[str, ...], preparation: Preparation, name: str, path: str
) -> None:
    """Raise InputError if data is not of the classes or the shape that a checkpoint was trained
    on."""
    if classes != recorded.classes:
        differing = [c for c in (*recorded.classes, *classes)
                     if (c in classes) != (c in recorded.classes)]  # fmt: skip
        raise InputError(
            "E683",
            f"the classes of {name} are not those of the checkpoint: {', '.join(differing[:5])} in "
            "one of them only",
            path,
            "Name the data that it was trained on, or train anew.",
        )
    if preparation.shape != recorded.preparation.shape:
        sizes = ["x".join(map(str, p.shape)) for p in (preparation, recorded.preparation)]
        raise InputError(
            "E630", f"inputs of {name} are {sizes[0]}, those of the checkpoint {sizes[1]}", path,
            "Leave out options about the data: the checkpoint knows them.",
        )  # fmt: skip


def _entry(
    name: str, classes: tuple[str, ...], preparation: Preparation, loader: Any
) -> DatasetEntry:
    return DatasetEntry(plain_name(name), preparation.shape, classes, loader, None)

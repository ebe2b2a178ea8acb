"""How the user's own data is trained where the command line leaves it open.

Source: docs/own-data.md, "The recipe".
"""

from __future__ import annotations

import os
from dataclasses import replace
from typing import Any

from ai8xtools.training.options import TrainingOptions
from datasets.own.settings import ANOMALY, AUTO_FOLD, BOXES, kind_and_path

_EPOCHS = 40
"""Of which the usual policy leaves 30 to floating point."""
_STEPS = 20
"""Of an epoch at least: what counts is the number of steps, however few samples there are."""
_SERIES_STEPS = 75
_MANY = 2000
_STEPS_OF_MANY = 100
_FOR_THRESHOLD = 0.2
"""Samples of which the network has learned nothing tell what scores are normal."""
_BATCHES = range(8, 33)
_AUGMENT = {
    "picture": ("shift", "light"), "sound": ("shift", "light"), "series": ("scale",),
    "features": (),
}  # fmt: skip
"""Changes that keep the meaning of any data of the kind. Classes of time series get no noise: in
smooth series it would be most of what the first layer passes on, and test samples have none."""


def with_fold(options: TrainingOptions) -> TrainingOptions:
    """Return the options with the number that `--fold auto` stands for, and say it."""
    if options.own.fold != AUTO_FOLD:
        return options
    from ai8xtools.training.catalog.own_data import dataset_of

    how = dataset_of(options).own.preparation
    if os.environ.get("RANK", "0") == "0":
        _, rows, columns = how.unfolded
        print(f"--fold auto: {how.fold}, pictures are read in {columns}x{rows}")
    return replace(options, own=replace(options.own, fold=how.fold))


def with_recipe(options: TrainingOptions) -> TrainingOptions:
    """Return the options with those of the recipe for the user's own data, and say which.

    Other data sets are trained as before. What the command line names wins.
    """
    if options.evaluate or options.nas or kind_and_path(options.dataset) is None:
        return options
    from ai8xtools.training.catalog.own_data import dataset_of

    own = dataset_of(options).own
    kind, count = own.preparation.kind, own.samples
    batch = min(_BATCHES[-1], max(_BATCHES[0], count // 8))
    size = options.batch_size if "batch_size" not in options.unset else batch
    chosen: dict[str, Any] = {
        "epochs": _EPOCHS, "batch_size": batch, "no_validation": True, "optimizer": "adamw",
        "lr": 0.002, "weight_decay": 0.01, "lr_schedule": "cosine", "label_smoothing": 0.05,
        "ema": 0.99, "augment": _AUGMENT[kind],
    }  # fmt: skip
    if own.settings.task == ANOMALY:
        chosen |= {"no_validation": (), "validation_split": _FOR_THRESHOLD}
    if own.settings.task is not None:
        chosen |= {"label_smoothing": (), "augment": ("jitter",) if kind == "series" else ()}
    if own.kind == BOXES:
        chosen["label_smoothing"] = ()
    if kind == "series":
        chosen["epoch_samples"] = size * (_SERIES_STEPS if count < _MANY else _STEPS_OF_MANY)
    elif count < size * _STEPS:
        chosen["epoch_samples"] = size * _STEPS
    chosen = {name: v for name, v in chosen.items() if name in options.unset and v != ()}
    if "compress" not in options.unset or options.warm_up:
        chosen.pop("lr_schedule", None)
    if options.early_stop is not None or "validation_split" not in options.unset:
        chosen.pop("no_validation", None)
    if os.environ.get("RANK", "0") == "0" and chosen:
        print(f"recipe: {' '.join(map(_text, chosen, chosen.values()))}")
    settings = replace(options.own, augment=chosen.pop("augment", options.own.augment))
    return replace(options, own=settings, **chosen)


def _text(name: str, value: Any) -> str:
    """Return an option as it stands on a command line."""
    option = f"--{name.replace('_', '-')}"
    if value is True:
        return option
    return f"{option} {','.join(value) if isinstance(value, tuple) else value}"

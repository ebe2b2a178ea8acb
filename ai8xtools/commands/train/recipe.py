"""How time series are trained where the command line leaves it open.

Source: docs/own-data.md, "The recipe".
"""

from __future__ import annotations

import os
from dataclasses import replace
from typing import Any

from ai8xtools.training.options import TrainingOptions
from datasets.own.settings import kind_and_path

_EPOCHS = 40
"""Of which the usual policy leaves 30 to floating point."""
_STEPS = 75
"""Of an epoch: what counts is the number of steps, however few samples there are."""
_MANY = 2000
_STEPS_OF_MANY = 100
_BATCHES = range(8, 33)


def with_recipe(options: TrainingOptions) -> TrainingOptions:
    """Return the options with those of the recipe for time series, and say which.

    Other data is trained as before. What the command line names wins.
    """
    source = kind_and_path(options.dataset)
    if options.evaluate or options.nas or source is None or source[0] != "series":
        return options
    from ai8xtools.training.catalog.own_data import dataset_of

    count = dataset_of(options).own.samples
    batch = min(_BATCHES[-1], max(_BATCHES[0], count // 8))
    size = options.batch_size if "batch_size" not in options.unset else batch
    steps = _STEPS if count < _MANY else _STEPS_OF_MANY
    chosen: dict[str, Any] = {
        "epochs": _EPOCHS, "epoch_samples": steps * size, "batch_size": batch,
        "no_validation": True, "optimizer": "adamw", "lr": 0.002, "weight_decay": 0.01,
        "lr_schedule": "cosine", "label_smoothing": 0.05, "ema": 0.99,
        "augment": ("jitter", "scale"),
    }  # fmt: skip
    chosen = {name: value for name, value in chosen.items() if name in options.unset}
    if "compress" not in options.unset or options.warm_up:
        chosen.pop("lr_schedule", None)
    if options.early_stop is not None:
        chosen.pop("no_validation", None)
    if os.environ.get("RANK", "0") == "0" and chosen:
        print(f"recipe for time series: {' '.join(map(_text, chosen, chosen.values()))}")
    augment = chosen.pop("augment", None)
    own = options.own if augment is None else replace(options.own, augment=augment)
    return replace(options, own=own, **chosen)


def _text(name: str, value: Any) -> str:
    """Return an option as it stands on a command line."""
    option = f"--{name.replace('_', '-')}"
    if value is True:
        return option
    return f"{option} {','.join(value) if isinstance(value, tuple) else value}"

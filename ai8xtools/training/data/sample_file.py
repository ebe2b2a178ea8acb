"""A test image as input for the network loader."""

from __future__ import annotations

import io
from pathlib import Path

import numpy as np

from ai8xtools.checkpoint import atomic
from ai8xtools.diagnostics.errors import InputError
from ai8xtools.training.data.batches import Batches
from ai8xtools.training.options import TrainingOptions
from datasets.own.settings import plain_name


def save_sample(batches: Batches, index: int, options: TrainingOptions) -> Path:
    """Write test image `index` as sample_<dataset>.npy in the working directory.

    The array is int64 [C, H, W] of -128..127 and holds no Python objects. Raises InputError for
    an image that is not there.
    """
    first = 0
    for inputs, _ in batches.of_epoch(0):
        if index < first + len(inputs):
            break
        first += len(inputs)
    else:
        raise InputError(
            "E610",
            f"there is no image {index} among the {first} of the test set",
            "--save-sample",
            "Choose a smaller number; they count from 0.",
        )
    values = inputs[index - first].round().clamp(-128, 127).numpy().astype(np.int64)
    if options.slice_sample:
        values = values[:3]
    path = Path(f"sample_{plain_name(options.dataset).lower()}.npy")
    buffer = io.BytesIO()
    np.save(buffer, values, allow_pickle=False)
    atomic.write_bytes(path, buffer.getvalue())
    return path

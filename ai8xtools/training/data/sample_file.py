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

    The array is int64 [C, H, W] of -128..127 and holds no Python objects. Raises InputError when
    the first batch does not hold the image.
    """
    inputs, _ = next(batches.of_epoch(0))
    if index >= len(inputs):
        raise InputError(
            "E610",
            f"image {index} is not among the {len(inputs)} of the first batch",
            "--save-sample",
            "Choose a smaller number or a larger --batch-size.",
        )
    values = inputs[index].round().clamp(-128, 127).numpy().astype(np.int64)
    if options.slice_sample:
        values = values[:3]
    path = Path(f"sample_{plain_name(options.dataset).lower()}.npy")
    buffer = io.BytesIO()
    np.save(buffer, values, allow_pickle=False)
    atomic.write_bytes(path, buffer.getvalue())
    return path

"""A test image as input for the network loader."""

from __future__ import annotations

import io
from argparse import Namespace
from pathlib import Path

import numpy as np

from checkpoint import atomic
from checkpoint.errors import InputError
from training.data import Batches


def save_sample(batches: Batches, args: Namespace) -> Path:
    """Write test image `args.save_sample` as sample_<dataset>.npy in the working directory.

    The array is int64 [C, H, W] of -128..127 and holds no Python objects. Raises InputError when
    the first batch does not hold the image.
    """
    inputs, _ = next(iter(batches))
    if args.save_sample >= len(inputs):
        raise InputError(
            "E610",
            f"image {args.save_sample} is not among the {len(inputs)} of the first batch",
            "--save-sample",
            "Choose a smaller number or a larger --batch-size.",
        )
    values = inputs[args.save_sample].round().clamp(-128, 127).numpy().astype(np.int64)
    if args.slice_sample:
        values = values[:3]
    path = Path(f"sample_{args.dataset.lower()}.npy")
    buffer = io.BytesIO()
    np.save(buffer, values, allow_pickle=False)
    atomic.write_bytes(path, buffer.getvalue())
    return path

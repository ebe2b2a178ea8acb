"""AFSK: sampled tones that stand for a bit, 22 samples each.

Source: docs/datasets.md, "Signals".
"""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import torch

from ai8xtools.reading import read_bytes
from datasets.errors import REPLACE, DatasetError
from datasets.images import ImageDataset
from datasets.parts import train_and_test

_SAMPLES = 22
_FILES = ("zeros.bit", "ones.bit")
_TRAIN_SHARE = 0.75
_MAX_BYTES = 256 << 20
_LAYOUT = (
    "Expected in the folder of --data: AFSK/bits/zeros.bit and ones.bit, 22 bytes for each bit. "
    "Source: recordings of your own, of an audio frequency-shift keying modem."
)


def _read(path: Path) -> torch.Tensor:
    """Return the bits of a file, uint8 [N, 1, 22]."""
    if not path.is_file():
        raise DatasetError("E620", "the recordings are missing", str(path), _LAYOUT)
    content = np.frombuffer(read_bytes(path, _MAX_BYTES), np.uint8)
    if not len(content) or len(content) % _SAMPLES:
        raise DatasetError(
            "E625",
            f"it has {len(content)} bytes, not {_SAMPLES} for each bit",
            str(path),
            REPLACE,
        )
    return torch.from_numpy(content.copy()).view(-1, 1, _SAMPLES)


def afsk_get_datasets(
    data: tuple[str, Any], load_train: bool = True, load_test: bool = True
) -> tuple[ImageDataset | None, ImageDataset | None]:
    """Return training and test set: three quarters and the rest, a fixed random division."""
    parts = [_read(Path(data[0]) / "AFSK" / "bits" / name) for name in _FILES]
    bits = torch.cat(parts)
    targets = torch.cat([torch.full((len(part),), bit) for bit, part in enumerate(parts)])
    low, high = int(bits.min()), int(bits.max())
    order = torch.from_numpy(np.random.default_rng(0).permutation(len(bits)))
    end = int(len(order) * _TRAIN_SHARE)

    def part(training: bool) -> ImageDataset:
        rows = order[:end] if training else order[end:]
        return ImageDataset(bits[rows] - low, targets[rows], data[1], max(high - low, 1))

    return train_and_test(part, data[1], load_train, load_test)


datasets = [
    {
        "name": "AFSK",
        "input": (1, _SAMPLES),
        "output": ("zerobit", "onebit"),
        "loader": afsk_get_datasets,
    }
]

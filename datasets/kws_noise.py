"""The twenty keywords in noise of every day.

Noises are those of MS-SNSD, below MSnoise/raw: noise_train for training, noise_test for tests.
Source: docs/datasets.md, "Keywords".
"""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
import torch
from torch import Tensor

from ai8xtools.reading.system import in_order
from datasets.audio import LENGTH, read_recording
from datasets.errors import DatasetError
from datasets.kws import TWENTY, KeywordDataset, Selection, kws_get_datasets, record

LAYOUT = (
    "Expected in the folder MSnoise/raw of --data: noise_train and noise_test, full of WAV files "
    "(16 kHz, 16 bits, mono). Source: https://github.com/microsoft/MS-SNSD."
)
_MIXED = Selection("KWS_20_msnoise_mixed", TWENTY, 0.07)
_AT_10_DB = Selection("MixedKWS20_10dB", TWENTY, 0.07)


@dataclass(frozen=True, slots=True)
class NoiseMixer:
    """Adds a random cut of a noise to a `share` of the items.

    `noises` are int16 [n], n from 16384; the signal is stronger by one of the whole numbers of
    decibels from `ratios_db[0]` to `ratios_db[1]`. With `fixed` an item gets the same each time;
    items that validate are left alone unless `validation`.
    """

    noises: tuple[Tensor, ...]
    ratios_db: tuple[int, int]
    share: float = 1.0
    fixed: bool = False
    validation: bool = True

    def __call__(self, sound: Tensor, indices: Tensor, validates: Tensor) -> None:
        """Change the recordings [B, 16384] of the items `indices` [B] in place."""
        for row, index, validating in zip(sound, indices.tolist(), validates.tolist(), strict=True):
            generator = torch.Generator().manual_seed(index) if self.fixed else None
            if validating and not self.validation:
                continue
            if float(torch.rand((), generator=generator)) < self.share:
                self._add(row, generator)

    def _add(self, row: Tensor, generator: torch.Generator | None) -> None:
        """Add one cut to a recording [16384]."""
        noise = self.noises[_integer(0, len(self.noises) - 1, generator)]
        first = _integer(0, len(noise) - LENGTH, generator)
        cut = noise[first : first + LENGTH].to(torch.float32)
        ratio = 10 ** (_integer(*self.ratios_db, generator) / 10)
        power = cut.square().mean().clamp_min(1e-9)
        row.add_(cut * (row.square().mean() / power / ratio).sqrt())


def _integer(low: int, high: int, generator: torch.Generator | None) -> int:
    """Return a random number from `low` to `high`."""
    return int(torch.randint(low, high + 1, (), generator=generator))


def read_noises(folder: Path) -> tuple[Tensor, ...]:
    """Return the recordings of a folder as int16 [n]; those that are too short are repeated.

    Raises DatasetError E620 without the folder or its WAV files.
    """
    if not folder.is_dir():
        raise DatasetError("E620", "the folder of noises is missing", str(folder), LAYOUT)
    files = in_order(folder.glob("*.wav"))
    if not files:
        raise DatasetError("E620", "the folder has no WAV files", str(folder), LAYOUT)
    noises = []
    for path in files:
        levels = (read_recording(path) * 32768).astype(np.int16)
        repeats = -(-LENGTH // len(levels))
        noises.append(torch.from_numpy(np.tile(levels, repeats)))
    return tuple(noises)


def noisy_get_datasets(
    selection: Selection,
    data: tuple[str, Any],
    load_train: bool = True,
    load_test: bool = True,
) -> tuple[KeywordDataset | None, KeywordDataset | None]:
    """Return training and test set.

    In KWS_20_msnoise_mixed four fifths of the training items have noise of -5 to 9 dB, in
    MixedKWS20_10dB all items, always the same noise in tests.
    """
    raw = Path(data[0]) / "MSnoise" / "raw"

    def mixer(training: bool) -> NoiseMixer | None:
        if selection is _AT_10_DB:
            noises = read_noises(raw / f"noise_{'train' if training else 'test'}")
            return NoiseMixer(noises, (10, 10), fixed=not training)
        if not training:
            return None
        return NoiseMixer(read_noises(raw / "noise_train"), (-5, 9), 0.8, validation=False)

    mixers = mixer(True) if load_train else None, mixer(False) if load_test else None
    return kws_get_datasets(selection, data, load_train, load_test, mixers)


datasets = [record(selection, noisy_get_datasets) for selection in (_MIXED, _AT_10_DB)]

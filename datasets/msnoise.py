"""MSnoise: noises of every day, in cuts of about one second.

Noises are those of MS-SNSD, below MSnoise/raw: noise_train for training, noise_test for tests. What
stands in front of the last _ in the name of a file is its class. An item is a tensor [128, 128]:
channel c at time t is sample 128*t + c of a random cut.
Source: docs/datasets.md, "Keywords".
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import Any

import torch
from torch import Tensor

from ai8xtools.reading.system import in_order
from datasets.audio import LENGTH
from datasets.errors import DatasetError
from datasets.kws_noise import LAYOUT, read_noises
from datasets.parts import SampleSet, train_and_test
from datasets.sounds import as_item

_CUTS = 20  # of each recording in an epoch


@dataclass(frozen=True, slots=True)
class Noises:
    """A data set: at most `classes` of them; `exact` keeps the 16 bits of the recordings."""

    name: str
    classes: int
    exact: bool


class NoiseDataset(SampleSet[tuple[Tensor, int]]):
    """Cuts of 16384 samples at random places; those of tests are the same in every run.

    `recordings` are int16 [n], n from 16384.
    """

    def __init__(
        self, recordings: list[Tensor], classes: list[int], exact: bool, args: Any, test: bool
    ) -> None:
        self.recordings, self.classes = recordings, classes
        self.test = test
        self.item = partial(as_item, exact=exact, args=args)
        self.length = _CUTS * len(recordings)

    def __getitem__(self, index: int) -> tuple[Tensor, int]:
        number = index // _CUTS
        sound = self.recordings[number]
        generator = torch.Generator().manual_seed(index) if self.test else None
        first = int(torch.randint(len(sound) - LENGTH + 1, (), generator=generator))
        cut = sound[first : first + LENGTH].to(torch.float32).div_(256)
        return self.item(cut[None])[0], self.classes[number]


def _read(folder: Path) -> tuple[list[str], list[Tensor]]:
    """Return the classes and the recordings of a folder."""
    recordings = read_noises(folder)
    names = [path.stem.rpartition("_")[0] or path.stem for path in in_order(folder.glob("*.wav"))]
    return names, list(recordings)


def msnoise_get_datasets(
    noises: Noises, data: tuple[str, Any], load_train: bool = True, load_test: bool = True
) -> tuple[NoiseDataset | None, NoiseDataset | None]:
    """Return training and test set."""
    raw, args = Path(data[0]) / "MSnoise" / "raw", data[1]
    parts = {name: _read(raw / f"noise_{name}") for name in ("train", "test")}
    classes = sorted({name for names, _ in parts.values() for name in names})
    if len(classes) > noises.classes:
        raise DatasetError(
            "E625",
            f"the files are of {len(classes)} classes ({', '.join(classes)}); {noises.name} has "
            f"{noises.classes}",
            str(raw),
            f"Take those of some classes out of both folders. {LAYOUT}",
        )

    def part(training: bool) -> NoiseDataset:
        names, recordings = parts["train" if training else "test"]
        numbers = [classes.index(name) for name in names]
        return NoiseDataset(recordings, numbers, noises.exact, args, not training)

    return train_and_test(part, args, load_train, load_test)


datasets = [
    {
        "name": noises.name,
        "input": (128, 128),
        "output": tuple(f"noise {number}" for number in range(1, noises.classes + 1)),
        "loader": partial(msnoise_get_datasets, noises),
    }
    for noises in (Noises("MSnoise", 16, False), Noises("MSnoise_unquantized", 26, True))
]

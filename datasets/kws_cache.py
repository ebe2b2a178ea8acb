"""The prepared recordings of the keyword sets, `KWS/processed/dataset.pt`.

The file holds four tensors: bytes uint8 [n, 16384], class uint8 [n, 1], part uint8 [n, 1] (0
training, 1 test, 2 validation, 3 official test) and limits of the shift int16 [n, 2], in samples.
It is several gigabytes large, so that it is written from a file and mapped into memory for reading.
Source: docs/datasets.md, "Keywords".
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from pathlib import Path
from typing import NamedTuple

import numpy as np
import numpy.typing as npt
import torch
from torch import Tensor

from datasets import cache
from datasets.audio import (
    LENGTH,
    RATE,
    Samples,
    add_noise,
    change_speed,
    fit,
    random_shift,
    read_wav,
    to_bytes,
)
from datasets.progress import progress
from datasets.speech_files import TRAIN, VALIDATION, Recording, recordings

SHIFT = RATE // 10  # a tenth of a second
NOISE_DB = (-5, 20)  # whole decibels, both ends included
_COPIES = 2
_KINDS = (
    (torch.uint8, (LENGTH,)),
    (torch.uint8, (1,)),
    (torch.uint8, (1,)),
    (torch.int16, (2,)),
)


class Prepared(NamedTuple):
    """The tensors of the file."""

    data: Tensor
    labels: Tensor
    parts: Tensor
    limits: Tensor


def prepared(folder: Path) -> Prepared:
    """Return the prepared recordings of `folder` (KWS); make them first if need be."""
    path = folder / "processed" / "dataset.pt"
    if not path.is_file():
        _prepare(recordings(folder), path)
    return Prepared(*cache.load(path, _KINDS, "the folder raw beside it", len(_KINDS)))


def speeds(copies: int) -> list[float]:
    """Return the speeds of the copies of a recording: 0.9, 1.1, 0.95, 1.05, ..."""
    return [1 + 0.2 * (i % 2 - 0.5) / (1 + i // 2) for i in range(copies)]


def _prepare(found: list[Recording], path: Path) -> None:
    """Write the file at once, from a temporary one that keeps the bytes out of memory."""
    copies = [_COPIES + 1 if r.part in (TRAIN, VALIDATION) else 1 for r in found]
    count = sum(copies)
    with cache.bytes_on_disk(path.parent, (count, LENGTH)) as data:
        _fill(data, found)
        columns = (
            torch.tensor(np.repeat([values], copies, axis=1).T.astype(np.uint8))
            for values in ([r.label for r in found], [r.part for r in found])
        )
        limits = torch.tensor([[-SHIFT, SHIFT]], dtype=torch.int16).repeat(count, 1)
        cache.store(path, (torch.from_numpy(data), *columns, limits))


def _fill(data: npt.NDArray[np.uint8], found: list[Recording]) -> None:
    with progress("Preparing the recordings, once", len(found)) as advance:
        for row, samples in enumerate(_items(found, advance)):
            data[row] = to_bytes(samples)


def _items(found: Iterable[Recording], advance: Callable[[int], None]) -> Iterator[Samples]:
    """Yield what each recording becomes: itself and, unless it serves a test, its copies."""
    for number, recording in enumerate(found):
        rng = np.random.default_rng(number)
        samples = read_wav(recording.path)
        variants = [fit(samples)]
        if recording.part in (TRAIN, VALIDATION):
            variants += [fit(change_speed(samples, speed)) for speed in speeds(_COPIES)]
        for variant in variants:
            yield _disturbed(variant, rng) if recording.part == VALIDATION else variant
        advance(1)


def _disturbed(samples: Samples, rng: np.random.Generator) -> Samples:
    """Shift and disturb a validation item, once for all (training items anew each time)."""
    shifted = random_shift(samples, (-SHIFT, SHIFT), rng)
    return add_noise(shifted, float(rng.integers(NOISE_DB[0], NOISE_DB[1] + 1)), rng)

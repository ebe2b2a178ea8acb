"""The prepared recordings of the keyword sets, `KWS/processed/dataset.pt`.

The file holds four tensors: bytes uint8 [n, 16384], class uint8 [n, 1], part uint8 [n, 1] (0
training, 1 test, 2 validation, 3 official test) and limits of the shift int16 [n, 2], in samples.
It is several gigabytes large, so that it is written from a file and mapped into memory for reading.
`KWS/processed/unquantized.pt` is the same with the 16 bits of the recordings, int16 [n, 16384].
Source: docs/datasets.md, "Keywords".
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
import numpy.typing as npt
import torch
from torch import Tensor

from ai8xtools.reading.progress import progress
from datasets import cache
from datasets.audio import (
    LENGTH,
    RATE,
    Samples,
    add_noise,
    change_speed,
    fit,
    random_shift,
    read_recording,
    to_bytes,
    to_words,
)
from datasets.speech_files import TRAIN, VALIDATION, SpeechFile, recordings

SHIFT = RATE // 10  # a tenth of a second
NOISE_DB = (-5, 20)  # whole decibels, both ends included
_COPIES = 2
_COLUMNS = (
    (torch.uint8, (1,)),
    (torch.uint8, (1,)),
    (torch.int16, (2,)),
)


class PreparedRecordings(NamedTuple):
    """The tensors of the file."""

    data: Tensor
    labels: Tensor
    parts: Tensor
    limits: Tensor


def prepared(folder: Path, exact: bool = False) -> PreparedRecordings:
    """Return the prepared recordings of `folder` (KWS); make them first if need be.

    They are bytes or, with `exact`, words of 16 bits.
    """
    path = folder / "processed" / ("unquantized.pt" if exact else "dataset.pt")
    if not path.is_file():
        _prepare(recordings(folder), path, exact)
    kinds = ((torch.int16 if exact else torch.uint8, (LENGTH,)), *_COLUMNS)
    return PreparedRecordings(*cache.load(path, kinds, "the folder raw beside it", len(kinds)))


def speeds(copies: int) -> list[float]:
    """Return the speeds of the copies of a recording: 0.9, 1.1, 0.95, 1.05, ..."""
    return [1 + 0.2 * (i % 2 - 0.5) / (1 + i // 2) for i in range(copies)]


def _prepare(items: list[SpeechFile], path: Path, exact: bool) -> None:
    """Write the file at once, from a temporary one that keeps the bytes out of memory."""
    copies = [_COPIES + 1 if r.part in (TRAIN, VALIDATION) else 1 for r in items]
    count = sum(copies)
    with cache.bytes_on_disk(path.parent, (count, LENGTH * (1 + exact))) as scratch:
        data: npt.NDArray[Any] = scratch.view(np.int16) if exact else scratch
        _fill(data, items, to_words if exact else to_bytes)
        columns = (
            torch.tensor(np.repeat([values], copies, axis=1).T.astype(np.uint8))
            for values in ([r.label for r in items], [r.part for r in items])
        )
        limits = torch.tensor([[-SHIFT, SHIFT]], dtype=torch.int16).repeat(count, 1)
        cache.store(path, (torch.from_numpy(data), *columns, limits))


def _fill(
    data: npt.NDArray[Any],
    items: list[SpeechFile],
    stored: Callable[[Samples], npt.NDArray[Any]],
) -> None:
    with progress("Preparing the recordings, once", len(items)) as advance:
        for row, samples in enumerate(_items(items, advance)):
            data[row] = stored(samples)


def _items(items: Iterable[SpeechFile], advance: Callable[[int], None]) -> Iterator[Samples]:
    """Yield what each recording becomes: itself and, unless it serves a test, its copies."""
    for number, recording in enumerate(items):
        rng = np.random.default_rng(number)
        samples = read_recording(recording.path)
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

"""Keyword spotting: spoken words of about one second.

Sources: Speech Commands v0.02 and LibriSpeech dev-clean, see `speech_files`. An item is a tensor
[128, 128]: channel c at time t is sample 128*t + c.
Source: docs/datasets.md, "Keywords".
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import Any, Protocol

import torch
from torch import Tensor

from datasets.kws_cache import NOISE_DB, PreparedRecordings, prepared
from datasets.parts import BatchedSet, train_and_test
from datasets.sounds import FRAME, SILENCE, as_item
from datasets.speech_files import CLASSES, OFFICIAL_TEST, TEST, TRAIN, VALIDATION

_UNKNOWN = "_unknown_"
_AT_ONCE = 16


@dataclass(frozen=True, slots=True)
class Selection:
    """Which words a set tells apart; all others are _unknown_, the last class.

    `test` is the part that tests; `librispeech` is whether cuts of read speech are among the
    unknown words; `unknown_weight` is the factor of that class in the loss. `exact` keeps the 16
    bits of the recordings in training.
    """

    name: str
    words: tuple[str, ...]
    unknown_weight: float
    test: int = TEST
    librispeech: bool = True
    exact: bool = False

    @property
    def classes(self) -> tuple[str, ...]:
        """The labels of the set."""
        return (*self.words, _UNKNOWN)


class Mixer(Protocol):
    """Mixes noise into recordings."""

    def __call__(self, sound: Tensor, indices: Tensor, validates: Tensor) -> None:
        """Change the recordings [B, 16384] of the items `indices` [B] in place.

        `validates` [B] says which of them validate.
        """


class KeywordDataset(BatchedSet):
    """Recordings held as bytes, or as words of 16 bits, normalized (and augmented) when a batch is
    taken.

    `rows` are the places of the items in `source`, `targets` their classes, both int64 [N]. With
    `augment` each training item is shifted in a circle and gets white noise each time.
    `valid_indices` are the items that validate; they were disturbed when they were prepared.
    `mixer` comes last.
    """

    def __init__(
        self,
        source: PreparedRecordings,
        rows: Tensor,
        targets: Tensor,
        args: Any,
        augment: bool,
        mixer: Mixer | None = None,
    ) -> None:
        self.source = source
        self.rows, self.length = rows, len(rows)
        self.targets = targets
        self.augment = augment
        self.mixer = mixer
        self.validates = source.parts[rows, 0] == VALIDATION
        if augment and self.validates.any():
            self.valid_indices = self.validates.nonzero()[:, 0]
        self.item = partial(as_item, exact=source.data.dtype == torch.int16, args=args)

    def batch(self, indices: Tensor) -> tuple[Tensor, Tensor]:
        """Return items float32 [B, 128, 128] and targets int64 [B] of `indices` [B].

        A few recordings at a time stay in the processor's cache, which halves the time.
        """
        items = torch.empty(len(indices), FRAME, FRAME)
        for few, place in zip(indices.split(_AT_ONCE), items.split(_AT_ONCE), strict=True):
            place.copy_(self.item(self._sound(few)))
        return items, self.targets[indices]

    def _sound(self, indices: Tensor) -> Tensor:
        """Return the recordings [B, 16384] of `indices` [B] as amplitudes -128..128."""
        rows = self.rows[indices]
        stored = self.source.data[rows]
        sound = stored.to(torch.float32)
        sound = sound.div_(256) if stored.dtype == torch.int16 else sound.sub_(SILENCE)
        if self.augment:
            moving = ~self.validates[indices]
            for place in moving.nonzero()[:, 0].tolist():
                low, high = self.source.limits[rows[place]].tolist()
                sound[place] = sound[place].roll(int(torch.randint(low, high + 1, ())))
            _add_noise(sound, moving)
        if self.mixer is not None:
            self.mixer(sound, indices, self.validates[indices])
        return sound


def _add_noise(sound: Tensor, noisy: Tensor) -> None:
    """Add white noise to the recordings [B, 16384] that are `noisy` [B], in place."""
    ratio = torch.randint(NOISE_DB[0], NOISE_DB[1] + 1, (len(sound), 1))
    level = sound.square().mean(1, keepdim=True).div_(10 ** (ratio / 10)).sqrt_()
    sound.addcmul_(torch.randn_like(sound), level * noisy[:, None])


def _chosen(
    source: PreparedRecordings, selection: Selection, training: bool, args: Any, mixer: Mixer | None
) -> KeywordDataset:
    """Return the items of a part with the classes of a selection."""
    classes = torch.full((256,), len(selection.words))
    for target, word in enumerate(selection.words):
        classes[CLASSES.index(word)] = target
    labels = source.labels[:, 0]
    parts = (TRAIN, VALIDATION) if training else (selection.test,)
    chosen = torch.isin(source.parts[:, 0], torch.tensor(parts, dtype=torch.uint8))
    if not selection.librispeech:
        chosen &= labels != CLASSES.index("librispeech")
    rows = chosen.nonzero()[:, 0]
    return KeywordDataset(source, rows, classes[labels[rows].long()], args, training, mixer)


def kws_get_datasets(
    selection: Selection,
    data: tuple[str, Any],
    load_train: bool = True,
    load_test: bool = True,
    mixers: tuple[Mixer | None, Mixer | None] = (None, None),
) -> tuple[KeywordDataset | None, KeywordDataset | None]:
    """Return training and test set; the former holds the validation items as well.

    `mixers` are those of the two sets.
    """
    source = prepared(Path(data[0]) / "KWS", selection.exact)

    def part(training: bool) -> KeywordDataset:
        return _chosen(source, selection, training, data[1], mixers[not training])

    return train_and_test(part, data[1], load_train, load_test)


TWENTY = (
    "up", "down", "left", "right", "stop", "go", "yes", "no", "on", "off", "one", "two", "three",
    "four", "five", "six", "seven", "eight", "nine", "zero",
)  # fmt: skip
_WORDS = tuple(word for word in CLASSES if word not in ("_silence_", "librispeech"))
_TEN = ("down", "go", "left", "no", "off", "on", "right", "stop", "up", "yes", "_silence_")

SELECTIONS = (
    Selection("KWS", TWENTY[:6], 0.06),
    Selection("KWS_12_benchmark", _TEN, 0.056, test=OFFICIAL_TEST, librispeech=False),
    Selection("KWS_20", TWENTY, 0.07),
    Selection("KWS_35", _WORDS, 0.07),
    Selection("KWS_35_unquantized", _WORDS, 0.07, exact=True),
)


def record(selection: Selection, loader: Callable[..., Any]) -> dict[str, Any]:
    """Return what train.py needs to know of a set."""
    return {
        "name": selection.name,
        "input": (FRAME, FRAME),
        "output": selection.classes,
        "weight": (*(1 for _ in selection.words), selection.unknown_weight),
        "loader": partial(loader, selection),
    }


datasets = [record(selection, kws_get_datasets) for selection in SELECTIONS]

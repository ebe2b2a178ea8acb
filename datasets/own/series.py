"""Time series: numbers of some channels over time.

Source: docs/own-data.md, "Time series".
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from datasets.errors import DatasetError
from datasets.own.arrays import as_numbers, read_archive
from datasets.own.labels import Pair, divided
from datasets.own.preparation import Preparation
from datasets.own.recordings import LEAST_PART, read_recordings
from datasets.own.settings import DataSettings
from datasets.own.tables import ENDINGS

_MOST_CHANNELS = 1024
_MOST_STEPS = 512
"""Longer series are folded; the chip takes 1024."""
_LARGEST_FOLD = 16
_MARGIN = 0.25
_TAIL = 0.001
"""This part of the values of a channel may be beyond its range on either side."""


@dataclass(frozen=True, slots=True)
class Series:
    """Samples [N, C, L], labels [N] and names [N] of training and test; `notes` say how they were
    read."""

    x: Pair
    y: Pair
    places: Pair
    notes: Sequence[str]


def read_series(path: Path, settings: DataSettings) -> Series:
    """Return the series of a file or folder; DatasetError for what is none."""
    if not holds_arrays(path):
        return Series(*read_recordings(path, settings))
    for name in ("window", "hop", "label", "group"):
        if getattr(settings, name) is not None:
            raise DatasetError(
                "E685", "arrays are used as they are", f"--{name}", "Leave out the option."
            )
    if path.suffix == ".npy":
        if path.stem not in ("x", "x_train"):
            raise _refused(path, "the file has no labels", "Call it x.npy, with y.npy beside it.")
        path = path.parent
    arrays, others = read_archive(path, groups=True)
    notes = [f"{path}: not read: {', '.join(others[:5])}"] if others else []
    names = ("x", "x") if "x" in arrays else ("x_train", "x_test")
    filled = {name: _filled(path, name, arrays[name], notes) for name in dict.fromkeys(names)}
    groups = arrays.get("groups")
    if groups is not None:
        notes.append(f"{path}: test samples are of other groups than those of training")
    both = [arrays.get(f"groups_{part}") for part in ("train", "test")]
    if both[0] is not None and both[1] is not None and np.isin(both[1], both[0]).any():
        notes.append(f"{path}: groups_train and groups_test have groups in common")
    x, y, places = divided(arrays | filled, settings, path, groups)
    if x[0].shape[1:] != x[1].shape[1:]:
        raise _refused(
            path, f"x_test has {_size(x[1])}, x_train {_size(x[0])}", "Give both the same size."
        )
    return Series(x, y, places, notes)


def holds_arrays(path: Path) -> bool:
    """Return whether a file or folder has series in arrays, not in CSV files."""
    if path.is_dir():
        return any(file.suffix.lower() == ".npy" for file in path.iterdir())
    return path.suffix.lower() not in ENDINGS


def preparation_of(path: Path, x: NDArray[Any], *, whole: bool = False) -> Preparation:
    """Return how series like those of training, [N, C, L], become inputs.

    The range of a channel is that of its values without the rarest ones. Long series are folded. If
    a network finds out what differs from them, a series is a row of numbers as a `whole`, and the
    range is wider.
    """
    _, channels, steps = x.shape
    if whole and channels * steps > _MOST_CHANNELS:
        raise _refused(
            path, f"series of {channels} channels and {steps} steps have more than the "
            f"{_MOST_CHANNELS} numbers that a network compares with what it expects",
            "Cut smaller windows, or take fewer steps a second.",
        )  # fmt: skip
    fold = steps if whole else 1
    while steps > _MOST_STEPS * fold and fold < _LARGEST_FOLD:
        fold *= 2
    if channels * fold > _MOST_CHANNELS or steps > _MOST_STEPS * fold:
        raise _refused(
            path, f"series of {channels} channels and {steps} steps are too large for the chip; it "
            f"takes {_MOST_CHANNELS} channels, and {_MOST_STEPS * _LARGEST_FOLD} steps of "
            f"{_MOST_CHANNELS // _LARGEST_FOLD}", "Shorten them, or take fewer steps a second.",
        )  # fmt: skip
    low, high = np.quantile(x, [_TAIL, 1 - _TAIL], axis=(0, 2))
    # a channel that hardly ever changes still does
    flat = low == high
    low, high = np.where(flat, x.min((0, 2)), low), np.where(flat, x.max((0, 2)), high)
    if whole:
        low, high = widened(low, high)
    shape = channels * fold, -(-steps // fold), 1
    return Preparation("series", shape, low=tuple(low.tolist()), high=tuple(high.tolist()),
                       fold=fold)  # fmt: skip


def widened(low: NDArray[Any], high: NDArray[Any]) -> tuple[NDArray[Any], NDArray[Any]]:
    """Return ranges that have room for what is beyond the normal one, on either side."""
    margin = _MARGIN * (high - low)
    return low - margin, high + margin


def _filled(path: Path, name: str, x: NDArray[Any], notes: list[str]) -> NDArray[np.float32]:
    """Return series [N, C, L], or [N, L] of one channel, as float32 [N, C, L].

    Where only `nan` follows in all channels, a series is over: its last step is repeated.
    """
    if x.ndim == 2:
        x = x[:, None]
    if x.ndim != 3 or not x.size:
        shape = "x".join(map(str, x.shape)) or "a single number"
        raise _refused(path, f"{name} is {shape}", "Series are [N, channels, time], or [N, time].")
    if x.dtype.kind == "f":
        absent = np.isnan(x).all(1)
        count = x.shape[2] - np.argmin(absent[:, ::-1], 1)
        count[absent.all(1)] = 0
        short = int(count.min())
        if short < x.shape[2]:
            number = int(count.argmin())
            _check_lengths(path, f"{name}[{number}]", short, int(count.max()))
            notes.append(
                f"{path}: {name}: {int((count < count.max()).sum())} of {len(x)} series are "
                f"shorter than {count.max()} steps (the shortest has {short}): their last step is "
                "repeated"
            )
            places = np.minimum(np.arange(count.max())[None], count[:, None] - 1)
            x = np.take_along_axis(x, places[:, None], 2)
    return as_numbers(path, name, x).astype(np.float32)


def _check_lengths(path: Path, what: str, short: int, longest: int) -> None:
    """Raise DatasetError for a series that is too short to be padded."""
    if short < LEAST_PART * longest:
        raise _refused(
            path, f"{what} has {short} steps, the longest series {longest}: shorter ones are "
            f"padded from {LEAST_PART:.0%} of the longest on",
            "Leave short series out, or cut all of them into equal windows.",
        )  # fmt: skip


def _size(x: NDArray[Any]) -> str:
    return f"{x.shape[1]} channels of {x.shape[2]} steps"


def _refused(path: Path, message: str, remedy: str) -> DatasetError:
    return DatasetError("E685", message, str(path), remedy)

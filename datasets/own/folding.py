"""Pictures that are larger than the input of the network: blocks of pixels become its channels.

Source: docs/own-data.md, "Pictures larger than the network".
"""

from __future__ import annotations

import math
from collections.abc import Iterable
from pathlib import Path

from datasets.errors import DatasetError
from datasets.own.pictures import opened, size_of
from datasets.own.preparation import Preparation
from datasets.own.settings import AUTO_FOLD, DataSettings
from device import CHIPS
from device.chip import PROCESSORS

FOLDABLE = ("folder", "npz")
"""The kinds of data whose pictures may be folded; marks would not move with them."""
_MOST_CHANNELS = max(chip.max_channels for chip in CHIPS)


def refuse_fold(kind: str, settings: DataSettings) -> None:
    """Raise DatasetError E687 if data without such pictures is to be folded."""
    if settings.fold is not None:
        raise DatasetError(
            "E687", f"{kind}: has no pictures that can be folded", "--fold", "Leave it out."
        )


def fold_of(channels: int, settings: DataSettings, paths: Iterable[Path]) -> int:
    """Return by how much pictures of so many channels are folded; 1: not at all.

    If the settings leave it open, by as much as the processors of the chip and the smallest of the
    files allow. Raises DatasetError E687 if the size of the network's input is not known then.
    """
    if settings.fold != AUTO_FOLD:
        return settings.fold or 1
    if settings.resize is None:
        raise DatasetError(
            "E687", "the size of the network's input is not known", "--fold auto",
            "Add --resize WxH to pictures in folders, or name a number.",
        )  # fmt: skip
    rows, columns = settings.resize
    fold = math.isqrt(PROCESSORS // channels)  # each takes a channel in one pass
    for path in paths:
        with opened(path) as image:
            height, width = size_of(image)
        fold = min(fold, max(1, height // rows), max(1, width // columns))
    return fold


def folding(size: tuple[int, int, int], fold: int, place: Path) -> Preparation:
    """Return how pictures of `size`, channels, rows and columns, are folded.

    Raises DatasetError: E625 for sides that are no multiples, E687 for too many channels.
    """
    channels, rows, columns = size
    if rows % fold or columns % fold:
        raise DatasetError(
            "E625", f"the picture has {columns}x{rows} pixels, no multiples of --fold {fold}",
            str(place), "Name another number, or the size of the network's input by --resize.",
        )  # fmt: skip
    if channels * fold**2 > _MOST_CHANNELS:
        raise DatasetError(
            "E687", f"{channels} x {fold} x {fold} are {channels * fold**2} channels; the chip "
            f"takes {_MOST_CHANNELS} at most", f"--fold {fold}", "Name a smaller number.",
        )  # fmt: skip
    shape = channels * fold**2, rows // fold, columns // fold
    return Preparation("picture", shape, fold=fold)

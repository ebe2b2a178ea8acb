"""Masks: the number of a class for each pixel of a picture, in a PNG beside it.

Source: docs/own-data.md, "Masks".
"""

from __future__ import annotations

from pathlib import Path

import numpy as np
from numpy.typing import NDArray

from datasets.errors import DatasetError
from datasets.own.marked import (
    NAMES,
    Marked,
    beside,
    class_names,
    divided,
    part_folders,
    pictures_in,
    refused,
)
from datasets.own.pictures import opened, size_of
from datasets.own.preparation import Preparation, fitted
from datasets.own.settings import DataSettings

_FOLDER, _END = "masks", "_mask.png"
_WHITE = 255
_LAYOUT = (
    f"Call it NAME{_END}, or NAME.png beside a picture of another kind; or put pictures into "
    f"images and masks of the same names into {_FOLDER}."
)


def masked_pictures(folder: Path, settings: DataSettings) -> Marked:
    """Return the pictures of a folder with their masks, and the classes of classes.txt.

    Raises DatasetError: E620 for a picture without mask, a mask without picture, or none at all;
    as `part_folders`, `class_names` and `divided`.
    """
    parts = [_pairs(folder, part) for part in part_folders(folder)]
    return Marked(class_names(folder / NAMES, 2), *map(tuple, divided(folder, parts, settings)))


def _pairs(root: Path, part: Path) -> list[tuple[Path, Path]]:
    files = pictures_in(part)
    others = {path.with_suffix("") for path in files if path.suffix.lower() != ".png"}
    pictures = [
        path for path in files
        if not path.name.endswith(_END) and _FOLDER not in path.parent.relative_to(root).parts
        and not (path.suffix.lower() == ".png" and path.with_suffix("") in others)
    ]  # fmt: skip
    pairs = [(picture, _mask_of(picture, root)) for picture in pictures]
    if not pairs:
        raise DatasetError("E620", "the folder has no pictures with masks", str(part), _LAYOUT)
    rest = {*files} - {path for pair in pairs for path in pair}
    if rest:
        raise DatasetError("E620", "the picture of this mask is missing", str(min(rest)), _LAYOUT)
    return pairs


def _mask_of(picture: Path, root: Path) -> Path:
    place = beside(picture, root, _FOLDER)
    names = [place / f"{picture.stem}{end}" for end in (_END, ".png")]
    for path in names:
        if path != picture and path.is_file():
            return path
    expected = names[0] if place == picture.parent else names[1]
    raise DatasetError("E620", f"the mask of {picture} is missing", str(expected), _LAYOUT)


def read_mask(
    path: Path, picture: Path, how: Preparation, classes: tuple[str, ...]
) -> NDArray[np.uint8]:
    """Return the numbers of the classes of all pixels, uint8 [H, W], cut like the picture.

    In black and white, where there are two classes, white is 1. Raises DatasetError: E613 for what
    is no picture, E625 for a mask of another size, E688 for colours and for a number without class.
    """
    with opened(picture) as image:
        size = size_of(image)
    with opened(path) as mask:
        own = size_of(mask)
        if own != size:
            raise DatasetError(
                "E625", f"the mask has {own[1]}x{own[0]} pixels, its picture {picture} "
                f"{size[1]}x{size[0]}", str(path), "Save it in the size of the picture.",
            )  # fmt: skip
        if mask.mode not in ("P", "L", "1", "I", "I;16"):
            raise refused(
                path, f"the mask has colours ({mask.mode}), not the numbers of classes",
                "Save it with a palette, or in grey: the value of a pixel is its class.",
            )  # fmt: skip
        values = np.asarray(mask).astype(np.int64)
        is_black_and_white = mask.mode == "L" and len(classes) == 2
        if is_black_and_white and not np.setdiff1d(values, (0, _WHITE)).size:
            values = values // _WHITE
        if values.max() >= len(classes):
            row, column = (int(n) for n in np.argwhere(values >= len(classes))[0])
            raise refused(
                path, f"the pixel in row {row}, column {column} (from 0) has the number "
                f"{values[row, column]}, but there are {len(classes)} classes, from 0",
                f"Name all classes in {NAMES}, also what belongs to none.",
            )  # fmt: skip
        from PIL import Image

        numbers = Image.fromarray(values.astype(np.uint8))
        return np.asarray(fitted(numbers, *how.shape[1:], how.stretch, Image.Resampling.NEAREST))

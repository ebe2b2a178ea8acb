"""Pictures in one folder for each class, decoded when they are needed."""

from __future__ import annotations

import math
from pathlib import Path
from typing import TYPE_CHECKING

import torch
from torch import Tensor

from ai8xtools.reading.system import in_order
from datasets.errors import DatasetError
from datasets.image_files import as_tensor, image_files, opened

if TYPE_CHECKING:
    from PIL.Image import Image

Sample = tuple[Path, int]
"""A picture and the number of its class, that of its folder in alphabetical order."""


def class_folders(folder: Path, classes: int, layout: str) -> list[Sample]:
    """Return the pictures in all folders of `folder`, class by class.

    Raises DatasetError E620 without the folder, E625 when it has not `classes` folders, E620 for a
    folder without pictures; `layout` is the remedy.
    """
    if not folder.is_dir():
        raise DatasetError("E620", "the folder is missing", str(folder), layout)
    folders = in_order(p for p in folder.iterdir() if p.is_dir() and not p.name.startswith("."))
    if len(folders) != classes:
        raise DatasetError(
            "E625",
            f"it has {len(folders)} folders; it must have {classes}, one for each class",
            str(folder),
            layout,
        )
    return [(path, i) for i, part in enumerate(folders) for path in image_files(part, layout)]


def centre_cut(path: Path, size: int, shorter: int) -> Tensor:
    """Return the middle `size` x `size` pixels, uint8 [3, size, size], of a picture whose shorter
    side was scaled to `shorter`."""
    with opened(path) as image:
        image.draft("RGB", (2 * shorter, 2 * shorter))
        ratio = shorter / min(image.size)
        width, height = (max(size, round(side * ratio)) for side in image.size)
        scaled = image.convert("RGB").resize((width, height))
        left, top = (width - size) // 2, (height - size) // 2
        return as_tensor(scaled.crop((left, top, left + size, top + size)))


def random_cut(path: Path, size: int, share: tuple[float, float]) -> Tensor:
    """Return a random part of a picture scaled to uint8 [3, size, size], half of them mirrored.

    The part has from share[0] to share[1] of the pixels; its sides have a ratio of 3:4 to 4:3.
    """
    from PIL.Image import Transpose

    with opened(path) as image:
        cut = _cut(image.convert("RGB"), share).resize((size, size))
        if int(torch.randint(2, ())):
            cut = cut.transpose(Transpose.FLIP_LEFT_RIGHT)
        return as_tensor(cut)


def _cut(image: Image, share: tuple[float, float]) -> Image:
    width, height = image.size
    area = width * height * float(torch.empty(()).uniform_(*share))
    ratio = math.exp(float(torch.empty(()).uniform_(math.log(3 / 4), math.log(4 / 3))))
    across = min(width, max(1, round(math.sqrt(area * ratio))))
    down = min(height, max(1, round(math.sqrt(area / ratio))))
    left = int(torch.randint(width - across + 1, ()))
    top = int(torch.randint(height - down + 1, ()))
    return image.crop((left, top, left + across, top + down))

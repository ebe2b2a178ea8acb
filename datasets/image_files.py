"""Pictures in files and folders, read with Pillow."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING

import numpy as np
import torch
from torch import Tensor

from ai8xtools.reading.system import in_order
from datasets.errors import DatasetError
from datasets.own.pictures import opened

if TYPE_CHECKING:
    from PIL.Image import Image

__all__ = ["as_tensor", "image_files", "opened", "read_image", "recoloured"]
_SUFFIXES = frozenset({".bmp", ".jpeg", ".jpg", ".png", ".ppm", ".webp"})


def image_files(folder: Path, layout: str) -> list[Path]:
    """Return the pictures directly in `folder` by name.

    Raises DatasetError E620 if it does not exist or there are none; `layout` is the remedy.
    """
    if not folder.is_dir():
        raise DatasetError("E620", "the folder is missing", str(folder), layout)
    files = in_order(p for p in folder.iterdir() if p.suffix.lower() in _SUFFIXES)
    if not files:
        raise DatasetError("E620", "the folder has no pictures", str(folder), layout)
    return files


def as_tensor(image: Image) -> Tensor:
    """Return a picture in colour as uint8 [3, H, W]."""
    return torch.from_numpy(np.array(image.convert("RGB"))).permute(2, 0, 1)


def read_image(path: Path) -> Tensor:
    """Return the picture of a file in colour as uint8 [3, H, W]."""
    with opened(path) as image:
        return as_tensor(image)


def recoloured(picture: Tensor, by: float) -> Tensor:
    """Change contrast, brightness and saturation of a picture [3, H, W] of 0..1 at random."""
    contrast, brightness, saturation = 1 + torch.empty(3).uniform_(-by, by)
    grey = picture.mean(0, keepdim=True)
    picture = torch.lerp(grey, picture, saturation)
    return (torch.lerp(grey.mean(), picture, contrast) * brightness).clamp_(0, 1)

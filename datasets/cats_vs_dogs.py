"""cats_vs_dogs: photographs of cats and dogs, 128x128.

Pictures are decoded when they are needed. The training set sees them turned, scaled, shifted,
mirrored, recoloured and with noise; the limits are in `_TURN` and the following.
Source: docs/datasets.md, "Images in folders".
"""

from __future__ import annotations

import math
from pathlib import Path
from typing import Any

import torch
from torch import Tensor
from torch.nn import functional

import ai8x
from datasets.image_files import as_tensor, image_files, opened
from datasets.parts import SampleSet, loader

_SIZE = 128
_SHORTER_SIDE = 153  # pixels to which pictures are reduced before they are cut
_FOLDERS = ("cats", "dogs")
_LAYOUT = (
    "Expected: cats_vs_dogs/train/cats, train/dogs, test/cats and test/dogs, full of pictures, in "
    "the folder of --data. Source: the collection Dogs vs. Cats of https://www.kaggle.com."
)

_TURN = math.radians(15)
_SCALE = 0.05
_SHIFT = 0.05  # of the side
_COLOUR_SHIFT = 15 / 255  # of each channel
_CONTRAST = 0.2  # also of brightness and saturation
_NOISE = 0.02  # largest standard deviation
_GREY = torch.tensor([0.299, 0.587, 0.114])


class PictureDataset(SampleSet[tuple[Tensor, int]]):
    """Pictures in folders, one for each class; items are float32 [3, 128, 128] and the class."""

    def __init__(self, folder: Path, args: Any, augment: bool) -> None:
        self.files = [
            (path, target)
            for target, name in enumerate(_FOLDERS)
            for path in image_files(folder / name, _LAYOUT)
        ]
        self.length = len(self.files)
        self.augment = augment
        self.normalize = ai8x.normalize(args)

    def __getitem__(self, index: int) -> tuple[Tensor, int]:
        path, target = self.files[index]
        picture = _read(path).to(torch.float32).div_(255)
        picture = _vary(picture) if self.augment else _centre(picture)
        return self.normalize(picture), target


def _read(path: Path) -> Tensor:
    """Return a picture uint8 [3, H, W] whose shorter side has 153 pixels."""
    with opened(path) as image:
        # a JPEG file is decoded at a fraction of its size where that is large enough
        image.draft("RGB", (2 * _SHORTER_SIDE, 2 * _SHORTER_SIDE))
        ratio = _SHORTER_SIDE / min(image.size)
        size = (round(image.width * ratio), round(image.height * ratio))
        return as_tensor(image.convert("RGB").resize(size))


def _centre(picture: Tensor) -> Tensor:
    top, left = ((side - _SIZE) // 2 for side in picture.shape[1:])
    return picture[:, top : top + _SIZE, left : left + _SIZE]


def _vary(picture: Tensor) -> Tensor:
    """Return a random view of a picture of 0..1, recoloured and with noise."""
    picture = _recolour(_view(picture))
    return picture.add_(torch.randn_like(picture), alpha=_NOISE * float(torch.rand(()))).clamp_(
        0, 1
    )


def _view(picture: Tensor) -> Tensor:
    """Cut [3, 128, 128] out of a picture: turned, scaled and shifted half of the time, mirrored.

    One look-up does it all; what lies outside repeats the edge.
    """
    height, width = picture.shape[1:]
    turn, scale, down, right = torch.empty(4).uniform_(-1, 1) * torch.randint(2, ())
    angle, scale = turn * _TURN, 1 + scale * _SCALE
    places = (torch.arange(_SIZE) - (_SIZE - 1) / 2) * scale
    mirror = 1 - 2 * int(torch.randint(2, ()))
    rows, columns = torch.meshgrid(places, mirror * places, indexing="ij")
    centre_y = _somewhere(height) + down * _SHIFT * _SIZE
    centre_x = _somewhere(width) + right * _SHIFT * _SIZE
    y = centre_y + rows * angle.cos() + columns * angle.sin()
    x = centre_x + columns * angle.cos() - rows * angle.sin()
    grid = torch.stack([(2 * x + 1) / width - 1, (2 * y + 1) / height - 1], -1)
    view = functional.grid_sample(
        picture[None], grid[None], padding_mode="border", align_corners=False
    )
    return view[0]


def _somewhere(side: int) -> Tensor:
    """Return the place of the middle of a random cut along a side of so many pixels."""
    return torch.randint(side - _SIZE + 1, ()) + (_SIZE - 1) / 2


def _recolour(picture: Tensor) -> Tensor:
    """Change saturation, contrast, brightness and the level of each channel at random."""
    saturation, contrast, brightness = 1 + torch.empty(3).uniform_(-_CONTRAST, _CONTRAST)
    grey = (picture * _GREY[:, None, None]).sum(0)
    picture = torch.lerp(grey, picture, saturation)
    picture = torch.lerp(grey.mean(), picture, contrast) * brightness
    return picture + torch.empty(3, 1, 1).uniform_(-_COLOUR_SHIFT, _COLOUR_SHIFT)


def _part(folder: Path, args: Any, training: bool) -> PictureDataset:
    own = folder / "cats_vs_dogs" / ("train" if training else "test")
    return PictureDataset(own, args, augment=training)


cats_vs_dogs_get_datasets = loader(_part)


datasets = [
    {
        "name": "cats_vs_dogs",
        "input": (3, _SIZE, _SIZE),
        "output": ("cat", "dog"),
        "loader": cats_vs_dogs_get_datasets,
    }
]

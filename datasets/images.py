"""Images that fit in memory, handed out a batch at a time, with augmentation on whole batches."""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import torch
from torch import Tensor
from torch.nn import functional

import ai8x
from datasets.parts import BatchedSet, Loader, loader


@dataclass(frozen=True, slots=True)
class RandomAffine:
    """Turn, shear and shift each image of a batch at random; what comes in from outside is black.

    Angles are at most `degrees` and `shear` degrees, shifts at most `pixels` in each direction.
    """

    degrees: float
    shear: float
    pixels: float

    def __call__(self, images: Tensor) -> Tensor:
        """Return the distorted images; [N, C, H, W] of values 0..1."""
        count, _, height, width = images.shape
        turn, shear, right, down = torch.empty(4, count).uniform_(-1, 1)
        turn, shear = (math.radians(self.degrees) * turn, math.radians(self.shear) * shear)
        cos, sin, slant = turn.cos(), turn.sin(), shear.tan()
        matrix = torch.empty(count, 2, 3)
        matrix[:, 0, 0], matrix[:, 0, 1] = cos, cos * slant - sin
        matrix[:, 1, 0], matrix[:, 1, 1] = sin, sin * slant + cos
        matrix[:, 0, 2] = right * (2 * self.pixels / width)  # the grid spans -1..1
        matrix[:, 1, 2] = down * (2 * self.pixels / height)
        grid = functional.affine_grid(matrix, list(images.shape), align_corners=False)
        return functional.grid_sample(images, grid, align_corners=False)


@dataclass(frozen=True, slots=True)
class RandomCrop:
    """Give each image of a batch a black frame of `padding` pixels and cut it out anew at random.

    With `mirror` half of them are mirrored, left to right, as well. One look-up of pixels for the
    whole batch does both.
    """

    padding: int
    mirror: bool = False

    def __call__(self, images: Tensor) -> Tensor:
        """Return the shifted images; [N, C, H, W] of any dtype."""
        count, channels, height, width = images.shape
        framed = functional.pad(images, (self.padding,) * 4)
        top, left = torch.randint(0, 2 * self.padding + 1, (2, count, 1))
        rows, columns = top + torch.arange(height), left + torch.arange(width)
        if self.mirror:
            columns = torch.where(torch.rand(count, 1) < 0.5, columns.flip(1), columns)
        places = rows[:, :, None] * framed.shape[3] + columns[:, None, :]
        places = places.view(count, 1, -1).expand(-1, channels, -1)
        return framed.flatten(2).gather(2, places).view(images.shape)


class ImageDataset(BatchedSet):
    """Images held as bytes, normalized (and augmented) when a batch is taken.

    `images` is uint8 [N, C, H, W], `white` the value that stands for 1.0, `targets` int64 [N];
    `args.act_mode_8bit` selects integers -128..127, else multiples of 1/128. `crop` works on bytes,
    `augment` on the values 0..1 after it.
    """

    def __init__(
        self,
        images: Tensor,
        targets: Tensor,
        args: Any,
        white: float = 255,
        augment: RandomAffine | None = None,
        crop: RandomCrop | None = None,
    ) -> None:
        self.images = images
        self.targets = targets
        self.length = len(images)
        self.white = white
        self.augment = augment
        self.crop = crop
        self.normalize = ai8x.normalize(args)

    def batch(self, indices: Tensor) -> tuple[Tensor, Tensor]:
        """Return images (float32) and targets of `indices` [B]."""
        images = self.images[indices]
        if self.crop is not None:
            images = self.crop(images)
        images = images.to(torch.float32).div_(self.white)
        if self.augment is not None:
            images = self.augment(images)
        return self.normalize(images), self.targets[indices]


def fold_batch(images: Tensor, ratio: int) -> Tensor:
    """Do what ai8x.fold does for a batch: [N, C, H, W] to [N, C*r*r, H/r, W/r], r = `ratio`."""
    n, channels, height, width = images.shape
    blocks = images.view(n, channels, height // ratio, ratio, width // ratio, ratio)
    folded = (n, channels * ratio * ratio, height // ratio, width // ratio)
    return blocks.permute(0, 3, 5, 1, 2, 4).reshape(folded)


def image_loader(
    read: Callable[[Path, bool], tuple[Tensor, Tensor]],
    augment: RandomAffine | None = None,
    crop: RandomCrop | None = None,
) -> Loader[ImageDataset]:
    """Return the loader of a set whose images and targets `read(folder of --data, training)`
    returns; only those of training are augmented."""

    def part(folder: Path, args: Any, training: bool) -> ImageDataset:
        if not training:
            return ImageDataset(*read(folder, False), args)
        return ImageDataset(*read(folder, True), args, augment=augment, crop=crop)

    return loader(part)

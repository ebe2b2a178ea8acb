"""Images that fit in memory, handed out a batch at a time, with augmentation on whole batches."""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import torch
from torch import Tensor
from torch.nn import functional
from torch.utils.data import Dataset

import ai8x


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


class ImageDataset(Dataset[tuple[Tensor, Tensor]]):
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
        self.white = white
        self.augment = augment
        self.crop = crop
        self.normalize = ai8x.normalize(args)

    def as_test_set(self, args: Any) -> ImageDataset:
        """Return the set itself, cut to its first image with `args.truncate_testset`."""
        if args.truncate_testset:
            self.images, self.targets = self.images[:1], self.targets[:1]
        return self

    def __len__(self) -> int:
        return len(self.images)

    def batch(self, indices: Tensor) -> tuple[Tensor, Tensor]:
        """Return images (float32) and targets of `indices` [B]."""
        images = self.images[indices]
        if self.crop is not None:
            images = self.crop(images)
        images = images.to(torch.float32).div_(self.white)
        if self.augment is not None:
            images = self.augment(images)
        return self.normalize(images), self.targets[indices]

    def __getitem__(self, index: int) -> tuple[Tensor, Tensor]:
        images, targets = self.batch(torch.tensor([index]))
        return images[0], targets[0]


def fold_batch(images: Tensor, ratio: int) -> Tensor:
    """Do what ai8x.fold does for a batch: [N, C, H, W] to [N, C*r*r, H/r, W/r], r = `ratio`."""
    n, channels, height, width = images.shape
    blocks = images.view(n, channels, height // ratio, ratio, width // ratio, ratio)
    folded = (n, channels * ratio * ratio, height // ratio, width // ratio)
    return blocks.permute(0, 3, 5, 1, 2, 4).reshape(folded)


def train_and_test(
    read: Callable[[bool], tuple[Tensor, Tensor]],
    args: Any,
    parts: tuple[bool, bool],
    augment: RandomAffine | None = None,
    crop: RandomCrop | None = None,
) -> tuple[ImageDataset | None, ImageDataset | None]:
    """Return training and test set, each None unless it is one of the `parts`.

    `read` returns the images and targets of the training (True) or test (False) part; only the
    former is augmented.
    """
    train = ImageDataset(*read(True), args, augment=augment, crop=crop) if parts[0] else None
    test = ImageDataset(*read(False), args).as_test_set(args) if parts[1] else None
    return train, test

"""ImageNet: photographs of 1000 kinds of things, and of 50; also as what a Bayer sensor sees.

Pictures are decoded when they are needed.
Source: docs/datasets.md, "Images in folders".
"""

from __future__ import annotations

from functools import partial
from pathlib import Path
from typing import Any

import torch
from torch import Tensor
from torch.utils.data import Dataset

import ai8x
from datasets.class_folders import Sample, centre_cut, class_folders, random_cut

_MEAN = torch.tensor([0.485, 0.456, 0.406]).view(3, 1, 1)
_DEVIATION = torch.tensor([0.229, 0.224, 0.225]).view(3, 1, 1)
_PART = (0.08, 1.0)  # of a picture that training sees, in pixels
_MARGIN = 256 / 224  # shorter side of a test picture before the middle is cut out
_BAYER_SIZE = 128
_LAYOUT = (
    "Expected in the folder {} of --data: train and val, each with a folder of pictures for each "
    "of {} classes, named alike in both. Source: ILSVRC 2012 of https://image-net.org, after "
    "registration: ILSVRC2012_img_train.tar and ILSVRC2012_img_val.tar, unpacked and the latter "
    "sorted into folders."
)


class PhotographDataset(Dataset[tuple[Tensor, int]]):
    """Photographs: items are float32 [3, size, size] and the class.

    With `standard`, colours are brought to mean 0 and deviation 1 of all photographs before the
    range of the chip cuts them off.
    """

    def __init__(
        self, samples: list[Sample], size: int, args: Any, augment: bool, *, standard: bool = True
    ) -> None:
        self.standard = standard
        self.samples = samples[:1] if args.truncate_testset and not augment else samples
        self.size = size
        self.augment = augment
        self.normalize = ai8x.normalize(args)

    def __len__(self) -> int:
        return len(self.samples)

    def picture(self, index: int) -> Tensor:
        """Return a picture [3, size, size] of 0..1."""
        path = self.samples[index][0]
        if self.augment:
            pixels = random_cut(path, self.size, _PART)
        else:
            pixels = centre_cut(path, self.size, round(self.size * _MARGIN))
        return pixels.to(torch.float32).div_(255)

    def __getitem__(self, index: int) -> tuple[Tensor, int]:
        picture = self.picture(index)
        if self.standard:
            picture = picture.sub_(_MEAN).div_(_DEVIATION)
        return self.normalize(picture), self.samples[index][1]


class MosaicDataset(Dataset[tuple[Tensor, Tensor]]):
    """What a Bayer sensor sees, float32 [4, 64, 64], folded by 2, and the picture [3, 128, 128]."""

    def __init__(self, samples: list[Sample], args: Any, augment: bool) -> None:
        self.photographs = PhotographDataset(samples, _BAYER_SIZE, args, augment)
        self.filter, self.fold = ai8x.bayer_filter(), ai8x.fold(2)
        self.normalize = ai8x.normalize(args)

    def __len__(self) -> int:
        return len(self.photographs)

    def __getitem__(self, index: int) -> tuple[Tensor, Tensor]:
        picture = self.normalize(self.photographs.picture(index))
        return self.fold(self.filter(picture)), picture


def _samples(data: str, names: tuple[str, ...], classes: int, part: str) -> list[Sample]:
    """Return the pictures of a part in the first of the folders `names` that exists."""
    folders = [Path(data) / name for name in names]
    folder = next((f for f in folders if f.is_dir()), folders[0])
    return class_folders(folder / part, classes, _LAYOUT.format(folder.name, classes))


def imagenet_get_datasets(
    names: tuple[str, ...],
    classes: int,
    size: int,
    data: tuple[str, Any],
    load_train: bool = True,
    load_test: bool = True,
    *,
    standard: bool = True,
) -> tuple[PhotographDataset | None, PhotographDataset | None]:
    """Return training and test set."""
    folder, args = data

    def part(name: str, *, augment: bool) -> PhotographDataset:
        samples = _samples(folder, names, classes, name)
        return PhotographDataset(samples, size, args, augment, standard=standard)

    train = part("train", augment=True) if load_train else None
    test = part("val", augment=False) if load_test else None
    return train, test


def bayer_get_datasets(
    data: tuple[str, Any], load_train: bool = True, load_test: bool = True
) -> tuple[MosaicDataset | None, MosaicDataset | None]:
    """Return training and test set."""
    folder, args = data
    read = partial(_samples, folder, ("ImageNet",), 1000)
    train = MosaicDataset(read("train"), args, augment=True) if load_train else None
    test = MosaicDataset(read("val"), args, augment=False) if load_test else None
    return train, test


datasets = [
    {
        "name": "ImageNet",
        "input": (3, 112, 112),
        "output": tuple(range(1000)),
        "loader": partial(imagenet_get_datasets, ("ImageNet",), 1000, 112),
    },
    {
        "name": "ImageNet50",
        "input": (3, 224, 224),
        "output": tuple(range(50)),
        "loader": partial(imagenet_get_datasets, ("ImageNet50", "ImageNet"), 50, 224),
    },
    {
        "name": "ImageNet_plain",
        "input": (3, 112, 112),
        "output": tuple(range(1000)),
        "loader": partial(imagenet_get_datasets, ("ImageNet",), 1000, 112, standard=False),
    },
    {
        "name": "ImageNet50_plain",
        "input": (3, 224, 224),
        "output": tuple(range(50)),
        "loader": partial(
            imagenet_get_datasets, ("ImageNet50", "ImageNet"), 50, 224, standard=False
        ),
    },
    {
        "name": "ImageNet_Bayer",
        "input": (4, 64, 64),
        "output": ("rgb",),
        "regression": True,
        "loader": bayer_get_datasets,
    },
]

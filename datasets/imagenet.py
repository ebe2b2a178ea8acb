"""ImageNet: photographs of 1000 kinds of things, and of 50; also as what a Bayer sensor sees.

Pictures are decoded when they are needed.
Source: docs/datasets.md, "Images in folders".
"""

from __future__ import annotations

from pathlib import Path
from typing import Any

import torch
from torch import Tensor

import ai8x
from datasets.class_folders import Sample, centre_cut, class_folders, random_cut
from datasets.parts import SampleSet, loader

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


class PhotographDataset(SampleSet[tuple[Tensor, int]]):
    """Photographs: items are float32 [3, size, size] and the class.

    With `standard`, colours are brought to mean 0 and deviation 1 of all photographs before the
    range of the chip cuts them off.
    """

    def __init__(
        self, samples: list[Sample], size: int, args: Any, augment: bool, *, standard: bool = True
    ) -> None:
        self.standard = standard
        self.samples, self.length = samples, len(samples)
        self.size = size
        self.augment = augment
        self.normalize = ai8x.normalize(args)

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


class MosaicDataset(SampleSet[tuple[Tensor, Tensor]]):
    """What a Bayer sensor sees, float32 [4, 64, 64], folded by 2, and the picture [3, 128, 128]."""

    def __init__(self, samples: list[Sample], args: Any, augment: bool) -> None:
        self.photographs = PhotographDataset(samples, _BAYER_SIZE, args, augment)
        self.length = len(samples)
        self.filter, self.fold = ai8x.bayer_filter(), ai8x.fold(2)
        self.normalize = ai8x.normalize(args)

    def __getitem__(self, index: int) -> tuple[Tensor, Tensor]:
        picture = self.normalize(self.photographs.picture(index))
        return self.fold(self.filter(picture)), picture


def _samples(data: Path, names: tuple[str, ...], classes: int, training: bool) -> list[Sample]:
    """Return the pictures of a part in the first of the folders `names` that exists."""
    folders = [data / name for name in names]
    folder = next((f for f in folders if f.is_dir()), folders[0])
    part = folder / ("train" if training else "val")
    return class_folders(part, classes, _LAYOUT.format(folder.name, classes))


def photographs(
    names: tuple[str, ...], classes: int, size: int, standard: bool, folder: Path, args: Any,
    training: bool,
) -> PhotographDataset:  # fmt: skip
    """Return a part of the set in the first of the folders `names` that exists."""
    samples = _samples(folder, names, classes, training)
    return PhotographDataset(samples, size, args, training, standard=standard)


def _mosaics(folder: Path, args: Any, training: bool) -> MosaicDataset:
    return MosaicDataset(_samples(folder, ("ImageNet",), 1000, training), args, augment=training)


bayer_get_datasets = loader(_mosaics)


datasets = [
    *(
        {
            "name": names[0] if standard else f"{names[0]}_plain",
            "input": (3, size, size),
            "output": tuple(range(classes)),
            "loader": loader(photographs, names, classes, size, standard),
        }
        for standard in (True, False)
        for names, classes, size in (
            (("ImageNet",), 1000, 112),
            (("ImageNet50", "ImageNet"), 50, 224),
        )
    ),
    {
        "name": "ImageNet_Bayer",
        "input": (4, 64, 64),
        "output": ("rgb",),
        "regression": True,
        "loader": bayer_get_datasets,
    },
]

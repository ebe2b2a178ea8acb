"""Digits: 1797 grey images of handwritten digits, 8x8, that come with scikit-learn."""

from __future__ import annotations

from typing import Any

import numpy as np
import torch

from datasets.images import ImageDataset, RandomAffine
from datasets.parts import train_and_test

_DISTORTION = RandomAffine(degrees=8, shear=5, pixels=0.7)
_WHITE = 16  # the brightest value
_TEST_SHARE = 5  # one in five


def digits_get_datasets(
    data: tuple[str, Any], load_train: bool = True, load_test: bool = True
) -> tuple[ImageDataset | None, ImageDataset | None]:
    """Return training and test set (1437 and 360 images); nothing is read from the data folder.

    The division is a fixed random one: neighbours in the collection come from the same writer.
    """
    from sklearn.datasets import load_digits

    collection = load_digits()
    order = np.random.default_rng(0).permutation(len(collection.target))
    images = torch.from_numpy(collection.images[order].astype(np.uint8)).unsqueeze(1)
    targets = torch.from_numpy(collection.target[order].astype(np.int64))
    first = -(-len(images) // _TEST_SHARE)
    args = data[1]

    def part(training: bool) -> ImageDataset:
        if not training:
            return ImageDataset(images[:first], targets[:first], args, _WHITE)
        return ImageDataset(images[first:], targets[first:], args, _WHITE, _DISTORTION)

    return train_and_test(part, args, load_train, load_test)


datasets = [
    {
        "name": "digits",
        "input": (1, 8, 8),
        "output": tuple(map(str, range(10))),
        "loader": digits_get_datasets,
    }
]

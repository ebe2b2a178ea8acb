"""EMNIST: grey images of handwritten letters and digits, 28x28, in six splits.

The files hold each image with rows and columns exchanged. The labels of the split of letters begin
at 1 and have 37 places, as networks of others for it have.
Source: docs/datasets.md, "Images in memory".
"""

from __future__ import annotations

import string
from functools import partial
from pathlib import Path

from torch import Tensor

from datasets.errors import DatasetError
from datasets.idx import SIZE, find, read_pair
from datasets.images import ImageDataset, RandomAffine, image_loader
from datasets.parts import Loader

_DIGITS = tuple(string.digits)
_MERGED = "abdefghnqrt"
"""Small letters that differ from capital ones enough to be classes of their own."""
_FORTY_SEVEN = (*_DIGITS, *string.ascii_uppercase, *_MERGED)
SPLITS: dict[str, tuple[str, ...]] = {
    "BALANCED": _FORTY_SEVEN,
    "BYCLASS": (*_DIGITS, *string.ascii_uppercase, *string.ascii_lowercase),
    "BYMERGE": _FORTY_SEVEN,
    "LETTERS": ("none", *string.ascii_uppercase, *(f"none {i}" for i in range(27, 37))),
    "DIGITS": _DIGITS,
    "MNIST": _DIGITS,
}
"""By split, the names of the classes."""
_LAST_LETTER = 26
_UNPACK = "Unpack gzip.zip of NIST's page on EMNIST into this folder."


def split_loader(split: str) -> Loader[ImageDataset]:
    """Return the loader of a split; training images are turned, sheared and shifted at random."""
    return image_loader(partial(_read, split), RandomAffine(degrees=10, shear=5, pixels=2))


def _read(split: str, folder: Path, train: bool) -> tuple[Tensor, Tensor]:
    raw, paths = folder / "EMNIST" / "raw", []
    for part in ("images-idx3", "labels-idx1"):
        name = f"emnist-{split.lower()}-{'train' if train else 'test'}-{part}-ubyte"
        path = find(raw, name)
        if path is None:
            raise DatasetError(
                "E620", f"the file {name} or {name}.gz is missing", str(raw),
                _UNPACK,
            )  # fmt: skip
        paths.append(path)
    images, labels = read_pair(paths[0], paths[1], len(SPLITS[split]), _UNPACK)
    last = _LAST_LETTER if split == "LETTERS" else len(SPLITS[split]) - 1
    if labels.max() < last:
        raise DatasetError(
            "E613", f"its labels end at {int(labels.max())}, those of {split} at {last}: it is of "
            "another split", str(paths[1]), _UNPACK,
        )  # fmt: skip
    return images.transpose(2, 3).contiguous(), labels


datasets = [
    {
        "name": f"EMNIST_{split}",
        "input": (1, *SIZE),
        "output": names,
        "loader": split_loader(split),
    }
    for split, names in SPLITS.items()
]

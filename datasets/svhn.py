"""SVHN: house numbers with a box around each digit, 74x74.

The square around a house number is cut out once, into `SVHN/processed`, and anew when files have
changed. The annotations, `digitStruct.mat`, are in the format HDF5.
Source: docs/datasets.md, "Images in folders".
"""

from __future__ import annotations

import math
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt
import torch
from torch import Tensor

import ai8x
from ai8xtools.reading import open_file
from ai8xtools.reading.progress import progress
from ai8xtools.reading.system import in_order
from datasets import cache
from datasets.boxes import Objects, collate
from datasets.errors import DatasetError, library
from datasets.image_files import as_tensor, opened
from datasets.parts import BatchedSet, loader

_SIZE = 74
_MARGIN = 1.3  # side of the square, relative to that around the boxes alone
_DIGITS = 10  # label 10 is the digit 0
_MOST_BYTES = 1 << 30
"""Of annotations; those of the training set have 200 MB."""
_MOST_VALUES = 10_000_000
_FIELDS = ("left", "top", "width", "height", "label")
_LAYOUT = (
    "Expected in the folder SVHN of --data: train and test, each with the pictures 1.png, 2.png, "
    "... and digitStruct.mat. Unpack train.tar.gz and test.tar.gz (format 1, full numbers) of "
    "http://ufldl.stanford.edu/housenumbers there."
)
_KINDS = (
    (torch.uint8, (3, _SIZE, _SIZE)),  # picture
    (torch.int64, ()),  # its first box
    (torch.int64, ()),  # number of its boxes
    (torch.float32, (4,)),  # boxes
    (torch.int64, ()),  # their labels
    (torch.uint8, ()),  # digest of the files
)


@dataclass(frozen=True, slots=True)
class House:
    """A picture and its digits: boxes float64 [n, 4] (left, top, right, bottom), labels [n]."""

    name: str
    boxes: npt.NDArray[np.float64]
    labels: npt.NDArray[np.int64]


class HouseNumberDataset(BatchedSet):
    """House numbers with the boxes of their digits.

    `tensors` are those of the prepared file; with `simplified` all labels are 1.
    """

    def __init__(self, tensors: tuple[Tensor, ...], simplified: bool, args: Any) -> None:
        self.images, self.first, self.count, self.boxes, self.labels = tensors[:5]
        self.simplified = simplified
        self.length = len(self.images)
        self.normalize = ai8x.normalize(args)

    def batch(self, indices: Tensor) -> tuple[Tensor, list[Objects]]:
        """Return images float32 [B, 3, 74, 74] and the objects of each."""
        images = self.normalize(self.images[indices].to(torch.float32).div_(256))
        return images, [self._objects(index) for index in indices.tolist()]

    def _objects(self, index: int) -> Objects:
        first = int(self.first[index])
        part = slice(first, first + int(self.count[index]))
        labels = self.labels[part]
        return self.boxes[part], torch.ones_like(labels) if self.simplified else labels


def _prepared(folder: Path, part: str) -> tuple[Tensor, ...]:
    """Return the tensors of one part; prepare them if need be."""
    annotations = folder / part / "digitStruct.mat"
    if not annotations.is_file():
        raise DatasetError("E620", "the annotations are missing", str(annotations), _LAYOUT)
    digest = cache.listing_digest([annotations, *in_order((folder / part).glob("*.png"))])
    path = folder / "processed" / f"{part}.pt"
    source = "the pictures and their annotations"
    if path.is_file():
        tensors = cache.load(path, _KINDS, source, aligned=3)
        if torch.equal(tensors[-1], digest):
            return tensors
    houses = list(read_annotations(annotations))
    if not houses:
        raise DatasetError("E620", "they name no pictures", str(annotations), _LAYOUT)
    with cache.bytes_on_disk(path.parent, (len(houses), 3, _SIZE, _SIZE)) as data:
        boxes = _cut_all(data, houses, annotations.parent)
        count = torch.tensor([len(house.labels) for house in houses])
        labels = torch.from_numpy(np.concatenate([house.labels for house in houses]))
        cache.store(
            path, (torch.from_numpy(data), count.cumsum(0) - count, count, boxes, labels, digest)
        )
    return cache.load(path, _KINDS, source, aligned=3)


def _cut_all(data: npt.NDArray[np.uint8], houses: list[House], folder: Path) -> Tensor:
    """Fill `data` with the squares of all pictures; return their boxes float32 [m, 4], 0..1."""
    boxes = []
    with progress(f"Preparing SVHN ({folder.name}), once", len(houses)) as advance:
        for row, house in zip(data, houses, strict=True):
            with opened(folder / house.name) as image:
                left, top, side = square(house.boxes, *image.size)
                cut = image.convert("RGB").crop((left, top, left + side, top + side))
                row[:] = as_tensor(cut.resize((_SIZE, _SIZE)))
            boxes.append(((house.boxes - [left, top, left, top]) / side).clip(0, 1))
            advance(1)
    return torch.from_numpy(np.concatenate(boxes)).to(torch.float32)


def square(boxes: npt.NDArray[np.float64], width: int, height: int) -> tuple[int, int, int]:
    """Return left, top and side of the square to cut out of a picture of `width` x `height`.

    It is the smallest around all boxes, larger by 30 % as far as the picture reaches; where even
    the smallest does not fit, it leaves the picture, and what lies outside will be black.
    """
    low, high = np.floor(boxes[:, :2].min(0)), np.ceil(boxes[:, 2:].max(0))
    least = int((high - low).max())
    side = max(least, min(round(least * _MARGIN), width, height))
    first = np.round((low + high - side) / 2).astype(int)
    room = np.array([width, height]) - side
    first = np.where(room >= 0, first.clip(0, np.maximum(room, 0)), first)
    return int(first[0]), int(first[1]), side


def read_annotations(path: Path) -> Iterator[House]:
    """Yield the houses of a file digitStruct.mat.

    Raises DatasetError: E613 when it is damaged, E625 when a house has no digit, or one that cannot
    be.
    """
    h5py = library("h5py", "reads the annotations of SVHN", str(path))
    try:
        with open_file(path, _MOST_BYTES) as opened_file, h5py.File(opened_file, "r") as file:
            table = _own(file, "digitStruct")
            names, boxes = (_values(_own(table, key)) for key in ("name", "bbox"))
            with progress("Reading the annotations of SVHN", len(names)) as advance:
                for name, box in zip(names, boxes, strict=True):
                    text = "".join(map(chr, _values(file[name])))
                    fields = [_own(file[box], field) for field in _FIELDS]
                    yield _house(text, [_numbers(file, field) for field in fields], path)
                    advance(1)
    except PermissionError:
        raise
    except (OSError, KeyError, ValueError, TypeError, AttributeError, RuntimeError) as exc:
        raise DatasetError(
            "E613", f"it is no table of house numbers ({exc})", str(path), _LAYOUT
        ) from exc


def _numbers(file: Any, field: Any) -> npt.NDArray[np.float64]:
    """Return one number for each digit: a single one stands there itself, others are pointed to."""
    values = _values(field)
    if len(values) > 1:
        values = np.array([_values(file[reference])[0] for reference in values])
    return values.astype(np.float64)


def _own(group: Any, name: str) -> Any:
    """Return a member of a group; ValueError if it is a link into another file."""
    if hasattr(group.get(name, getlink=True), "filename"):
        raise ValueError(f"{name} is a link to another file")
    return group[name]


def _values(table: Any) -> npt.NDArray[Any]:
    """Return the values of a table in a row; ValueError if it claims more than there can be.

    A table may claim any size without having it, stand in another file, or in compressed pieces.
    """
    pieces = math.prod(table.chunks or (0,))
    if table.size > _MOST_VALUES or pieces > _MOST_VALUES or table.external or table.is_virtual:
        raise ValueError(f"a table of {table.size} values, or of values in other files")
    return np.ravel(table)


def _house(name: str, columns: list[npt.NDArray[np.float64]], path: Path) -> House:
    """Return a house of the columns left, top, width, height and label of its digits."""
    left, top, width, height, labels = columns
    count = len(labels)
    sizes = np.concatenate([width, height])
    wrong = not count or any(len(column) != count for column in columns)
    if wrong or sizes.min() <= 0 or set(labels.tolist()) - set(range(1, _DIGITS + 1)):
        raise DatasetError(
            "E625",
            f"{name} must have digits in boxes with a size and labels 1 to {_DIGITS}; it has "
            f"{count}, labels {labels.tolist()}",
            str(path),
            _LAYOUT,
        )
    if "/" in name or "\\" in name or name.startswith("."):
        raise DatasetError("E613", f"{name!r} is no name of a picture", str(path), _LAYOUT)
    boxes = np.stack([left, top, left + width, top + height], 1)
    return House(name, boxes, labels.astype(np.int64))


def _part(simplified: bool, folder: Path, args: Any, training: bool) -> HouseNumberDataset:
    tensors = _prepared(folder / "SVHN", "train" if training else "test")
    return HouseNumberDataset(tensors, simplified, args)


datasets = [
    {
        "name": name,
        "input": (3, _SIZE, _SIZE),
        "output": (1,) if simplified else tuple(range(1, _DIGITS + 1)),
        "loader": loader(_part, simplified),
        "collate": collate,
    }
    for name, simplified in (("SVHN_74", False), ("SVHN_74_simplified", True))
]

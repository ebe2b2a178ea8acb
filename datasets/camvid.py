"""CamVid: scenes seen from a car, each pixel with its class.

Pictures of 720x960 are cut into overlapping squares. A target is int64 [H, W]; the inputs of the
sets of 352x352 are folded by 4, their targets are not. The pictures are decoded once, into
`CamVid/processed`, and anew when files have changed.
Source: docs/datasets.md, "Images in folders".
"""

from __future__ import annotations

import csv
import io
from dataclasses import dataclass
from itertools import product
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt
import torch
from torch import Tensor

import ai8x
from ai8xtools.reading import read_text
from ai8xtools.reading.progress import progress
from datasets import cache
from datasets.errors import REPLACE, DatasetError
from datasets.image_files import image_files, opened, read_image
from datasets.images import fold_batch
from datasets.parts import BatchedSet, loader

_HEIGHT, _WIDTH = 720, 960
_LABEL = 3  # plane of a prepared picture behind red, green and blue
_NONE = "None"
CLASSES = tuple(
    """Animal Archway Bicyclist Bridge Building Car CartLuggagePram Child Column_Pole Fence
    LaneMkgsDriv LaneMkgsNonDriv Misc_Text MotorcycleScooter OtherMoving ParkingBlock Pedestrian
    Road RoadShoulder Sidewalk SignSymbol Sky SUVPickupTruck TrafficCone TrafficLight Train Tree
    Truck_Bus Tunnel VegetationMisc Void Wall None""".split()  # noqa: SIM905
)
_THREE = ("Building", "Sky", "Tree")  # all others are class 3
MAX_TABLE_BYTES = 1 << 20
_LAYOUT = (
    "Expected in the folder CamVid of --data: pictures of 960x720 pixels in train and test, those "
    "of their classes, named NAME_L.png, in train_labels and test_labels, and class_dict.csv with "
    "the columns name, r, g, b. Source: the Cambridge-driving Labeled Video Database (CamVid)."
)

Overlap = tuple[int, int]  # of rows and of columns of squares that follow each other


@dataclass(frozen=True, slots=True)
class Cutting:
    """Squares of `size` pixels, their overlaps in training and test, the fold of the inputs."""

    size: int
    train: Overlap
    test: Overlap
    fold: int = 1


class SquareDataset(BatchedSet):
    """Squares of pictures: inputs float32 [B, 3*f*f, H/f, W/f], targets int64 [B, H, W].

    `pictures` is uint8 [N, 4, 720, 960], the class in the last plane; `classes` int64 [33] gives
    the class in this set.
    """

    def __init__(
        self,
        pictures: Tensor,
        cutting: Cutting,
        overlap: Overlap,
        classes: Tensor,
        args: Any,
    ) -> None:
        self.pictures = pictures
        self.cutting = cutting
        self.classes = classes
        self.normalize = ai8x.normalize(args)
        starts = (
            range(0, side - cutting.size + 1, cutting.size - common)
            for side, common in zip((_HEIGHT, _WIDTH), overlap, strict=True)
        )
        self.places = list(product(range(len(pictures)), *starts))
        self.length = len(self.places)

    def batch(self, indices: Tensor) -> tuple[Tensor, Tensor]:
        """Return inputs and targets of `indices` [B]."""
        size = self.cutting.size
        squares = torch.stack(
            [
                self.pictures[number, :, top : top + size, left : left + size]
                for number, top, left in (self.places[i] for i in indices.tolist())
            ]
        )
        images = fold_batch(squares[:, :_LABEL].to(torch.float32).div_(256), self.cutting.fold)
        return self.normalize(images), self.classes[squares[:, _LABEL].long()]


def _pictures(folder: Path, part: str) -> Tensor:
    """Return the pictures of one part, uint8 [N, 4, 720, 960]; prepare them if need be."""
    files = image_files(folder / part, _LAYOUT)
    labels = [folder / f"{part}_labels" / f"{file.stem}_L.png" for file in files]
    for label in labels:
        if not label.is_file():
            raise DatasetError("E620", "the picture of the classes is missing", str(label), _LAYOUT)
    colours = _read_colours(folder / "class_dict.csv")
    digest = cache.listing_digest([*files, *labels, folder / "class_dict.csv"])
    path = folder / "processed" / f"{part}.pt"
    kinds = ((torch.uint8, (4, _HEIGHT, _WIDTH)), (torch.uint8, ()))
    if path.is_file():
        pictures, old_digest = cache.load(path, kinds, "the pictures", aligned=1)
        if torch.equal(old_digest, digest):
            return pictures
    with cache.bytes_on_disk(path.parent, (len(files), 4, _HEIGHT, _WIDTH)) as data:
        with progress(f"Preparing CamVid ({part}), once", len(files)) as advance:
            for row, image, label in zip(data, files, labels, strict=True):
                row[:_LABEL] = _sized(read_image(image), image)
                row[_LABEL] = _read_classes(label, colours)
                advance(1)
        cache.store(path, (torch.from_numpy(data), digest))
    return cache.load(path, kinds, "the pictures", aligned=1)[0]


def _sized(image: Tensor, path: Path) -> npt.NDArray[np.uint8]:
    """Return a picture; DatasetError E625 unless it has the size of all pictures of CamVid."""
    height, width = image.shape[1:]
    if (height, width) != (_HEIGHT, _WIDTH):
        raise DatasetError(
            "E625",
            f"it has {width}x{height} pixels; it must have {_WIDTH}x{_HEIGHT}",
            str(path),
            REPLACE,
        )
    result: npt.NDArray[np.uint8] = image.numpy()
    return result


def _read_colours(path: Path) -> dict[int, int]:
    """Return the class (index of CLASSES) of each colour, red * 65536 + green * 256 + blue."""
    if not path.is_file():
        raise DatasetError("E620", "the table of the colours is missing", str(path), _LAYOUT)
    try:
        file = io.StringIO(read_text(path, MAX_TABLE_BYTES, "utf-8-sig"), newline="")
        names = {
            int(row["r"]) << 16 | int(row["g"]) << 8 | int(row["b"]): row["name"].strip()
            for row in csv.DictReader(file, skipinitialspace=True)
        }
    except (KeyError, ValueError, TypeError, AttributeError, csv.Error) as exc:
        raise DatasetError(
            "E613", f"it is no table of name, r, g, b ({exc!r})", str(path), _LAYOUT
        ) from exc
    absent = set(CLASSES) - set(names.values()) - {_NONE}
    if absent:
        raise DatasetError(
            "E625", f"it has no colour for {', '.join(sorted(absent))}", str(path), _LAYOUT
        )
    return {colour: CLASSES.index(name) for colour, name in names.items() if name in CLASSES}


def _read_classes(path: Path, colours: dict[int, int]) -> npt.NDArray[np.uint8]:
    """Return the class of each pixel [720, 960]; DatasetError E625 when most have other colours."""
    with opened(path) as image:
        pixels = np.array(image.convert("RGB")).astype(np.int64)
    _sized(torch.from_numpy(pixels).permute(2, 0, 1), path)
    values, places = np.unique(pixels @ [65536, 256, 1], return_inverse=True)
    none = CLASSES.index(_NONE)
    classes = np.array([colours.get(int(v), none) for v in values], np.uint8)
    class_map = classes[places].reshape(_HEIGHT, _WIDTH)
    if np.mean(class_map == none) > 0.5:
        raise DatasetError(
            "E625",
            "most of its colours are not in class_dict.csv",
            str(path),
            "Compare it with the table, or take the picture out of the folder.",
        )
    return class_map


def _part(cutting: Cutting, three: bool, folder: Path, args: Any, training: bool) -> SquareDataset:
    """Return a part; with `three` it has classes 0 to 2 and 3 for all others."""
    classes = torch.arange(len(CLASSES))
    if three:
        classes = torch.tensor([_THREE.index(n) if n in _THREE else len(_THREE) for n in CLASSES])
    pictures = _pictures(folder / "CamVid", "train" if training else "test")
    overlap = cutting.train if training else cutting.test
    return SquareDataset(pictures, cutting, overlap, classes, args)


S80 = Cutting(80, (20, 20), (20, 20))
S352 = Cutting(352, (168, 150), (0, 54), fold=4)

datasets = [
    {
        "name": f"CamVid_s{cutting.size}_c{3 if three else 33}",
        "input": (3 * cutting.fold**2, cutting.size // cutting.fold, cutting.size // cutting.fold),
        "output": (0, 1, 2, 3) if three else CLASSES,
        "loader": loader(_part, cutting, three),
        "fold_ratio": cutting.fold,
        **({"weight": weight} if three else {}),
    }
    for cutting, weight in ((S80, (1, 1, 1, 0.14)), (S352, (1, 1, 1, 1)))
    for three in (False, True)
]

"""VGGFace2: photographs of faces, cut out and aligned, or with their boxes.

Pictures are decoded when they are needed; where a face is, and its eyes, nose and mouth, stands in
the tables that come with the data set.
Source: docs/datasets.md, "Faces".
"""

from __future__ import annotations

import csv
import io
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np
import numpy.typing as npt
import torch
from torch import Tensor

import ai8x
from ai8xtools.reading import MIB, read_text
from datasets.boxes import Objects, collate, mirrored
from datasets.errors import DatasetError
from datasets.image_files import as_tensor, opened, recoloured
from datasets.parts import SampleSet, is_held_back, loader, train_and_test

if TYPE_CHECKING:
    from PIL.Image import Image

_MOST_BYTES = 1024 * MIB  # of a table: three million rows
_IDENTITIES = 8631
_HELD_BACK = 10  # percent of the pictures of an identity that test
_TEMPLATE = np.array(  # eyes, nose, corners of the mouth in an aligned face of 112x112 (ArcFace)
    [[38.29, 51.70], [73.53, 51.50], [56.03, 71.74], [41.55, 92.37], [70.73, 92.20]]
)
_TEMPLATE_SIZE = 112
_COLOUR = 0.2  # contrast, brightness and saturation vary by it
_ERASED = 0.3  # side of the erased part at most
_MARGIN = 0.1  # of the box, on each side
_LAYOUT = (
    "Expected in the folder VGGFace-2 of --data: train and test with a folder of pictures for each "
    "identity (n000002, ...), and bb_landmark with loose_bb_train.csv, loose_bb_test.csv, "
    "loose_landmark_train.csv and loose_landmark_test.csv. Source: VGGFace2 of the Visual Geometry "
    "Group, University of Oxford (Cao et al. 2018)."
)


@dataclass(frozen=True, slots=True)
class Face:
    """A picture, the folder of its identity, its box (x, y, width, height), its five landmarks."""

    path: Path
    identity: str
    box: tuple[float, float, float, float]
    landmarks: tuple[float, ...]


def read_faces(folder: Path, part: str) -> list[Face]:
    """Return the faces of a part in the order of the table of boxes.

    Raises DatasetError: E620 without a table or a picture, E613 when a table is damaged, E625 for a
    face without size or landmarks, E620 for an empty table.
    """
    boxes = _table(folder / "bb_landmark" / f"loose_bb_{part}.csv", 4)
    marks = _table(folder / "bb_landmark" / f"loose_landmark_{part}.csv", 10)
    faces = []
    for name, box in boxes.items():
        path = folder / part / f"{name}.jpg"
        if not path.is_file():
            raise DatasetError("E620", "the picture of a face is missing", str(path), _LAYOUT)
        if min(box[2:]) <= 0 or name not in marks:
            what = "has no landmarks" if name not in marks else f"has a box of {box[2:]}"
            raise DatasetError("E625", f"the face {name} {what}", str(path), _LAYOUT)
        x, y, width, height = box
        faces.append(Face(path, path.parent.name, (x, y, width, height), marks[name]))
    if not faces:
        raise DatasetError("E620", "the tables have no faces", str(folder), _LAYOUT)
    return faces


def _table(path: Path, columns: int) -> dict[str, tuple[float, ...]]:
    """Return the numbers of each face by its name, identity/picture."""
    if not path.is_file():
        raise DatasetError("E620", "the table of the faces is missing", str(path), _LAYOUT)
    faces = {}
    try:
        text = read_text(path, _MOST_BYTES, encoding="utf-8-sig")
        with io.StringIO(text) as file:
            rows = csv.reader(file, skipinitialspace=True)
            next(rows, None)
            for row in rows:
                if not row:
                    continue
                numbers = tuple(float(cell) for cell in row[1:])
                if len(numbers) != columns or not np.isfinite(numbers).all():
                    raise ValueError(f"line {rows.line_num} has no {columns} numbers")
                if ".." in row[0] or row[0].startswith(("/", "\\")):
                    raise ValueError(f"line {rows.line_num}: {row[0]!r} is no name of a picture")
                faces[row[0]] = numbers
    except (ValueError, csv.Error) as exc:  # UnicodeDecodeError, too
        raise DatasetError("E613", f"it is no table of faces ({exc})", str(path), _LAYOUT) from exc
    return faces


def cut_out(image: Image, face: Face, height: int, width: int) -> Tensor:
    """Return the face with some margin, uint8 [3, height, width]."""
    x, y, across, down = face.box
    margin_x, margin_y = across * _MARGIN, down * _MARGIN
    window = (x - margin_x, y - margin_y, x + across + margin_x, y + down + margin_y)
    cut = image.convert("RGB").crop(tuple(round(v) for v in window))  # type: ignore[arg-type]
    return as_tensor(cut.resize((width, height)))


def aligned(image: Image, face: Face, height: int, width: int) -> Tensor:
    """Return the face with eyes, nose and mouth at fixed places, uint8 [3, height, width]."""
    from PIL.Image import Resampling, Transform

    scale = min(height, width) / _TEMPLATE_SIZE
    places = _TEMPLATE * scale + [
        (width - min(height, width)) / 2,
        (height - min(height, width)) / 2,
    ]
    matrix = similarity(places, np.array(face.landmarks).reshape(-1, 2))
    turned = image.convert("RGB").transform(
        (width, height), Transform.AFFINE, tuple(matrix.ravel()), Resampling.BILINEAR
    )
    return as_tensor(turned)


def similarity(
    source: npt.NDArray[np.float64], target: npt.NDArray[np.float64]
) -> npt.NDArray[np.float64]:
    """Return the turn, scale and shift [2, 3] that bring points [n, 2] nearest to others."""
    x, y = source.T
    one, none = np.ones_like(x), np.zeros_like(x)
    rows = np.concatenate([np.stack([x, -y, one, none], 1), np.stack([y, x, none, one], 1)])
    a, b, right, down = np.linalg.lstsq(rows, target.T.ravel(), rcond=None)[0]
    return np.array([[a, -b, right], [b, a, down]])


class FaceDataset(SampleSet[tuple[Tensor, Tensor]]):
    """Faces as items of six channels [6, H, W]: cut out (0..2) and aligned (3..5).

    The network looks at the former, its teacher at the latter; there is no label. Training mirrors
    half of them, and recolours and partly erases what the network sees.
    """

    def __init__(self, faces: list[Face], size: tuple[int, int], args: Any, augment: bool) -> None:
        self.faces, self.length = faces, len(faces)
        self.size = size
        self.augment = augment
        self.normalize = ai8x.normalize(args)

    def __getitem__(self, index: int) -> tuple[Tensor, Tensor]:
        face = self.faces[index]
        with opened(face.path) as image:
            pixels = torch.cat([cut_out(image, face, *self.size), aligned(image, face, *self.size)])
        item = pixels.to(torch.float32).div_(255)
        if self.augment:
            item = item.flip(2) if int(torch.randint(2, ())) else item
            item[:3] = _erased(recoloured(item[:3], _COLOUR))
        return self.normalize(item), torch.zeros(1)


class IdentityDataset(SampleSet[tuple[Tensor, int]]):
    """Aligned faces [3, 112, 112] and the number of the identity; training mirrors half of them."""

    def __init__(self, faces: list[Face], identities: list[str], args: Any, augment: bool) -> None:
        self.faces, self.length = faces, len(faces)
        self.numbers = {name: number for number, name in enumerate(identities)}
        self.augment = augment
        self.normalize = ai8x.normalize(args)

    def __getitem__(self, index: int) -> tuple[Tensor, int]:
        face = self.faces[index]
        with opened(face.path) as image:
            item = aligned(image, face, 112, 112).to(torch.float32).div_(255)
        if self.augment and int(torch.randint(2, ())):
            item = item.flip(2)
        return self.normalize(item), self.numbers[face.identity]


class FaceBoxDataset(SampleSet[tuple[Tensor, Objects]]):
    """Whole pictures scaled to [3, 224, 168] with the box of the face, label 1."""

    height, width = 224, 168

    def __init__(self, faces: list[Face], args: Any, augment: bool) -> None:
        self.faces, self.length = faces, len(faces)
        self.augment = augment
        self.normalize = ai8x.normalize(args)

    def __getitem__(self, index: int) -> tuple[Tensor, Objects]:
        face = self.faces[index]
        with opened(face.path) as image:
            across, down = image.size
            pixels = as_tensor(image.convert("RGB").resize((self.width, self.height)))
        x, y, width, height = face.box
        box = torch.tensor([[x / across, y / down, (x + width) / across, (y + height) / down]])
        box.clamp_(0, 1)
        item = pixels.to(torch.float32).div_(255)
        if self.augment:
            item = recoloured(item, _COLOUR)
            if int(torch.randint(2, ())):
                item, box = item.flip(2), mirrored(box)
        return self.normalize(item), (box, torch.ones(1, dtype=torch.int64))


def _erased(picture: Tensor) -> Tensor:
    """Fill a rectangle of a picture with noise, half of the time."""
    if int(torch.randint(2, ())):
        _, height, width = picture.shape
        down, across = (int(s * float(torch.rand(()))) for s in (height * _ERASED, width * _ERASED))
        top = int(torch.randint(height - down + 1, ()))
        left = int(torch.randint(width - across + 1, ()))
        picture[:, top : top + down, left : left + across] = torch.rand(3, down, across)
    return picture


def _faces(size: tuple[int, int], folder: Path, args: Any, training: bool) -> FaceDataset:
    faces = read_faces(folder / "VGGFace-2", "train" if training else "test")
    return FaceDataset(faces, size, args, training)


def identities_get_datasets(
    data: tuple[str, Any], load_train: bool = True, load_test: bool = True
) -> tuple[IdentityDataset | None, IdentityDataset | None]:
    """Return training and test set of identities: a tenth of the pictures of `train` tests, since
    the identities of `test` are others."""
    folder, args = Path(data[0]) / "VGGFace-2", data[1]
    faces = read_faces(folder, "train")
    identities = sorted({face.identity for face in faces})
    if len(identities) > _IDENTITIES:
        raise DatasetError(
            "E625", f"it has {len(identities)} identities; VGGFace2 has {_IDENTITIES}",
            str(folder / "train"), _LAYOUT,
        )  # fmt: skip

    def part(training: bool) -> IdentityDataset:
        own = [one for one in faces if is_held_back(_name(one), _HELD_BACK) != training]
        return IdentityDataset(own, identities, args, training)

    return train_and_test(part, args, load_train, load_test)


def _name(face: Face) -> str:
    return f"{face.identity}/{face.path.name}"


def _boxes(folder: Path, args: Any, training: bool) -> FaceBoxDataset:
    faces = read_faces(folder / "VGGFace-2", "train" if training else "test")
    return FaceBoxDataset(faces, args, training)


datasets = [
    *(
        {
            "name": name,
            "input": (3, *size),
            "output": ("id",),
            "regression": True,
            "loader": loader(_faces, size),
        }
        for name, size in (
            ("VGGFace2_FaceID", (112, 112)),
            ("VGGFace2_FaceID_160_120", (160, 120)),
        )
    ),
    {
        "name": "VGGFace2_FaceID_dr",
        "input": (3, 112, 112),
        "output": tuple(range(_IDENTITIES)),
        "loader": identities_get_datasets,
    },
    {
        "name": "VGGFace2_FaceDetection",
        "input": (3, FaceBoxDataset.height, FaceBoxDataset.width),
        "output": (1,),
        "loader": loader(_boxes),
        "collate": collate,
    },
]

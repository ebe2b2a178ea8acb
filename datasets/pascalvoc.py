"""PascalVOC 2007 and 2012: photographs with boxes around objects of twenty classes.

Pictures are decoded when they are needed, scaled to 256 rows and 320 columns. Training sees them
recoloured, made smaller on a grey ground or cut, and mirrored.
Source: docs/datasets.md, "Images in folders".
"""

from __future__ import annotations

import xml.etree.ElementTree as ElementTree
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import torch
from torch import Tensor
from torch.nn import functional

import ai8x
from ai8xtools.reading import read_bytes, read_text
from datasets.boxes import Objects, collate, mirrored
from datasets.errors import REPLACE, DatasetError
from datasets.image_files import read_image, recoloured
from datasets.parts import SampleSet, loader

CLASSES = tuple(
    """aeroplane bicycle bird boat bottle bus car cat chair cow diningtable dog horse motorbike
    person pottedplant sheep sofa train tvmonitor""".split()  # noqa: SIM905
)
HEIGHT, WIDTH = 256, 320
_TRAIN = (("VOC2007", "trainval"), ("VOC2012", "trainval"))
_TEST = (("VOC2007", "test"),)
_COLOUR = 0.3  # contrast, brightness and saturation vary by it
_LARGEST = 2.0  # sides of the ground on which a picture is made smaller
_LEAST = 0.5  # sides of what is cut out
_GREY = 0.5
_MOST_BYTES = 1 << 20  # of an annotation
_LAYOUT = (
    "Expected in the folder PascalVOC/VOCdevkit of --data: VOC2007 and VOC2012, each with "
    "Annotations, ImageSets/Main and JPEGImages. Source: VOCtrainval_06-Nov-2007.tar, "
    "VOCtest_06-Nov-2007.tar and VOCtrainval_11-May-2012.tar of "
    "http://host.robots.ox.ac.uk/pascal/VOC."
)


@dataclass(frozen=True, slots=True)
class Scene:
    """A picture and the annotation of its objects."""

    picture: Path
    annotation: Path


class SceneDataset(SampleSet[tuple[Tensor, Objects]]):
    """Pictures [3, 256, 320] with the boxes of their objects and labels from 1."""

    def __init__(self, scenes: list[Scene], args: Any, augment: bool) -> None:
        self.scenes, self.length = scenes, len(scenes)
        self.augment = augment
        self.normalize = ai8x.normalize(args)

    def __getitem__(self, index: int) -> tuple[Tensor, Objects]:
        scene = self.scenes[index]
        picture = read_image(scene.picture).to(torch.float32).div_(255)
        boxes, labels = read_objects(scene.annotation, picture.shape[2], picture.shape[1])
        if self.augment:
            picture, boxes, labels = _varied(picture, boxes, labels)
        sized = functional.interpolate(
            picture[None], (HEIGHT, WIDTH), mode="bilinear", align_corners=False, antialias=True
        )
        return self.normalize(sized[0]), (boxes, labels)


def read_objects(path: Path, width: int, height: int) -> Objects:
    """Return the objects of an annotation in a picture of `width` x `height` pixels.

    Difficult ones are left out. Raises DatasetError E613 when the file is damaged, E625 for an
    object of another class or without a size.
    """
    content = read_bytes(path, _MOST_BYTES)
    try:
        if b"<!" in content:  # neither entities nor comments
            raise ValueError("it declares entities")
        root = ElementTree.fromstring(content)
        objects = [
            (str(item.findtext("name")), [_pixel(item, key) for key in _KEYS])
            for item in root.iter("object")
            if item.findtext("difficult", "0").strip() != "1"
        ]
    except (ElementTree.ParseError, ValueError) as exc:
        raise DatasetError("E613", f"it is no annotation ({exc})", str(path), _LAYOUT) from exc
    for name, (left, top, right, bottom) in objects:
        if name not in CLASSES or left >= right or top >= bottom:
            box = (left, top, right, bottom)
            raise DatasetError(
                "E625", f"the object {name!r} with the box {box} cannot be", str(path), REPLACE
            )
    scale = torch.tensor([width, height, width, height])
    boxes = torch.tensor([box for _, box in objects]).view(-1, 4) / scale
    return boxes.clamp_(0, 1), torch.tensor([CLASSES.index(name) + 1 for name, _ in objects],
                                            dtype=torch.int64)  # fmt: skip


_KEYS = ("xmin", "ymin", "xmax", "ymax")


def _pixel(item: ElementTree.Element, key: str) -> float:
    """Return a side of a box, whose pixels count from 1."""
    value = float(item.findtext(f"bndbox/{key}", ""))
    return value - 1 if key.endswith("min") else value


def _varied(picture: Tensor, boxes: Tensor, labels: Tensor) -> tuple[Tensor, Tensor, Tensor]:
    """Return a picture recoloured, on a larger ground or cut, and mirrored, each at random."""
    picture = recoloured(picture, _COLOUR)
    chance = float(torch.rand(()))
    if chance < 1 / 3:
        picture, boxes = _expanded(picture, boxes)
    elif chance < 2 / 3:
        picture, boxes, labels = _cut(picture, boxes, labels)
    if int(torch.randint(2, ())):
        picture, boxes = picture.flip(2), mirrored(boxes)
    return picture, boxes, labels


def _expanded(picture: Tensor, boxes: Tensor) -> tuple[Tensor, Tensor]:
    """Put a picture somewhere on a larger grey ground."""
    _, height, width = picture.shape
    scale = float(torch.empty(()).uniform_(1, _LARGEST))
    rows, columns = int(height * scale), int(width * scale)
    top = int(torch.randint(rows - height + 1, ()))
    left = int(torch.randint(columns - width + 1, ()))
    ground = torch.full((3, rows, columns), _GREY)
    ground[:, top : top + height, left : left + width] = picture
    pixels = boxes * torch.tensor([width, height, width, height])
    moved = pixels + torch.tensor([left, top, left, top])
    return ground, moved / torch.tensor([columns, rows, columns, rows])


def _cut(picture: Tensor, boxes: Tensor, labels: Tensor) -> tuple[Tensor, Tensor, Tensor]:
    """Cut a window that holds the centre of an object; objects whose centre is outside are lost."""
    _, height, width = picture.shape
    rows, columns = (
        max(1, int(s * float(torch.empty(()).uniform_(_LEAST, 1)))) for s in (height, width)
    )
    top = int(torch.randint(height - rows + 1, ()))
    left = int(torch.randint(width - columns + 1, ()))
    window = torch.tensor([left / width, top / height])
    extent = torch.tensor([columns / width, rows / height])
    centres = (boxes[:, :2] + boxes[:, 2:]) / 2
    kept = ((centres > window) & (centres < window + extent)).all(1)
    if not kept.any():
        return picture, boxes, labels
    moved = (boxes[kept] - window.repeat(2)) / extent.repeat(2)
    cut = picture[:, top : top + rows, left : left + columns]
    return cut, moved.clamp(0, 1), labels[kept]


def _scenes(folder: Path, parts: tuple[tuple[str, str], ...]) -> list[Scene]:
    """Return the scenes of the lists `parts` (year, list)."""
    scenes = []
    for year, part in parts:
        path = folder / year / "ImageSets" / "Main" / f"{part}.txt"
        if not path.is_file():
            raise DatasetError("E620", "the list of the pictures is missing", str(path), _LAYOUT)
        for name in read_text(path, _MOST_BYTES, errors="replace").split():
            if not name.replace("_", "").isalnum():
                raise DatasetError("E613", f"{name!r} is no name of a picture", str(path), _LAYOUT)
            scene = Scene(
                folder / year / "JPEGImages" / f"{name}.jpg",
                folder / year / "Annotations" / f"{name}.xml",
            )
            for file in (scene.picture, scene.annotation):
                if not file.is_file():
                    raise DatasetError("E620", "the file is missing", str(file), _LAYOUT)
            scenes.append(scene)
    if not scenes:
        raise DatasetError("E620", "the lists name no pictures", str(folder), _LAYOUT)
    return scenes


def _part(folder: Path, args: Any, training: bool) -> SceneDataset:
    scenes = _scenes(folder / "PascalVOC" / "VOCdevkit", _TRAIN if training else _TEST)
    return SceneDataset(scenes, args, augment=training)


pascalvoc_get_datasets = loader(_part)
"""Load trainval of both years, and test of 2007."""


datasets = [
    {
        "name": "PascalVOC_2007_2012_256_320_augmented",
        "input": (3, HEIGHT, WIDTH),
        "output": CLASSES,
        "loader": pascalvoc_get_datasets,
        "collate": collate,
    }
]

"""qrcode: made-up pictures of 120x160 with QR codes, seen from all sides.

Nothing is stored: a picture follows from its number. The ground is noise in colour, or a part of a
picture of your own in the folder qrcode of --data.
Source: docs/datasets.md, "Images in folders".
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np
import numpy.typing as npt
import torch
from torch import Tensor

import ai8x
from datasets.boxes import collate
from datasets.errors import library
from datasets.image_files import image_files, opened
from datasets.parts import SampleSet, loader

if TYPE_CHECKING:
    from PIL.Image import Image

HEIGHT, WIDTH = 120, 160
_TRAIN, _TEST = 20_000, 2_000
_PLAIN = 0.05  # sides of codes move by this part of them, as seen from aside
_LETTERS = "ABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789"

Target = tuple[Tensor, ...]
"""Boxes float32 [n, 4], with key points float32 [n, 8] (x and y of four corners), labels [n]."""


@dataclass(frozen=True, slots=True)
class Scenes:
    """What pictures show: `most` codes, whose corners move by `slant` of their side at most.

    `points` is whether targets have the corners.
    """

    name: str
    points: bool
    most: int = 1
    slant: float = _PLAIN


class CodeDataset(SampleSet[tuple[Tensor, Target]]):
    """Pictures [3, 120, 160] with QR codes; a picture follows from `first` + its number."""

    def __init__(
        self, scenes: Scenes, first: int, count: int, grounds: Sequence[Path], args: Any
    ) -> None:
        library("segno", "draws QR codes", "datasets/qrcode.py")
        self.scenes = scenes
        self.first, self.length = first, count
        self.grounds = grounds
        self.normalize = ai8x.normalize(args)

    def __getitem__(self, index: int) -> tuple[Tensor, Target]:
        if not 0 <= index < self.length:
            raise IndexError(index)
        rng = np.random.default_rng(self.first + index)
        picture = _ground(self.grounds, rng)
        corners: list[npt.NDArray[np.float64]] = []
        for _ in range(int(rng.integers(1, self.scenes.most + 1))):
            place = _place(corners, self.scenes.slant, rng)
            if place is not None:
                picture = _drawn(picture, place, rng)
                corners.append(place)
        pixels = torch.from_numpy(_lit(np.asarray(picture, np.float32) / np.float32(255), rng))
        item = self.normalize(pixels.permute(2, 0, 1))
        points = np.stack(corners) / [WIDTH, HEIGHT]
        boxes = np.concatenate([points.min(1), points.max(1)], 1).clip(0, 1)
        labels = torch.ones(len(points), dtype=torch.int64)
        box_tensor = torch.from_numpy(boxes).to(torch.float32)
        if not self.scenes.points:
            return item, (box_tensor, labels)
        return item, (box_tensor, torch.from_numpy(points.reshape(-1, 8)).to(torch.float32), labels)


def _ground(files: Sequence[Path], rng: np.random.Generator) -> Image:
    """Return a picture of 160x120 without codes."""
    from PIL import Image

    if files:
        with opened(files[int(rng.integers(len(files)))]) as image:
            scaled = image.convert("RGB").resize((2 * WIDTH, 2 * HEIGHT))
            left, top = int(rng.integers(WIDTH + 1)), int(rng.integers(HEIGHT + 1))
            return scaled.crop((left, top, left + WIDTH, top + HEIGHT))
    size = int(rng.integers(2, 12))
    coarse = rng.integers(0, 256, (size, size, 3), dtype=np.uint8)
    return Image.fromarray(coarse).resize((WIDTH, HEIGHT))


def _place(
    taken: Sequence[npt.NDArray[np.float64]], slant: float, rng: np.random.Generator
) -> npt.NDArray[np.float64] | None:
    """Return corners [4, 2] of a code in the picture, clockwise from the code's upper left, or None
    where there is no room beside others."""
    side = rng.uniform(24, 100 if not taken else 50)
    angle = rng.uniform(0, 2 * np.pi)
    square = np.array([[-1, -1], [1, -1], [1, 1], [-1, 1]]) * side / 2
    square = square + rng.uniform(-slant, slant, (4, 2)) * side
    turn = np.array([[np.cos(angle), np.sin(angle)], [-np.sin(angle), np.cos(angle)]])
    turned = square @ turn
    low, high = turned.min(0), turned.max(0)
    room = np.array([WIDTH, HEIGHT]) - (high - low)
    if room.min() <= 0:  # turned squares may be larger than the picture
        turned = turned * (0.9 * np.min(np.array([WIDTH, HEIGHT]) / (high - low)))
        low, high = turned.min(0), turned.max(0)
        room = np.array([WIDTH, HEIGHT]) - (high - low)
    place: npt.NDArray[np.float64] = turned - low + rng.uniform(0, 1, 2) * room
    for other in taken:
        if (place.min(0) < other.max(0)).all() and (other.min(0) < place.max(0)).all():
            return None
    return place


def _drawn(picture: Image, corners: npt.NDArray[np.float64], rng: np.random.Generator) -> Image:
    """Return the picture with a code of a random text between four corners."""
    from PIL import Image
    from PIL.Image import Resampling, Transform

    text = "".join(rng.choice(list(_LETTERS), int(rng.integers(4, 40))))
    segno = library("segno", "draws QR codes", "datasets/qrcode.py")
    modules = np.array([list(row) for row in segno.make(text, micro=False).matrix_iter(border=1)])
    scale = 8  # pixels of a module, so that slanted edges are smooth
    dark, light = rng.integers(0, 70), rng.integers(180, 256)
    shades = np.where(modules, dark, light).astype(np.uint8).repeat(scale, 0).repeat(scale, 1)
    side = len(shades)
    inside = side / len(modules)  # the border of one module lies outside the corners
    square = np.array([[0, 0], [1, 0], [1, 1], [0, 1]]) * (side - 2 * inside) + inside
    numbers = tuple(projection(corners, square))
    code = Image.fromarray(shades).transform(
        (WIDTH, HEIGHT), Transform.PERSPECTIVE, numbers, Resampling.BICUBIC
    )
    mask = Image.new("L", (side, side), 255).transform(
        (WIDTH, HEIGHT), Transform.PERSPECTIVE, numbers, Resampling.BILINEAR
    )
    result = picture.copy()
    result.paste(code.convert("RGB"), mask=mask)
    return result


def projection(
    source: npt.NDArray[np.float64], target: npt.NDArray[np.float64]
) -> npt.NDArray[np.float64]:
    """Return the eight numbers of the projection that brings four points [4, 2] to four others."""
    rows, values = [], []
    for (x, y), (u, v) in zip(source, target, strict=True):
        rows += [[x, y, 1, 0, 0, 0, -u * x, -u * y], [0, 0, 0, x, y, 1, -v * x, -v * y]]
        values += [u, v]
    return np.linalg.solve(np.array(rows), np.array(values))


def _lit(picture: npt.NDArray[np.float32], rng: np.random.Generator) -> npt.NDArray[np.float32]:
    """Return a picture [H, W, 3] of 0..1 in other light, with a shadow and noise."""
    across = np.linspace(-1, 1, WIDTH) * rng.uniform(-0.3, 0.3)
    down = np.linspace(-1, 1, HEIGHT)[:, None] * rng.uniform(-0.3, 0.3)
    light = rng.uniform(0.6, 1.2) + across + down
    noise = rng.normal(0, rng.uniform(0, 0.04), picture.shape)
    result = np.clip(picture * light[:, :, None] + noise, 0, 1)
    return result.astype(np.float32)


def _part(scenes: Scenes, folder: Path, args: Any, training: bool) -> CodeDataset:
    own = folder / "qrcode"
    grounds = image_files(own, "Put pictures there, or delete it.") if own.is_dir() else []
    first, count = (_TEST, _TRAIN) if training else (0, _TEST)
    return CodeDataset(scenes, first, count, grounds, args)


datasets = [
    {
        "name": scenes.name,
        "input": (3, HEIGHT, WIDTH),
        "output": (1,),
        "loader": loader(_part, scenes),
        "collate": collate,
    }
    for scenes in (
        Scenes("qrcode_160_120", points=False),
        Scenes("qrcode_160_120_kpts", points=True),
        Scenes("qrcode_160_120_kpts_ext", points=True, most=3, slant=0.2),
    )
]

"""Boxes around objects, in the files of COCO (JSON) or of YOLO (a text beside each picture).

Source: docs/own-data.md, "Boxes".
"""

from __future__ import annotations

import json
import math
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import torch
from torch import Tensor

from ai8xtools.reading import MIB, read_text
from ai8xtools.reading.system import in_order
from ai8xtools.reading.text import line
from datasets.errors import DatasetError
from datasets.own.folders import TRAIN
from datasets.own.marked import (
    IMAGES,
    NAMES,
    TESTS,
    Marked,
    beside,
    class_names,
    divided,
    part_folders,
    pictures_in,
    refused,
)
from datasets.own.pictures import opened, size_of
from datasets.own.preparation import Preparation, cut
from datasets.own.settings import DataSettings

_LABELS, _ANNOTATIONS = "labels", "annotations"
_MAX_BYTES = 256 * MIB
_SLACK = 0.005
"""A box may reach beyond its picture by this part of it, because tools round."""
LEAST = 0.5
"""An object of which less is left by --resize is none."""
_LAYOUT = (
    "Put one file of COCO (.json) into the folder, or a text of YOLO beside each picture, or both "
    "into images and labels; see docs/own-data.md."
)


@dataclass(frozen=True, slots=True)
class Box:
    """An object: `label` from 1, and corners as parts of the picture."""

    label: int
    corners: tuple[float, float, float, float]


@dataclass(frozen=True, slots=True)
class Annotation:
    """What is marked on a picture; `size` are the rows and columns that the file claims."""

    boxes: tuple[Box, ...]
    size: tuple[int, int] | None = None


class BoxLists:
    """The objects of pictures: for each boxes float32 [n, 4], corners of 0..1, and labels int64 [n]
    from 1."""

    def __init__(self, items: Sequence[tuple[Tensor, Tensor]]) -> None:
        self._items = list(items)

    def __len__(self) -> int:
        return len(self._items)

    def __getitem__(self, indices: Any) -> Any:
        if isinstance(indices, Tensor):
            return [self._items[index] for index in indices.tolist()]
        part = self._items[indices]
        return BoxLists(part) if isinstance(indices, slice) else part


def boxed_pictures(folder: Path, settings: DataSettings) -> Marked:
    """Return the pictures of a folder with their annotations.

    Raises DatasetError: E620 for what is missing, E683 for classes that do not fit, E688 for boxes
    that cannot be; as `part_folders`, `class_names` and `divided`.
    """
    places = part_folders(folder)
    files = _coco_files(folder, places)
    if files:
        classes, parts = _of_coco(folder, files)
    else:
        classes = class_names(folder / NAMES)
        parts = [[*_of_yolo(folder, part, classes)] for part in places]
    if not all(parts):
        raise DatasetError("E620", "the folder has no pictures with boxes", str(folder), _LAYOUT)
    train, test = divided(folder, parts, settings)
    return Marked(classes, tuple(train), tuple(test))


def _coco_files(folder: Path, places: Sequence[Path]) -> list[Path]:
    """Return the files for training and for tests, or the one for all; none if there are none."""
    if len(places) == 2:
        each = [in_order(place.glob("*.json")) for place in places]
        if any(each) and not all(len(part) == 1 for part in each):
            raise DatasetError("E620", "each of these folders needs one .json", str(places[0]),
                               _LAYOUT)  # fmt: skip
        return [part[0] for part in each if part]
    files = in_order([*folder.glob("*.json"), *(folder / _ANNOTATIONS).glob("*.json")])
    train = [file for file in files if TRAIN in file.stem]
    tests = [file for file in files if any(word in file.stem for word in TESTS)]
    if len(files) > 1 and not len(files) == len(train) + len(tests) == 2:
        raise DatasetError(
            "E620", f"there are {len(files)} files, {', '.join(f.name for f in files[:4])}, and it "
            f"is not clear which is for training", str(folder), _LAYOUT,
        )  # fmt: skip
    return [*train, *tests] if len(files) == 2 else files


def _of_coco(
    folder: Path, files: Sequence[Path]
) -> tuple[tuple[str, ...], list[list[tuple[Path, Annotation]]]]:
    contents = [_content(file) for file in files]
    named = [
        _table(c, "categories", f, ("id", "name")) for c, f in zip(contents, files, strict=True)
    ]
    names = [{entry["id"]: line(str(entry["name"])) for entry in table} for table in named]
    for file, other in zip(files[1:], names[1:], strict=True):
        if other != names[0]:
            raise DatasetError("E683", f"its categories are not those of {files[0]}", str(file),
                               "Give both files the same categories.")  # fmt: skip
    entries = _table(contents[0], "annotations", files[0], ("image_id", "category_id", "bbox"))
    used = {entry["category_id"] for entry in entries if not entry.get("iscrowd")}
    numbers = sorted(number for number in names[0] if number in used)
    if not numbers:
        raise refused(files[0], "no annotation is of one of its categories", _LAYOUT)
    labels = {number: label for label, number in enumerate(numbers, 1)}
    parts = [
        _pictures(folder, file, content, labels)
        for file, content in zip(files, contents, strict=True)
    ]
    return tuple(names[0][number] for number in numbers), parts


def _content(file: Path) -> dict[str, Any]:
    try:
        content = json.loads(read_text(file, _MAX_BYTES))
    except (ValueError, RecursionError) as exc:  # also UnicodeDecodeError
        raise refused(file, f"it is no JSON ({line(str(exc))})", "Export it again.") from exc
    if not isinstance(content, dict):
        raise refused(file, "it is no file of COCO: it has no images and annotations", _LAYOUT)
    return content


def _table(
    content: dict[str, Any], key: str, file: Path, keys: Sequence[str]
) -> list[dict[str, Any]]:
    """Return a list of entries that have all keys; DatasetError E688 for others."""
    table = content.get(key)
    if not isinstance(table, list):
        raise refused(file, f"it is no file of COCO: it has no list {key}", _LAYOUT)
    for number, entry in enumerate(table):
        missing = [k for k in keys if not isinstance(entry, dict) or k not in entry]
        named = [k for k in keys if k.endswith("id")]
        wrong = missing or [k for k in named if not isinstance(entry[k], int | str)]
        if wrong:
            raise refused(f"{file}: {key}[{number}]", f"it has no {wrong[0]}",
                          "Export the file again.")  # fmt: skip
    return table


def _pictures(
    folder: Path, file: Path, content: dict[str, Any], labels: dict[Any, int]
) -> list[tuple[Path, Annotation]]:
    images = _table(content, "images", file, ("id", "file_name", "width", "height"))
    boxes: dict[Any, list[Box]] = {entry["id"]: [] for entry in images}
    sizes = {}
    for n, entry in enumerate(images):
        size = entry["height"], entry["width"]
        if not all(isinstance(side, int) and side > 0 for side in size):
            raise refused(f"{file}: images[{n}]", f"its size is {size[1]}x{size[0]}", "Correct it.")
        sizes[entry["id"]] = size
    entries = _table(content, "annotations", file, ("image_id", "category_id", "bbox"))
    for n, entry in enumerate(entries):
        place = f"{file}: annotations[{n}]"
        if entry.get("iscrowd"):
            continue
        if entry["image_id"] not in boxes:
            raise refused(place, f"there is no image {entry['image_id']!r}", "Export it again.")
        if entry["category_id"] not in labels:
            raise DatasetError("E683", f"there is no class {entry['category_id']!r} in training",
                               place, "Compare the categories.")  # fmt: skip
        bbox = entry["bbox"]
        if not (isinstance(bbox, list) and len(bbox) == 4
                and all(type(v) in (int, float) for v in bbox)):  # fmt: skip
            raise refused(place, f"its bbox is {line(str(bbox), 60)}",
                          "It is left, top, width, height in pixels.")  # fmt: skip
        (height, width), (x, y, w, h) = sizes[entry["image_id"]], bbox
        corners = x / width, y / height, (x + w) / width, (y + h) / height
        boxes[entry["image_id"]].append(_checked(place, labels[entry["category_id"]], corners))
    pictures = []
    own = in_order(p for p in folder.iterdir() if p.is_dir() and p.name in file.stem)
    places = (file.parent, file.parent / IMAGES, folder / IMAGES, folder, *own)
    for entry in images:
        name = str(entry["file_name"])
        path = next((p / name for p in places if (p / name).is_file()), None)
        if path is None:
            raise DatasetError("E620", f"the picture {line(name)} is missing", str(file),
                               "Put it beside the file, or into images.")  # fmt: skip
        pictures.append((path, Annotation(tuple(boxes[entry["id"]]), sizes[entry["id"]])))
    return pictures


def _of_yolo(root: Path, part: Path, classes: tuple[str, ...]) -> Iterator[tuple[Path, Annotation]]:
    used = set()
    for picture in pictures_in(part):
        text = beside(picture, root, _LABELS) / f"{picture.stem}.txt"
        used.add(text)
        try:
            lines = read_text(text, _MAX_BYTES).split("\n")
        except FileNotFoundError as exc:
            raise DatasetError(
                "E620", f"the file with the boxes of {picture} is missing", str(text),
                "Add it; an empty one says that the picture shows no object.",
            ) from exc  # fmt: skip
        except UnicodeDecodeError as exc:
            raise refused(text, "it is no text", "Export it again.") from exc
        yield picture, Annotation(tuple(
            _box_of(f"{text}:{n}", words.split(), len(classes))
            for n, words in enumerate(lines, 1) if words.strip()
        ))  # fmt: skip
    for place in in_order({text.parent for text in used}):
        for text in in_order(place.glob("*.txt")):
            if text not in used and text.name != NAMES and not text.name.startswith("README"):
                raise DatasetError("E620", "the picture of these boxes is missing", str(text),
                                   _LAYOUT)  # fmt: skip


def _box_of(place: str, words: Sequence[str], classes: int) -> Box:
    """Return the box of a line; DatasetError E688 for another one."""
    remedy = "A line has class, centre x, centre y, width and height, as parts of the picture."
    if len(words) != 5:
        raise refused(place, f"it has {len(words)} numbers, not 5", remedy)
    try:
        label, (x, y, w, h) = int(words[0]), map(float, words[1:])
    except ValueError as exc:
        raise refused(place, f"{line(' '.join(words), 60)!r} has something else than numbers",
                      remedy) from exc  # fmt: skip
    if not 0 <= label < classes:
        raise DatasetError("E683", f"the class is {label}, but {NAMES} has {classes}, from 0",
                           place, f"Name all classes in {NAMES}.")  # fmt: skip
    return _checked(place, label + 1, (x - w / 2, y - h / 2, x + w / 2, y + h / 2))


def _checked(place: str, label: int, corners: tuple[float, float, float, float]) -> Box:
    """Return a box, cut at the edge of the picture; DatasetError E688 for one beyond it."""
    left, top, right, bottom = corners
    shown = ", ".join(f"{value:.4g}" for value in corners)
    if not all(map(math.isfinite, corners)) or right <= left or bottom <= top:
        raise refused(place, f"the box has no size (left, top, right, bottom: {shown} of the "
                      "picture)", "Correct or remove it.")  # fmt: skip
    if min(left, top) < -_SLACK or max(right, bottom) > 1 + _SLACK:
        raise refused(place, "the box is outside of the picture (left, top, right, bottom: "
                      f"{shown} of it)", "Correct or remove it.")  # fmt: skip
    return Box(label, (max(left, 0.0), max(top, 0.0), min(right, 1.0), min(bottom, 1.0)))


def read_boxes(pairs: Sequence[tuple[Path, Annotation]], how: Preparation) -> tuple[BoxLists, str]:
    """Return the objects of pictures that are scaled and cut as `how` says, and a note on them.

    Raises DatasetError E625 for a picture of another size than its file claims.
    """
    items, lost = [], 0
    for picture, annotation in pairs:
        with opened(picture) as image:
            size = size_of(image)
        if annotation.size not in (None, size):
            rows, columns = annotation.size or size
            raise DatasetError(
                "E625", f"the picture has {size[1]}x{size[0]} pixels, its boxes are of one of "
                f"{columns}x{rows}", str(picture), "Export picture and boxes again.",
            )  # fmt: skip
        scaled, left, top = cut((size[1], size[0]), *how.shape[1:], how.stretch)
        corners = torch.tensor([b.corners for b in annotation.boxes], dtype=torch.float64)
        corners = corners.reshape(-1, 4) * torch.tensor((*scaled, *scaled))
        corners = corners - torch.tensor((left, top, left, top))
        corners = corners / torch.tensor((*how.shape[:0:-1], *how.shape[:0:-1]))
        boxes, kept = within(corners, LEAST)
        labels = torch.tensor([b.label for b in annotation.boxes], dtype=torch.int64)
        lost += int((~kept).sum())
        items.append((boxes[kept].float(), labels[kept]))
    count = sum(len(labels) for _, labels in items)
    cut_off = f"; {lost} objects more are cut off" if lost else ""
    return BoxLists(items), f"pictures with {count} objects{cut_off}"


def within(boxes: Tensor, least: float) -> tuple[Tensor, Tensor]:
    """Return boxes [n, 4] cut to 0..1, and of which of them at least this part is left, [n]."""
    inside = boxes.clamp(0, 1)
    areas = [((part[:, 2:] - part[:, :2]).clamp(min=0)).prod(1) for part in (inside, boxes)]
    return inside, areas[0] >= least * areas[1]

"""Pictures with marks of a person's beside them: where these lie, and which are for tests.

Source: docs/own-data.md, "Masks".
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np

from ai8xtools.reading import MIB, read_text, where_else
from ai8xtools.reading.system import in_order
from ai8xtools.reading.text import line
from datasets.errors import DatasetError
from datasets.own.folders import TEST, TRAIN
from datasets.own.labels import refuse_part, tested
from datasets.own.pictures import ENDINGS
from datasets.own.settings import DataSettings

IMAGES = "images"
TESTS = (TEST, "valid", "val")
"""Folders of the pictures for tests; the first that is there."""
NAMES = "classes.txt"


@dataclass(frozen=True, slots=True)
class Marked:
    """The names of the classes, and pictures for training and for tests with the mask's file or the
    `boxes.Annotation` of each."""

    classes: tuple[str, ...]
    train: tuple[tuple[Path, Any], ...]
    test: tuple[tuple[Path, Any], ...]


def refused(place: Path | str, message: str, remedy: str) -> DatasetError:
    """Return the error about marks that cannot be used."""
    return DatasetError("E688", message, str(place), remedy)


def part_folders(folder: Path) -> list[Path]:
    """Return the folder, or the one for training and the one for tests that it has, perhaps in
    `images`; DatasetError E620 if one is missing."""
    if not folder.is_dir():
        fault = "this is no folder" if folder.exists() else "the folder is missing"
        raise DatasetError("E620", fault, str(folder), where_else(folder))
    for place in (folder, folder / IMAGES):
        if (place / TRAIN).is_dir():
            tests = [place / name for name in TESTS if (place / name).is_dir()]
            if not tests:
                raise DatasetError(
                    "E620", "the folder is missing", str(place / TEST),
                    f"Put the pictures for tests there, beside {TRAIN}.",
                )  # fmt: skip
            return [place / TRAIN, tests[0]]
    return [folder]


def divided(
    folder: Path, parts: Sequence[Sequence[tuple[Path, Any]]], settings: DataSettings
) -> tuple[list[tuple[Path, Any]], list[tuple[Path, Any]]]:
    """Return pictures for training and for tests: the two parts, or a share of the only one.

    Raises DatasetError E616 for a single picture, E685 as `refuse_part`.
    """
    if len(parts) == 2:
        refuse_part(settings, folder / TEST)
        return [*parts[0]], [*parts[1]]
    pairs = [*parts[0]]
    if len(pairs) < 2:
        raise DatasetError("E616", "there is one picture, to train and to test with", str(folder),
                           "Add further ones.")  # fmt: skip
    order = np.random.default_rng(settings.split_seed).permutation(len(pairs))
    chosen = set(tested(order, settings).tolist())
    return ([pair for n, pair in enumerate(pairs) if n not in chosen],
            [pairs[n] for n in sorted(chosen)])  # fmt: skip


def pictures_in(part: Path) -> list[Path]:
    """Return the pictures in a folder and those below it, by name."""
    files = part.rglob("*")
    return in_order(p for p in files if p.suffix.lower() in ENDINGS and p.name[0] != "."
                    and p.is_file())  # fmt: skip


def beside(picture: Path, root: Path, other: str) -> Path:
    """Return the folder of a picture's file: that of the picture, or the one called `other` in
    place of `images` in the path below `root`."""
    parts = list(picture.parent.relative_to(root).parts)
    if IMAGES not in parts:
        return picture.parent
    parts[len(parts) - 1 - parts[::-1].index(IMAGES)] = other
    return root.joinpath(*parts)


def class_names(file: Path, least: int = 1) -> tuple[str, ...]:
    """Return the names of classes in a file, one a line, in the order of their numbers from 0.

    Raises DatasetError: E620 without the file, E683 for names that are missing, unprintable or
    there twice, and for fewer than `least`.
    """
    try:
        lines = read_text(file, MIB).rstrip("\n").split("\n")
    except FileNotFoundError as exc:
        raise DatasetError(
            "E620", "the file with the names of the classes is missing", str(file),
            "Write one name a line, that of number 0 first.",
        ) from exc  # fmt: skip
    except UnicodeDecodeError as exc:
        raise DatasetError("E683", "it is no text in UTF-8", str(file), "Save it as one.") from exc
    names = [name.strip() for name in lines]
    for number, name in enumerate(names):
        fault = "" if name and name.isprintable() else f"{line(name) or 'nothing'!r} is no name"
        if name in names[:number]:
            fault = fault or f"{name!r} is also in line {names.index(name) + 1}"
        if fault:
            raise DatasetError("E683", fault, f"{file}:{number + 1}", "Give each class one name.")
    if len(names) < least:
        raise DatasetError("E683", f"there are fewer than {least} classes", str(file),
                           "Name the one of all that is nothing else, too.")  # fmt: skip
    return tuple(names)

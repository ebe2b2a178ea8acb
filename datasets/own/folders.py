"""Files in class folders, with test files in a folder of their own or chosen by a seed.

Source: docs/own-data.md, "Pictures" and "Sounds".
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Collection, Sequence
from dataclasses import dataclass
from pathlib import Path

import numpy as np

from ai8xtools.reading.files import where_else
from ai8xtools.reading.system import in_order
from datasets.errors import DatasetError
from datasets.own.labels import refuse_part, tested
from datasets.own.settings import DataSettings

Sample = tuple[Path, int]
TRAIN, TEST = "train", "test"
_LAYOUT = (
    "Put the files of each class into a folder named after it: DIR/CLASS/FILE, or with test files "
    "apart DIR/train/CLASS/FILE and DIR/test/CLASS/FILE."
)


@dataclass(frozen=True, slots=True)
class Files:
    """Class names, and samples as pairs of file and class number."""

    classes: tuple[str, ...]
    train: tuple[Sample, ...]
    test: tuple[Sample, ...]


Listed = tuple[tuple[str, ...], list[list[Path]], list[list[Path]] | None]
"""Class names, the files of each, and test files of each where these lie apart."""


def class_files(folder: Path, endings: Collection[str], settings: DataSettings) -> Files:
    """Return the files with these endings in the class folders of `folder`.

    Without folders `train` and `test`, a share of each class, at least one file, is for tests:
    the same ones for the same seed. Raises DatasetError as `listed`, E620 for a class of one
    file, and E685 as `refuse_part`.
    """
    classes, train, test = listed(folder, endings)
    if test is None:
        divided = [_divided(files, settings, folder) for files in train]
        train, test = [part for part, _ in divided], [part for _, part in divided]
    else:
        refuse_part(settings, folder / TEST)
    return Files(classes, _numbered(train), _numbered(test))


def listed(folder: Path, endings: Collection[str]) -> Listed:
    """Return the files with these endings in the class folders of `folder`, or in those of its
    folders `train` and `test`.

    Raises DatasetError: E620 without the folder, E620 for a class without files, E683 for fewer
    than two classes, test folders of other classes, or names that cannot be printed.
    """
    if not folder.is_dir():
        if folder.exists():
            raise DatasetError("E620", "this is no folder", str(folder), _LAYOUT)
        remedy = f"{where_else(folder)} {_LAYOUT}"
        raise DatasetError("E620", "the folder is missing", str(folder), remedy)
    parts = [part.name for part in _folders(folder)]
    if TRAIN not in parts:
        classes = _classes(folder)
        return classes, [_files(folder / name, endings) for name in classes], None
    classes = _classes(folder / TRAIN)
    train = [_files(folder / TRAIN / name, endings) for name in classes]
    if TEST not in parts:
        raise DatasetError("E620", "the folder is missing", str(folder / TEST), _LAYOUT)
    others = _classes(folder / TEST)
    if set(others) != set(classes):
        differing = sorted(set(classes) ^ set(others))
        raise DatasetError(
            "E683", f"its classes are not those of {folder / TRAIN}: {', '.join(differing[:5])} "
            "in one of them only", str(folder / TEST),
            "Give both folders the same class folders.",
        )  # fmt: skip
    return classes, train, [_files(folder / TEST / name, endings) for name in classes]


def _folders(folder: Path) -> list[Path]:
    return in_order(p for p in folder.iterdir() if p.is_dir() and not p.name.startswith("."))


def _classes(folder: Path) -> tuple[str, ...]:
    """Return the names of the class folders of a folder, at least two that can be printed."""
    names = tuple(path.name for path in _folders(folder))
    for name in names:
        if not name.isprintable():  # also what is not UTF-8
            shown = name.encode("unicode_escape", "surrogateescape").decode("ascii", "replace")
            raise DatasetError(
                "E683", f"the name of the class folder {shown!r} cannot be printed",
                str(folder), "Rename the folder; class names are shown by the firmware.",
            )  # fmt: skip
    if len(names) < 2:
        fault = f"it has only the class folder {names[0]}" if names else "it has no class folders"
        raise DatasetError("E683", f"{fault}; there must be two", str(folder), _LAYOUT)
    return names


def _files(folder: Path, endings: Collection[str]) -> list[Path]:
    """Return the files of a class by name."""
    files = in_order(
        p for p in folder.rglob("*")
        if p.suffix.lower() in endings and p.is_file() and not p.name.startswith(".")
    )  # fmt: skip
    if not files:
        raise DatasetError(
            "E620", "the class folder has none of the files that are looked for", str(folder),
            f"Their names end in {', '.join(sorted(endings))}. Add some, or remove the folder.",
        )  # fmt: skip
    return files


def endings_of_others(folder: Path, endings: Collection[str]) -> str:
    """Return how often files with other endings are below a folder, as text."""
    files = (p for p in folder.rglob("*") if not p.name.startswith(".") and p.is_file())
    counts = Counter(path.suffix.lower() or path.name for path in files)
    return ", ".join(f"{n} {end}" for end, n in sorted(counts.items()) if end not in endings)


def _divided(
    files: list[Path], settings: DataSettings, folder: Path
) -> tuple[list[Path], list[Path]]:
    """Return files for training and for tests."""
    if len(files) < 2:
        raise DatasetError(
            "E616", f"there is one file, {files[0].relative_to(folder)}, to train and to test with",
            str(files[0].parent), "Add further files of the class.",
        )  # fmt: skip
    order = np.random.default_rng(settings.split_seed).permutation(len(files))
    chosen = set(tested(order, settings).tolist())
    train = [path for n, path in enumerate(files) if n not in chosen]
    return train, [files[n] for n in sorted(chosen)]


def _numbered(classes: Sequence[Sequence[Path]]) -> tuple[Sample, ...]:
    """Return samples, the classes in turn, so that the first ones are of different classes."""
    longest = max(map(len, classes))
    return tuple(
        (files[n], label)
        for n in range(longest)
        for label, files in enumerate(classes)
        if n < len(files)
    )

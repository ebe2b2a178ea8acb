"""Rows of numbers with a class each, from CSV files.

Source: docs/own-data.md, "Tables".
"""

from __future__ import annotations

import csv
import math
from dataclasses import dataclass
from pathlib import Path

import numpy as np
from numpy.typing import NDArray

from ai8xtools.reading import MIB, read_text
from ai8xtools.reading.text import has_foreign_digits
from datasets.errors import DatasetError

MAX_BYTES = 256 * MIB


@dataclass(frozen=True, slots=True)
class Table:
    """The features of a table, float32 [rows, columns], with the class of each row as text."""

    features: NDArray[np.float32]
    labels: tuple[str, ...]


def read_table(path: Path, label: str | None) -> Table:
    """Return the rows of a CSV file; its first line may name the columns.

    `label` is the column of the class, by name or by number from 0; None is the last one. Raises
    DatasetError E684 naming line and column of what is missing or no number.
    """
    try:
        text = read_text(path, MAX_BYTES, encoding="utf-8-sig")
    except FileNotFoundError as exc:
        raise DatasetError("E620", "the file is missing", str(path), "Check the path.") from exc
    except UnicodeDecodeError as exc:
        raise _refused(path, None, "the file is not text in UTF-8", "Save it as UTF-8.") from exc
    try:
        lines = [(n, row) for n, row in enumerate(csv.reader(_lines(text)), 1) if any(row)]
    except csv.Error as exc:
        raise _refused(path, None, f"this is no CSV file: {exc}") from exc
    if not lines:
        raise _refused(path, None, "the file is empty")
    width = len(lines[0][1])
    if width < 2:
        raise _refused(
            path, lines[0][0], "there is one column, but features and a class are needed",
            "Separate columns by commas.",
        )  # fmt: skip
    names = _names(lines, label)
    place = _label_column(names, width, label, path)
    rows = lines[1:] if names else lines
    if not rows:
        raise _refused(path, None, "there are no rows below the names of the columns")
    titles = names or tuple(map(str, range(width)))
    features = np.array(
        [_features(path, number, row, titles, place) for number, row in rows], np.float32
    )
    return Table(features, tuple(_class(path, number, row, titles, place) for number, row in rows))


def _lines(text: str) -> list[str]:
    return text.replace("\0", "\N{REPLACEMENT CHARACTER}").splitlines()


def _names(lines: list[tuple[int, list[str]]], label: str | None) -> tuple[str, ...]:
    """Return the names in the first line; none if all but one of its cells are numbers."""
    first = [cell.strip() for cell in lines[0][1]]
    by_name = label is not None and label in first
    return tuple(first) if by_name or sum(not _is_number(c) for c in first) > 1 else ()


def _is_number(cell: str) -> bool:
    try:
        return not has_foreign_digits(cell) and math.isfinite(float(cell))
    except ValueError:
        return False


def _label_column(names: tuple[str, ...], width: int, label: str | None, path: Path) -> int:
    """Return the number of the column of the class."""
    if label is None:
        return width - 1
    if label in names:
        return names.index(label)
    if label.isdecimal() and label.isascii() and int(label) < width:
        return int(label)
    known = f"Its columns: {', '.join(names)}." if names else f"Its columns: 0 to {width - 1}."
    raise DatasetError("E684", f"{path} has no column {label!r}", "--label", known)


def _features(
    path: Path, number: int, row: list[str], titles: tuple[str, ...], place: int
) -> list[float]:
    """Return the numbers of a row."""
    if len(row) != len(titles):
        raise _refused(
            path, number, f"the row has {len(row)} cells, the first one {len(titles)}",
            "Complete the row, or remove it.",
        )  # fmt: skip
    values = []
    for title, cell in zip(titles, row, strict=True):
        if title is titles[place]:
            continue
        if not _is_number(cell):
            what = f"is {cell.strip()[:30]!r}, no number" if cell.strip() else "is missing"
            raise _refused(
                path, number, f"the cell of column {title} {what}",
                "Fill it in, or remove the row; columns of text must become numbers.",
            )  # fmt: skip
        values.append(float(cell))
    return values


def _class(path: Path, number: int, row: list[str], titles: tuple[str, ...], place: int) -> str:
    name = row[place].strip()
    if not name or not name.isprintable():
        what = "is missing" if not name else "cannot be printed"
        raise _refused(path, number, f"the class in column {titles[place]} {what}", "Fill it in.")
    return name


def _refused(
    path: Path, number: int | None, message: str, remedy: str | None = None
) -> DatasetError:
    place = str(path) if number is None else f"{path}:{number}"
    return DatasetError("E684", message, place, remedy or "Compare docs/own-data.md.")

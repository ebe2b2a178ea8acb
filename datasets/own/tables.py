"""Rows of numbers with a class each, from CSV files.

Source: docs/own-data.md, "Tables".
"""

from __future__ import annotations

import codecs
import csv
import io
import re
from collections.abc import Collection, Iterator, Sequence
from dataclasses import dataclass, replace
from itertools import islice
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from ai8xtools.reading import MIB, read_bytes
from ai8xtools.reading.files import where_else
from datasets.errors import DatasetError

MAX_BYTES = 256 * MIB
LARGEST = float(np.finfo(np.float32).max)
"""Firmware computes with single precision."""
_SEPARATORS = {",": "commas", ";": "semicolons", "\t": "tabs", "|": "bars", " ": "spaces"}
_SEPARATOR_LINE = re.compile(r'"?sep=(.)"?', re.IGNORECASE)
_LOOKED_AT = 200
"""Lines that tell the separator."""
_NUMBER = re.compile(r"[+-]?(?:\d+(?:\.\d*|,\d+)?|[.,]\d+)(?:[eE][+-]?\d+)?", re.ASCII)
_MISSING = frozenset({"", "-", "?", "na", "n/a", "nan", "null", "none", "nil", "inf", "infinity"})
"""Cells that are no titles: what stands where a number is missing."""
_NO_CLASS = frozenset({"?", "na", "n/a", "nan"})
"""Those of them that are no class either; "none" may be one."""
_ROW_NAMES = frozenset({"", "id", "index", "unnamed: 0"})
"""Titles, in small letters, of columns that number the rows; pandas writes none."""
_ROW_GAPS = 1.5
"""Their numbers may be those of a part of the rows."""
ENDINGS = frozenset({".csv", ".tsv", ".txt"})
_CLASS = "Name its column with --label, by name or by number from 0."
Row = tuple[int, list[str]]
"""The number of a line and its cells."""


@dataclass(frozen=True, slots=True)
class Table:
    """The features of a table, float64 [rows, columns], with the class of each row as text, or the
    number to learn.

    `title` is that of the classes' or numbers' column. `numbers` are those of the rows' lines,
    `titles` those of line 1, if it has them, `row_names` the columns that number the rows; `form`
    is how the file was understood.
    """

    features: NDArray[np.float64]
    labels: tuple[str, ...] | tuple[float, ...]
    title: str
    numbers: tuple[int, ...]
    titles: tuple[str, ...]
    row_names: frozenset[int]
    form: str


@dataclass(frozen=True, slots=True)
class Lines:
    """The lines of a CSV file: rows of cells without the titles, which the first one may have.

    `names` are titles or numbers of the columns, `place` is the number of that of the class, `line`
    that of the first line.
    """

    rows: list[Row]
    titles: tuple[str, ...]
    names: tuple[str, ...]
    place: int
    separator: str
    line: int

    def form(self, *, comma: bool) -> str:
        """Say how the file was understood."""
        titled = f"titles in line {self.line}" if self.titles else "no titles"
        return f"separated by {_SEPARATORS[self.separator]}, {'decimal commas, ' * comma}{titled}"


def read_table(
    path: Path, label: str | None, training: Table | None = None, *, learns_numbers: bool = False
) -> Table:
    """Return the rows of a CSV file; its first line may name the columns.

    `label` is the column of the class, by name or by number from 0; None is the last one; if the
    network `learns_numbers`, it holds these. A table of tests has the columns of that of
    `training`. Raises DatasetError E684 naming line and column of what is missing or no number.
    """
    if learns_numbers:
        lines = target_lines(path, label)
    else:
        classes = frozenset(map(str, training.labels)) if training else frozenset()
        lines = labelled_lines(path, label, classes, checked=training is None)
    titles = lines.titles
    if training and titles and training.titles and titles != training.titles:
        raise _refused(
            path, lines.line, f"its columns are {', '.join(titles)}; those of the training are "
            f"{', '.join(training.titles)}", "Give both files the same columns.",
        )  # fmt: skip
    left = training.row_names if training else frozenset(_row_names(lines))
    if len(left) + 1 == len(lines.names):
        raise _refused(path, None, "no column is left for measurements")
    features, comma = numbers_of(path, lines, {lines.place, *left})
    labels: tuple[Any, ...] = classes_of(path, lines)
    if learns_numbers:
        labels = tuple(targets_of(path, lines).tolist())
    form = lines.form(comma=comma)
    if left:
        names = ", ".join(lines.names[column] or "(no title)" for column in sorted(left))
        form += f"; no feature, since it numbers the rows: {names}"
    numbers = tuple(number for number, _ in lines.rows)
    return Table(features, labels, lines.names[lines.place], numbers, titles, left, form)


def _row_names(lines: Lines) -> Iterator[int]:
    """Yield the columns that number the rows, with hardly a gap, and have a title that says so.

    A network would learn the order of the file from them.
    """
    for column, title in enumerate(lines.titles):
        cells = [row[column] for _, row in lines.rows]
        if column == lines.place or title.lower() not in _ROW_NAMES:
            continue
        if all(cell.isascii() and cell.isdecimal() for cell in cells):
            numbers = {int(cell) for cell in cells}
            most = _ROW_GAPS * len(cells)
            if len(numbers) == len(cells) and max(numbers) - min(numbers) < most:
                yield column


def labelled_lines(
    path: Path, label: str | None, classes: Collection[str] = (), *, checked: bool = True
) -> Lines:
    """Return the lines of a CSV file with a class in each; `classes` are those of other files.

    Where no `label` is named, the last column is `checked` to have classes. Raises DatasetError
    E684.
    """
    rows, separator = _rows(path)
    first = rows[0][1]
    place = _label_column(first, label, path)
    named = label is not None and not _is_index(label, len(first))
    titled = _has_titles(path, rows, place, classes, named=named)
    if label in first and (first[place] != label if titled else named):
        raise DatasetError(
            "E684", f"{label!r} may be a column of {path}, or a value in it", "--label",
            "Name the column by its number from 0, or give titles that are no values.",
        )  # fmt: skip
    lines = _lines(path, rows, place, separator, titled=titled)
    if label is None and checked:
        _check_classes(path, [row[place] for _, row in lines.rows])
    return lines


def target_lines(path: Path, label: str | None) -> Lines:
    """Return the lines of a CSV file that has a number to learn in each, in the column `label`, by
    name or by number from 0; None is the last one. Raises DatasetError E684."""
    lines = number_lines(path, least=2)
    return replace(lines, place=_label_column(lines.names, label, path))


def number_lines(path: Path, *, least: int = 1) -> Lines:
    """Return the lines of a CSV file without classes, of at least 1 or 2 columns; `place` is -1.

    Raises DatasetError E684.
    """
    rows, separator = _rows(path, least)
    first = rows[0][1]
    _refuse_counting(path, rows[0])
    words = [_is_word(cell) for cell in first]
    titled = any(words) and all(word or not cell for word, cell in zip(words, first, strict=True))
    return _lines(path, rows, -1, separator, titled=titled)


def _lines(path: Path, rows: list[Row], place: int, separator: str, *, titled: bool) -> Lines:
    line, first = rows[0][0], tuple(rows[0][1])
    if not rows[titled:]:
        raise _refused(path, None, "there are no rows below the names of the columns")
    titles = first if titled else ()
    return Lines(rows[titled:], titles, titles or tuple(map(str, range(len(first)))), place,
                 separator, line)  # fmt: skip


def classes_of(path: Path, lines: Lines, place: int | None = None) -> tuple[str, ...]:
    """Return the text in the column of the class, or another one; none may be missing."""
    column = lines.place if place is None else place
    return tuple(
        _class(path, number, row[column], lines.names[column]) for number, row in lines.rows
    )


def _text(path: Path) -> str:
    try:
        data = read_bytes(path, MAX_BYTES)
        wide = data.startswith((codecs.BOM_UTF16_LE, codecs.BOM_UTF16_BE))
        text = data.decode("utf-16" if wide else "utf-8-sig")
        if "\0" in text:
            raise _refused(
                path, text.count("\n", 0, text.index("\0")) + 1, "it has bytes of value 0, as text "
                "in UTF-16 without its byte order mark", "Save it as UTF-8.",
            )  # fmt: skip
    except FileNotFoundError as exc:
        raise DatasetError("E620", "the file is missing", str(path), where_else(path)) from exc
    except UnicodeDecodeError as exc:
        raise _refused(path, None, "the file is not text in UTF-8", "Save it as UTF-8.") from exc
    return text.replace("\r\n", "\n").replace("\r", "\n")


def _table_of(path: Path, text: str, least: int) -> tuple[str, str]:
    """Return a text whose lines above the table are empty, and what separates its cells.

    They are comments, which begin with #, and spreadsheets' `sep=;`. The last comment has the
    titles if it has as many cells as the line below, which has numbers.
    """
    lines = text.split("\n")
    start, named = 0, None
    while start < len(lines):
        line = lines[start].strip()
        named = named or _SEPARATOR_LINE.fullmatch(line)
        if named and named[1] not in _SEPARATORS:
            raise _refused(path, start + 1, f"cells are separated by {named[1]!r}",
                           "Separate columns by commas, semicolons or tabs.")  # fmt: skip
        if line and not line.startswith("#") and not (named and named[0] == line):
            break
        start += 1
    above, below = lines[:start], lines[start:]
    separator = named[1] if named else _separator(path, "\n".join(below), least)
    titles = above[-1] if above and below and above[-1].startswith("#") else ""
    cells = below[0].split(separator) if below else []
    if len(titles.split(separator)) != len(cells) or not any(map(_NUMBER.fullmatch, cells)):
        titles = ""
    return "\n".join(["\n" * (start - 1) + titles, *below] if start else below), separator


def _separator(path: Path, text: str, least: int = 2) -> str:
    """Return what separates the cells: with it most of them are numbers, lines equally long.

    There are `least` columns, 1 or 2.
    """
    lines = [line for line in islice(io.StringIO(text), _LOOKED_AT) if line.strip()]
    if not lines:
        raise _refused(path, None, "the file is empty")
    best, chosen = (0.0, 0), ""
    for separator in _SEPARATORS:
        try:
            rows = list(csv.reader(lines, delimiter=separator, skipinitialspace=True))
        except csv.Error:
            continue
        cells = [cell for row in rows for cell in row]
        numbers = sum(_NUMBER.fullmatch(cell.strip()) is not None for cell in cells)
        score = numbers / len(cells), sum(len(row) == len(rows[0]) for row in rows)
        if least == 1 and 2 * score[1] <= len(rows):
            continue  # it is in a title
        if len(rows[0]) > 1 and (not chosen or score > best):
            best, chosen = score, separator
    if not chosen and least == 1:
        return ","
    if not chosen:
        raise _refused(
            path, 1, "there is one column, but features and a class are needed",
            "Separate columns by commas, semicolons or tabs.",
        )  # fmt: skip
    return chosen


def _rows(path: Path, least: int = 2) -> tuple[list[Row], str]:
    """Return the lines of a file that are not empty, of at least 1 or 2 columns, and what separates
    them; without a last column that is empty, if the first line has words.

    Raises DatasetError E684 if they are not equally long.
    """
    text, separator = _table_of(path, _text(path), least)
    reader = csv.reader(io.StringIO(text), delimiter=separator, skipinitialspace=True, strict=True)
    rows: list[Row] = []
    try:
        for row in reader:
            if any(row):
                rows.append((reader.line_num, [cell.strip() for cell in row]))
                if len(row) != len(rows[0][1]):
                    raise _refused(
                        path, reader.line_num,
                        f"the row has {len(row)} cells, the first one {len(rows[0][1])}",
                        "Remove lines that are comments." if row[0].startswith("#")
                        else "Complete the row, or remove it.",
                    )  # fmt: skip
    except csv.Error as exc:
        raise _refused(path, reader.line_num, f"this is no CSV file: {exc}") from exc
    if not rows:
        raise _refused(path, None, "the file is empty")
    if any(map(_is_word, rows[0][1])) and not any(row[-1] for _, row in rows):
        return [(number, row[:-1]) for number, row in rows], separator  # at the end of each line
    return rows, separator


def _label_column(first: Sequence[str], label: str | None, path: Path) -> int:
    """Return the number of the column of the class."""
    if label is None:
        return len(first) - 1
    if _is_index(label, len(first)):
        return int(label)
    if first.count(label) != 1:
        remedy = f"Its columns: 0 to {len(first) - 1}, or by the names in its first line."
        fault = f"{first.count(label) or 'no'} columns {label!r}"
        raise DatasetError("E684", f"{path} has {fault}", "--label", remedy)
    return first.index(label)


def _is_index(label: str, width: int) -> bool:
    return label.isdecimal() and label.isascii() and int(label) < width


def _has_titles(
    path: Path, rows: Sequence[Row], place: int, others: Collection[str], *, named: bool
) -> bool:
    """Return whether the first line names the columns; `named` is the class's by --label.

    It does if the cells beside the class are words, empty ones among them, or only the class is,
    where others are numbers. Any other line of a class that no row has is asked for.
    """
    first, name = rows[0][1], rows[0][1][place]
    cells = [cell for number, cell in enumerate(first) if number != place]
    words = [cell for cell in cells if _is_word(cell)]
    classes = {row[place] for _, row in rows[1:]} | set(others)
    if name in classes:
        return len(words) == len(cells) > 1
    if named or (words and all(cell in words or not cell for cell in cells)):
        return True
    _refuse_counting(path, rows[0])
    if not classes or _NUMBER.fullmatch(name):
        return False
    if all(map(_NUMBER.fullmatch, classes)):
        return True
    if all(_NUMBER.fullmatch(cell) or cell in words for cell in cells):
        raise _refused(
            path, rows[0][0], f"no other line has the class {name!r}: column titles or data?",
            "Put a letter in front of titles that are numbers, or another row first.",
        )  # fmt: skip
    return False


def _refuse_counting(path: Path, row: Row) -> None:
    """Raise DatasetError E684 for a first line that pandas writes for columns without titles."""
    line, cells = row
    if len(cells) > 2 and cells == [str(number) for number in range(len(cells))]:
        raise _refused(
            path, line, f"it counts from 0 to {cells[-1]}: column titles or data?",
            "Remove the line, or put a letter in front of titles that are numbers.",
        )  # fmt: skip


def _is_word(cell: str) -> bool:
    """Return whether a cell may be a title: no number, and not what stands for a missing one."""
    number = _NUMBER.fullmatch(cell) or _python_number(cell)
    return not number and cell.lower() not in _MISSING


def _python_number(cell: str) -> bool:
    """Return whether a text is a number to Python only, such as 1_000."""
    try:
        float(cell)
    except ValueError:
        return False
    return True


def _check_classes(path: Path, cells: Sequence[str]) -> None:
    """Raise DatasetError for a last column that has measurements, no classes."""
    if not all(map(_NUMBER.fullmatch, cells)):
        return
    values = [float(cell.replace(",", ".")) for cell in cells]
    fraction = next((c for c, v in zip(cells, values, strict=True) if v % 1), None)
    if fraction is not None:
        raise _refused(path, None, f"the last column has fractions ({fraction})", _CLASS)
    if len({*values}) == len(cells) > 2:
        raise _refused(path, None, "the last column has another number in each row", _CLASS)
    if len({*values}) != len({*cells}):
        raise _refused(
            path, None, "classes are the same number, spelled differently", "Spell them alike."
        )


def numbers_of(
    path: Path, lines: Lines, apart: Collection[int]
) -> tuple[NDArray[np.float64], bool]:
    """Return the columns that are not `apart`, float64 [rows, columns], and whether they have
    decimal commas. Raises DatasetError E684 with line and column of what is no number."""
    comma = _decimal_commas(path, lines.rows, lines.names, apart, lines.separator)
    values = [_features(path, *row, lines.names, apart, comma) for row in lines.rows]
    return np.array(values, np.float64), comma


def targets_of(path: Path, lines: Lines) -> NDArray[np.float64]:
    """Return the numbers to learn, float64 [rows]; DatasetError E684 as `numbers_of`."""
    return numbers_of(path, lines, {*range(len(lines.names))} - {lines.place})[0][:, 0]


def is_number(text: str) -> bool:
    """Return whether a text is a number with a decimal point."""
    return bool(_NUMBER.fullmatch(text)) and "," not in text


def _decimal_commas(
    path: Path, rows: Sequence[Row], names: Sequence[str], apart: Collection[int], separator: str
) -> bool:
    """Return whether numbers have commas where others have points."""
    if separator == ",":
        return False
    cells = [
        (number, column, cell)
        for number, row in rows
        for column, cell in enumerate(row)
        if column not in apart and _NUMBER.fullmatch(cell)
    ]
    comma = next((entry for entry in cells if "," in entry[2]), None)
    points = next((entry for entry in cells if "." in entry[2]), None)
    if comma and points:
        raise _refused(
            path, comma[0], f"the cell of column {names[comma[1]]} is {comma[2]}, but in line "
            f"{points[0]} a number is {points[2]}", "Use decimal points or decimal commas in all.",
        )  # fmt: skip
    return bool(comma)


def _features(
    path: Path,
    number: int,
    row: Sequence[str],
    names: Sequence[str],
    apart: Collection[int],
    comma: bool,
) -> list[float]:
    """Return the numbers of a row."""
    values = []
    for column, cell in enumerate(row):
        if column in apart:
            continue
        usual = cell.replace(",", ".") if comma else cell
        if "," in usual or not _NUMBER.fullmatch(usual):
            what = f"is {cell[:30]!r}, no number" if cell else "is missing"
            raise _refused(
                path, number, f"the cell of column {names[column]} {what}",
                "Fill it in, or remove the row; columns of text must become numbers.",
            )  # fmt: skip
        values.append(float(usual))
        if abs(values[-1]) > LARGEST:
            raise _refused(
                path, number, f"the cell of column {names[column]} is {cell[:30]}, beyond "
                f"{LARGEST:.3g}", "Scale the column.",
            )  # fmt: skip
    return values


def _class(path: Path, number: int, name: str, column: str) -> str:
    if not name or not name.isprintable() or name.lower() in _NO_CLASS:
        what = "is missing" if not name else f"is {name!r}" if name.isprintable() else (
            "cannot be printed"
        )  # fmt: skip
        raise _refused(path, number, f"the label in column {column} {what}",
                       "Fill it in, or remove the row.")  # fmt: skip
    return name


def _refused(
    path: Path, number: int | None, message: str, remedy: str | None = None
) -> DatasetError:
    place = str(path) if number is None else f"{path}:{number}"
    return DatasetError("E684", message, place, remedy or "Compare docs/own-data.md.")

"""Time series in CSV files: a row for each time step, a column for each channel.

Source: docs/own-data.md, "Recordings in CSV files".
"""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Collection, Iterator, Sequence
from dataclasses import dataclass, replace
from itertools import groupby
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from datasets.errors import DatasetError
from datasets.own.folders import TRAIN, endings_of_others, listed
from datasets.own.labels import Pair, refuse_part, test_samples, windows_named
from datasets.own.settings import NO_GROUP, REGRESSION, DataSettings
from datasets.own.tables import (
    ENDINGS,
    Lines,
    classes_of,
    is_number,
    labelled_lines,
    number_lines,
    numbers_of,
    target_lines,
    targets_of,
)

LEAST_PART = 0.5
"""A series or window that is filled to this part is completed with its last step."""
_TIME = re.compile(
    r"(?:(?:time|timestamp|t|datetime|date|index|step|unnamed: 0)"
    r"(?: ?[\[(]|[ _])?(?:(?<=[^a-z0-9])[mun]?s(?:ec)?[\])]?)?)?"
)
"""Titles, in small letters, of columns that are no measurements; pandas writes none for numbers."""
_PEOPLE = ("subject", "person", "participant", "patient", "user")
_GROUPS = (*_PEOPLE, "recording", "session")
"""Titles of columns that tell whose or which recording this is, those that divide first."""
_SHOWN = 5
_SAME_RATE = 1.25
"""Steps of time of two recordings that differ less, as those of phones do, are the same."""


@dataclass(frozen=True, slots=True)
class Recording:
    """Measurements, float64 [steps, channels], of one class, and whose they are if that is known.

    Where each step has a number to learn, it is in the last column, and `label` is empty.
    `name` is that of the file, with the line of the first step where a file has several.
    """

    values: NDArray[np.float64]
    label: str
    group: str | None
    name: str


class _Reader:
    """Reads files of the same columns; says in `notes` how they were understood."""

    def __init__(self, settings: DataSettings) -> None:
        self._settings = settings
        self._first: tuple[Path, tuple[str, ...], int] | None = None
        self._steps: dict[str, tuple[Path, float]] = {}
        self._learns_numbers = settings.task == REGRESSION
        self.notes: list[str] = []

    def folder(self, folder: Path) -> list[list[Recording]]:
        """Return the recordings of class folders, or those of training and those of tests."""
        if self._settings.label is not None:
            raise _refused(folder, "the class is the name of the folder", "Leave out --label.")
        classes, train, test = listed(folder, ENDINGS)
        parts = [train] if test is None else [train, test]
        recordings = []
        for number, part in enumerate(parts):
            place = folder / (TRAIN, "test")[number] if test is not None else folder
            recordings.append([
                self._named(recording, path.relative_to(place / label))
                for label, files in zip(classes, part, strict=True)
                for path in files
                for recording in self._recordings(path, number_lines(path), label)
            ])  # fmt: skip
        others = endings_of_others(folder, ENDINGS)
        self.notes += [f"{folder}: files that are not read: {others}"] if others else []
        return recordings

    def table(self, path: Path, classes: Collection[str] = ()) -> list[Recording]:
        """Return the recordings of a file with a column of classes, each of one class."""
        label = self._settings.label
        if self._learns_numbers:
            lines = target_lines(path, label)
        else:
            lines = labelled_lines(path, label, classes, checked=not classes)
        return list(self._recordings(path, lines, None))

    def _recordings(self, path: Path, lines: Lines, label: str | None) -> Iterator[Recording]:
        """Yield the stretches of a file that are of one class, one person and one recording."""
        lower = [title.lower() for title in lines.titles]
        asked = self._settings.group
        grouped = [lower.index(name) for name in _GROUPS if name in lower]
        if asked is not None and asked != NO_GROUP and (asked in lines.titles or label is None):
            grouped.insert(0, self._column(path, lines, asked))
        grouped = [column for column in dict.fromkeys(grouped) if column != lines.place]
        times = {column for column, title in enumerate(lower)
                 if _TIME.fullmatch(title) and column != lines.place} - {*grouped}  # fmt: skip
        apart = {*times, *grouped} | ({lines.place} if label is None else set())
        if len(apart) == len(lines.names):
            raise _refused(path, "no column is left for measurements")
        values, comma = numbers_of(path, lines, apart)
        titles = tuple(t for column, t in enumerate(lines.titles) if column not in apart)
        self._compare(path, titles, values.shape[1])
        if not self.notes:
            left = ", ".join(lines.names[n] or "(no title)" for n in sorted({*times, *grouped}))
            self.notes.append(
                f"{path}: {lines.form(comma=comma)}; channels: {', '.join(titles) or 'all columns'}"
                + (f"; no channels: {left}" if left else "")
            )
        for column in times if lines.titles else ():
            self._compare_steps(path, lower[column], [row[column] for _, row in lines.rows])
        columns = [classes_of(path, lines, column) for column in grouped]
        if label is None and self._learns_numbers:
            values, label = np.column_stack([values, targets_of(path, lines)]), ""
        labels = classes_of(path, lines) if label is None else (label,) * len(values)
        used = [] if asked == NO_GROUP else columns
        keys = list(zip(labels, *columns, strict=True))
        for key, rows in groupby(range(len(keys)), keys.__getitem__):
            part = list(rows)
            name = str(path) if len(part) == len(keys) else f"{path}:{lines.rows[part[0]][0]}"
            yield Recording(
                values[part[0] : part[-1] + 1], key[0],
                f"{lines.names[grouped[0]]} {key[1]}" if used else None, name,
            )  # fmt: skip

    def _named(self, recording: Recording, path: Path) -> Recording:
        """Return a recording with the group that its name tells, if no column does."""
        word = self._settings.group
        if recording.group is not None or word == NO_GROUP:
            return recording
        words = "|".join(map(re.escape, _PEOPLE if word is None else (word.lower(),)))
        match = re.search(
            rf"(?:^|[^a-z])({words})[ _-]?([a-z]*\d+|[a-z])(?![a-z0-9])",
            path.with_suffix("").as_posix().lower(),
        )
        if match is None and word is not None:
            raise _refused(
                recording.name, f"neither a column nor the name tells --group {word}",
                f"Name files like {word}7-1.csv, or leave out the option.",
            )  # fmt: skip
        return replace(recording, group=None if match is None else f"{match[1]} {match[2]}")

    def _column(self, path: Path, lines: Lines, name: str) -> int:
        if lines.titles.count(name) == 1:
            return lines.titles.index(name)
        if name.isdecimal() and name.isascii() and int(name) < len(lines.names):
            return int(name)
        columns = ", ".join(lines.names[:10])
        raise _refused(path, f"--group: no single column is {name!r}", f"Its columns: {columns}.")

    def _compare(self, path: Path, titles: tuple[str, ...], count: int) -> None:
        """Raise DatasetError for a file whose channels are not those of the first one."""
        first = self._first = self._first or (path, titles, count)
        if count != first[2]:
            raise _refused(
                path, f"it has {count} channels, {first[0]} has {first[2]}",
                "Give all files the same columns.",
            )  # fmt: skip
        if titles and first[1] and titles != first[1]:
            raise _refused(
                path, f"its channels are {', '.join(titles)}, those of {first[0]} "
                f"{', '.join(first[1])}", "Give all files the same columns.",
            )  # fmt: skip

    def _compare_steps(self, path: Path, title: str, cells: Sequence[str]) -> None:
        """Note the first file whose times are at other intervals than those before."""
        times = [cell.replace(",", ".") for cell in cells]
        if not all(map(is_number, times)):
            return  # dates
        step = float(np.median(np.diff(np.array(times, np.float64)))) if len(times) > 1 else 0.0
        first, usual = self._steps.setdefault(title, (path, step))
        if 0 < usual * _SAME_RATE < step or 0 < step * _SAME_RATE < usual:
            self._steps[title] = (path, 0.0)
            self.notes.append(f"{path}: {title} grows by {step:g} a row, in {first} by {usual:g}: "
                              "a recording at another rate looks faster or slower")  # fmt: skip


def read_recordings(path: Path, settings: DataSettings) -> tuple[Pair, Pair, Pair, list[str]]:
    """Return series float32 [N, C, L], classes [N] and names [N] of training and test, and notes
    on them.

    Raises DatasetError for what cannot be used.
    """
    reader = _Reader(settings)
    if not path.is_dir():
        parts = [reader.table(path)]
    elif (path / "train.csv").exists():
        parts = [reader.table(path / "train.csv")]
        classes = {recording.label for recording in parts[0]}
        parts.append(reader.table(path / "test.csv", classes))
    else:
        parts = reader.folder(path)
    notes = reader.notes
    parts = [_long_enough(part, settings, path, notes) for part in parts]
    if len(parts) == 1:
        parts = _divided(parts[0], settings, path, notes)
    else:
        refuse_part(settings, path)
    lengths = [len(one.values) for part in parts for one in part]
    window = settings.window or max(lengths)
    x, y, names = [], [], []
    for part in parts:
        pieces = [windows_of(one.values, window, settings.hop or window) for one in part]
        x.append(np.concatenate(pieces))
        y.append(np.array([one.label for one, windows in zip(part, pieces, strict=True)
                           for _ in windows]))  # fmt: skip
        names.append(np.array([name for one, windows in zip(part, pieces, strict=True)
                               for name in windows_named(one.name, len(windows))]))  # fmt: skip
    form = f"{len(lengths)} recordings of {min(lengths)} to {max(lengths)} steps"
    if settings.window is not None:
        form += f" in windows of {window} steps, one every {settings.hop or window}"
    if completed := sum(length < window for length in lengths):
        form += f"; {completed} are shorter than {window} steps: their last step is repeated"
    notes.append(f"{path}: {form}")
    if settings.task == REGRESSION and not any(one.label for part in parts for one in part):
        notes.append(f"{path}: the number to learn is that of a window's last step")
        y, x = [part[:, -1, -1] for part in x], [part[:, :-1] for part in x]
    elif settings.task == REGRESSION:
        y = [_numbers(path, part) for part in y]
    return (x[0], x[1]), (y[0], y[1]), (names[0], names[1]), notes


def _numbers(path: Path, names: NDArray[Any]) -> NDArray[np.float64]:
    """Return the numbers that are the names of folders."""
    strange = next((name for name in names if not is_number(name)), None)
    if strange is not None:
        raise _refused(path, f"the folder {strange} names a class, no number to learn",
                       "Name folders by numbers, or leave out --regression.")  # fmt: skip
    return names.astype(np.float64)


def windows_of(values: NDArray[np.float64], window: int, hop: int) -> NDArray[np.float32]:
    """Return the windows of a recording [steps, channels], float32 [N, channels, window].

    A rest of at least half a window is completed with its last step, a shorter one is left out.
    """
    steps = len(values)
    starts = [*range(0, max(1, steps - window + 1), hop)]
    rest = starts[-1] + hop
    if starts[-1] + window < steps and steps - rest >= LEAST_PART * window:
        starts.append(rest)
    places = np.array(starts)[:, None] + np.arange(window)
    windows = values[np.minimum(places, steps - 1)].astype(np.float32)
    return windows.transpose(0, 2, 1)


def _long_enough(
    recordings: Sequence[Recording], settings: DataSettings, path: Path, notes: list[str]
) -> list[Recording]:
    """Return the recordings that fill half a window, or half of the longest one.

    Where windows are cut, others are left out; a class may not vanish. Raises DatasetError E684.
    """
    longest = max(recordings, key=lambda one: len(one.values))
    least = LEAST_PART * (settings.window or len(longest.values))
    kept = [one for one in recordings if len(one.values) >= least]
    if len(kept) == len(recordings):
        return kept
    short = min(recordings, key=lambda one: len(one.values))
    if settings.window is None:
        raise _refused(
            short.name, f"the recording has {len(short.values)} steps, the longest one, "
            f"{longest.name}, {len(longest.values)}: shorter ones are padded from "
            f"{LEAST_PART:.0%} of the longest on",
            "Cut all of them into equal windows with --window N, or leave out short ones.",
        )  # fmt: skip
    lost = {one.label for one in recordings} - {one.label for one in kept}
    if lost:
        name = min(lost)
        most = max(len(one.values) for one in recordings if one.label == name)
        raise _refused(
            path, f"no recording of the class {name} fills half a window of {settings.window} "
            f"steps; the longest one has {most} without a change of class or person",
            "Choose a smaller --window.",
        )  # fmt: skip
    notes.append(
        f"{path}: {len(recordings) - len(kept)} of {len(recordings)} recordings fill less than "
        f"half a window and are left out ({short.name} has {len(short.values)} steps)"
    )
    return kept


def _divided(
    recordings: list[Recording], settings: DataSettings, path: Path, notes: list[str]
) -> list[list[Recording]]:
    """Return recordings for training and for tests: of other people, if it is known whose they are,
    else a share of those of each class."""
    groups = [recording.group for recording in recordings]
    known_groups = [group for group in groups if group is not None]
    if len(known_groups) == len(groups) and len({*known_groups}) < len(known_groups):
        labels = np.array([recording.label for recording in recordings])
        chosen = test_samples(labels, settings, path, np.array(known_groups))
        tests = sorted({group for group, test in zip(known_groups, chosen, strict=True) if test})
        notes.append(
            f"{path}: tests are the recordings of {_listed(tests)}, of whom training has none"
        )
    else:
        if 0 < len(known_groups) < len(groups):
            name = next(recording.name for recording in recordings if recording.group is None)
            notes.append(f"{path}: {len(known_groups)} of {len(groups)} recordings tell whose they "
                         f"are, {name} does not: tests may be of people in training")  # fmt: skip
        recordings, later = _with_pairs(recordings, settings, path, notes)
        labels = np.array([recording.label for recording in recordings])
        chosen = test_samples(labels, settings, path)
        for number in later:
            chosen[number - 1 : number + 1] = False, True
        notes.append(f"{path}: tests are of other recordings than training, some of each class")
    pairs = [*zip(recordings, chosen.tolist(), strict=True)]
    return [[one for one, test in pairs if test == is_test] for is_test in (False, True)]


def _with_pairs(
    recordings: Sequence[Recording], settings: DataSettings, path: Path, notes: list[str]
) -> tuple[list[Recording], list[int]]:
    """Return recordings with two of each class, the only one of a class cut in two, and the numbers
    of its later part."""
    assert settings.test_share is not None
    counts = Counter(recording.label for recording in recordings)
    result: list[Recording] = []
    later = []
    for recording in recordings:
        if counts[recording.label] > 1:
            result.append(recording)
            continue
        steps = len(recording.values)
        at = round(steps * (1 - settings.test_share))
        whole = settings.window is None or settings.test_part is not None
        if whole or min(at, steps - at) < LEAST_PART * (settings.window or 0):
            raise DatasetError(
                "E616", f"there is one recording of the class {recording.label}, of {steps} steps, "
                "to train and to test with", recording.name,
                "Add others, or divide it into smaller windows with --window N.",
            )  # fmt: skip
        first, rest = np.split(recording.values, [at])
        result.append(replace(recording, values=first))
        result.append(replace(recording, values=rest, name=f"{recording.name}, from step {at}"))
        later.append(len(result) - 1)
        notes.append(f"{path}: the only recording of the class {recording.label} is cut in two "
                     f"after {at} of {steps} steps; the rest is for tests")  # fmt: skip
    return result, later


def _listed(names: Sequence[str]) -> str:
    return ", ".join(names[:_SHOWN]) + (
        f" and {len(names) - _SHOWN} more" if names[_SHOWN:] else ""
    )


def _refused(
    place: Path | str, message: str, remedy: str = "Compare docs/own-data.md."
) -> DatasetError:
    return DatasetError("E684", message, str(place), remedy)

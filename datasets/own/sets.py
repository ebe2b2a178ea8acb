"""Data sets of the files of a user, for training and tests.

Source: docs/own-data.md.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor
from torch.utils.data import Dataset

import ai8x
from datasets.errors import DatasetError
from datasets.own.arrays import as_bytes, as_numbers, read_archive
from datasets.own.augmentation import Augmentation
from datasets.own.boxes import boxed_pictures, read_boxes
from datasets.own.folders import Sample, class_files, endings_of_others
from datasets.own.folding import FOLDABLE, fold_of, folding, refuse_fold
from datasets.own.labels import (
    Pair,
    answers,
    divided,
    normal_only,
    refuse_part,
    split,
    windows_named,
)
from datasets.own.masks import masked_pictures, read_mask
from datasets.own.moving import moved
from datasets.own.pictures import Tell, ignore, notes_of, opened, size_of
from datasets.own.preparation import (
    FRAME,
    PICTURES,
    SOUNDS,
    Preparation,
    folded,
    read_picture,
    read_sound,
)
from datasets.own.series import preparation_of, read_series, widened
from datasets.own.settings import (
    ANOMALY,
    AUTO_FOLD,
    BOXES,
    MARKED,
    MASKS,
    REGRESSION,
    SOUND_WINDOW,
    DataSettings,
)
from datasets.own.tables import Table, read_table

_IN_MEMORY = 1 << 30
"""Pictures of more bytes are read when they are needed."""
_PARTS = ("tests", "training")
Answer = tuple[tuple[str, ...], list[Tensor], tuple[float, ...]]
"""What `answers` returns."""
Read = Callable[[bool], tuple[Any, Any, Sequence[str]]]


@dataclass(frozen=True, slots=True)
class OwnData:
    """Classes, how files become inputs, and `read(training)` that returns samples, targets, and the
    name of each sample: its file, line, window or place in an array.

    Targets are labels int64 [N]; of pictures that are `is_marked`, masks uint8 [N, H, W] or
    `BoxLists`. `notes`
    say how the files were understood; what only their contents tell, when they are read. `samples`
    counts those of training; of sounds, their files.
    """

    classes: tuple[str, ...]
    preparation: Preparation
    read: Read
    notes: list[str]
    samples: int
    is_marked: bool = False


def open_data(
    kind: str,
    path: str,
    settings: DataSettings,
    recorded: Preparation | None = None,
    *,
    series: bool = False,
) -> OwnData:
    """Return the data of KIND:PATH; `settings` makes the choices of `USUAL`.

    It is prepared as `recorded`, like the data that a network was trained on, unless its inputs
    have another shape. `series` means that numbers [N, C, L] in arrays are series. Raises
    DatasetError for what cannot be used.
    """
    place = Path(path).expanduser()
    if not path:
        raise DatasetError("E620", "it names no file or folder", f"{kind}:", "Name it.")
    if kind not in FOLDABLE:
        refuse_fold(kind, settings)
    if kind == "npz":
        series = series or (recorded and recorded.kind) == "series"
        return _arrays(place, settings, recorded, series)
    opened = {"folder": _pictures, MASKS: _masks, BOXES: _boxes, "sounds": _sounds, "csv": _table,
              "series": _series}[kind]  # fmt: skip
    return replace(opened(place, settings, recorded), is_marked=kind in MARKED)


def _agreed(own: Preparation, recorded: Preparation | None) -> Preparation:
    """Return the recorded preparation if it is of the same kind and shape, else the `own` one."""
    same = recorded is not None and (recorded.kind, recorded.shape) == (own.kind, own.shape)
    return recorded if recorded is not None and same else own


class _Notes:
    """Notes about files, gathered for one line."""

    def __init__(self) -> None:
        self._files: dict[str, list[str]] = {}

    def __call__(self, note: str, path: Path) -> None:
        """Note something about a file."""
        self._files.setdefault(note, []).append(path.name)

    def __str__(self) -> str:
        parts = (f"{len(names)} with {note} ({names[0]}{', ...' if len(names) > 1 else ''})"
                 for note, names in sorted(self._files.items()))  # fmt: skip
        return "".join(f"; {part}" for part in parts)


def _pictures(folder: Path, settings: DataSettings, recorded: Preparation | None) -> OwnData:
    files = class_files(folder, PICTURES, settings)

    def labels(samples: Sequence[Sample], _how: Preparation) -> tuple[Tensor, str]:
        return torch.tensor([label for _, label in samples]), "pictures"

    parts = files.train, files.test
    data = _of_pictures(folder, files.classes, parts, labels, settings, recorded)
    data.notes.extend(_others(folder, PICTURES))
    return data


def _masks(folder: Path, settings: DataSettings, recorded: Preparation | None) -> OwnData:
    marked = masked_pictures(folder, settings)

    def masks(pairs: Sequence[tuple[Path, Path]], how: Preparation) -> tuple[Tensor, str]:
        read = [read_mask(mask, picture, how, marked.classes) for picture, mask in pairs]
        return torch.from_numpy(np.stack(read)), "pictures with masks"

    parts = marked.train, marked.test
    return _of_pictures(folder, marked.classes, parts, masks, settings, recorded)


def _boxes(folder: Path, settings: DataSettings, recorded: Preparation | None) -> OwnData:
    marked = boxed_pictures(folder, settings)
    parts = marked.train, marked.test
    return _of_pictures(folder, marked.classes, parts, read_boxes, settings, recorded)


def _of_pictures(
    folder: Path,
    classes: tuple[str, ...],
    parts: tuple[Sequence[tuple[Path, Any]], Sequence[tuple[Path, Any]]],
    targets_of: Callable[[Any, Preparation], tuple[Any, str]],
    settings: DataSettings,
    recorded: Preparation | None,
) -> OwnData:
    """Return data of pictures, those of training and of tests, each with what `targets_of` makes
    the targets of, together with the word for such pictures."""
    first = parts[0][0][0]
    channels, resize = 1 if settings.grayscale else 3, settings.resize
    if recorded is not None and settings.fold == AUTO_FOLD:
        settings = replace(settings, fold=recorded.fold)
    fold = fold_of(channels, settings, (path for path, _ in parts[0]))
    with opened(first) as image:
        size = size_of(image) if resize is None else (resize[0] * fold, resize[1] * fold)
    own = folding((channels, *size), fold, first)
    how = _agreed(replace(own, stretch=bool(settings.stretch)), recorded)
    lines: list[str] = []

    def read(training: bool) -> tuple[Any, Any, Sequence[str]]:
        samples, notes = parts[not training], _Notes()
        large = len(samples) * int(np.prod(how.shape)) > _IN_MEMORY
        is_sampled = how.fold > 1 and training and recorded is None
        if resize is None or large or is_sampled:
            _look_through(samples, how, None if resize else first, notes if large else ignore,
                          is_sampled=is_sampled)  # fmt: skip
        targets, what = targets_of(samples, how)
        lazy = LazyPictures(tuple(path for path, _ in samples), how)
        inputs = lazy if large else lazy.of(range(len(samples)), notes)
        kind = f"{len(samples)} {what}, {_text(classes)}, {_size(how)}"
        lines.append(f"{folder}, {_PARTS[training]}: {kind}{notes}")
        return inputs, targets, [str(path) for path, _ in samples]

    return OwnData(classes, how, read, lines, len(parts[0]))


def _look_through(
    samples: Sequence[tuple[Path, Any]], how: Preparation, first: Path | None, tell: Tell,
    *, is_sampled: bool,
) -> None:  # fmt: skip
    """Note what is unusual in pictures before they are read.

    Raises DatasetError E625 for another size than that of the `first`, or for a smaller one than
    that of which more than one pixel `is_sampled`.
    """
    _, rows, columns = how.unfolded
    for path, _ in samples:
        with opened(path) as image:
            for note in notes_of(image, path):
                tell(note, path)
            height, width = size_of(image)
        if first is not None and (height, width) != (rows, columns):
            raise DatasetError(
                "E625", f"the picture has {width}x{height} pixels, but {first} has "
                f"{columns}x{rows}", str(path), "Add --resize 64x64 (or another size).",
            )  # fmt: skip
        if is_sampled and (height < rows or width < columns):
            raise DatasetError(
                "E625", f"the picture has {width}x{height} pixels, fewer than the {columns}x{rows} "
                f"of --fold {how.fold}", str(path), "Use --fold auto, or a smaller --resize.",
            )  # fmt: skip


def _size(how: Preparation) -> str:
    shape, whole = ("x".join(map(str, size)) for size in (how.shape, how.unfolded))
    return f"{shape}, folded by {how.fold} from {whole}" if how.fold > 1 else shape


def _others(folder: Path, endings: Collection[str]) -> list[str]:
    """Return a line about files that are not read, if there are any."""
    others = endings_of_others(folder, endings)
    return [f"{folder}: files that are not read: {others}"] if others else []


def _sounds(folder: Path, settings: DataSettings, recorded: Preparation | None) -> OwnData:
    assert settings.sample_rate is not None
    window = settings.window or SOUND_WINDOW
    files = class_files(folder, SOUNDS, settings)
    shape = FRAME, window // FRAME, 1
    how = _agreed(Preparation("sound", shape, rate=settings.sample_rate), recorded)
    lines = _others(folder, SOUNDS)

    def read(training: bool) -> tuple[Any, Tensor, Sequence[str]]:
        samples, notes = files.train if training else files.test, _Notes()
        windows, labels, names = [], [], []
        for path, label in samples:
            parts = read_sound(path, how, notes)
            windows += parts
            labels += [label] * len(parts)
            names += windows_named(str(path), len(parts))
        kind = f"{len(samples)} sounds, {_text(files.classes)}"
        form = f"{len(windows)} windows of {window} samples at {how.rate} Hz"
        lines.append(f"{folder}, {_PARTS[training]}: {kind}, {form}{notes}")
        return torch.from_numpy(np.stack(windows)).squeeze(3), torch.tensor(labels), names

    return OwnData(files.classes, how, read, lines, len(files.train))


def _text(classes: Sequence[str]) -> str:
    if len(classes) == 1:
        return f"numbers to learn ({classes[0]})"
    shown = ", ".join(classes[:5]) + (", ..." if len(classes) > 5 else "")
    return f"{len(classes)} classes ({shown})"


def _table(path: Path, settings: DataSettings, recorded: Preparation | None) -> OwnData:
    numbers = settings.task == REGRESSION
    if path.is_dir():
        refuse_part(settings, path / "test.csv")
        train = read_table(path / "train.csv", settings.label, learns_numbers=numbers)
        test = read_table(path / "test.csv", settings.label, train, learns_numbers=numbers)
        x, y = (train.features, test.features), (np.array(train.labels), np.array(test.labels))
        if x[0].shape[1] != x[1].shape[1]:
            raise DatasetError(
                "E684", f"it has {x[1].shape[1]} features, train.csv has {x[0].shape[1]}",
                str(path / "test.csv"), "Give both files the same columns.",
            )  # fmt: skip
        form = train.form + (f"; test.csv: {test.form}" if test.form != train.form else "")
        names: Pair = _lines_of(path / "train.csv", train), _lines_of(path / "test.csv", test)
    else:
        train = read_table(path, settings.label, learns_numbers=numbers)
        labels = np.array(train.labels)
        x, y = split(train.features, labels, settings, path)
        names, _ = split(_lines_of(path, train), labels, settings, path)
        form = train.form
    x, y, names = normal_only(x, y, names, path, settings)
    answer = answers(y, path, settings, train.title)
    return _of_features(x, answer, names, path, form, recorded)


def _lines_of(path: Path, table: Table) -> NDArray[Any]:
    return np.array([f"{path}:{number}" for number in table.numbers])


def _arrays(
    path: Path, settings: DataSettings, recorded: Preparation | None, series: bool
) -> OwnData:
    arrays, others = read_archive(path)
    left = f"; not read: {', '.join(others[:5])}" if others else ""
    for name in ("resize", "grayscale", "stretch"):
        if getattr(settings, name):
            raise DatasetError(
                "E685", "arrays are used as they are", f"--{name}", "Leave out the option."
            )
    first = arrays.get("x", arrays.get("x_train"))
    if series and first is not None and first.ndim == 3 and first.dtype != np.uint8:
        refuse_fold("npz", settings)
        return _series(path, settings, recorded)
    x, y, places = divided(arrays, settings, path)
    if x[0].shape[1:] != x[1].shape[1:] or x[0].dtype != x[1].dtype:
        raise DatasetError(
            "E685", f"x_test is {x[1].shape[1:]} of {x[1].dtype}, x_train {x[0].shape[1:]} of "
            f"{x[0].dtype}", str(path), "Give samples for training and tests the same shape.",
        )  # fmt: skip
    first_type = x[0].dtype
    pictures = [as_bytes(path, part) for part in x]
    if pictures[0] is None or pictures[1] is None:
        refuse_fold("npz", settings)
        names = ("x", "x") if "x" in arrays else ("x_train", "x_test")
        rows = [as_numbers(path, name, part) for name, part in zip(names, x, strict=True)]
        x, y, places = normal_only((rows[0], rows[1]), y, places, path, settings)
        answer = answers(y, path, settings)
        return _of_features(x, answer, places, path, f"{first_type}{left}", recorded)
    classes, numbers, target = answers(y, path, settings)
    shape = _shape(pictures[0].shape[1:])
    own = folding(shape, fold_of(shape[0], settings, ()), path)
    how = _agreed(replace(own, target=target), recorded)
    tensors = [torch.from_numpy(np.ascontiguousarray(part)) for part in pictures]
    lines = [f"{path}: {len(x[0])} and {len(x[1])} pictures to train and to test, "
             f"{_text(classes)}, {_size(how)}{left}"]  # fmt: skip
    return _in_memory(classes, how, tensors, numbers, places, lines)


def _in_memory(
    classes: tuple[str, ...], how: Preparation, samples: Sequence[Tensor],
    labels: Sequence[Tensor], places: Pair, notes: list[str],
) -> OwnData:  # fmt: skip
    """Return data of samples, labels and names of training and test that are read already."""

    def read(training: bool) -> tuple[Any, Tensor, Sequence[str]]:
        part = int(not training)
        return samples[part], labels[part], places[part].tolist()

    return OwnData(classes, how, read, notes, len(labels[0]))


def _shape(size: tuple[int, ...]) -> tuple[int, int, int]:
    return size[0], size[1], size[2]


def _of_features(
    x: Pair, answer: Answer, places: Pair, path: Path, form: str, recorded: Preparation | None
) -> OwnData:
    """Return rows of numbers, each column scaled to -1..1 by its extremes in training."""
    if not len(x[1]):
        raise DatasetError("E616", "no class has two samples, one to test with", str(path),
                           "Add samples.")  # fmt: skip
    if x[0].shape[1] > 1024:
        raise DatasetError(
            "E684", f"there are {x[0].shape[1]} features; the chip takes 1024 at most", str(path),
            "Leave out columns.",
        )  # fmt: skip
    classes, numbers, target = answer
    low, high = x[0].min(0), x[0].max(0)
    if ANOMALY in classes:
        low, high = widened(low, high)
    own = Preparation("features", (x[0].shape[1], 1, 1), low=tuple(low.tolist()),
                      high=tuple(high.tolist()), target=target)  # fmt: skip
    how = _agreed(own, recorded)
    levels = [torch.from_numpy(how.of_numbers(part)).squeeze(3) for part in x]
    lines = [f"{path}: {len(x[0])} and {len(x[1])} rows to train and to test, {_text(classes)}, "
             f"{x[0].shape[1]} features; {form}"]  # fmt: skip
    return _in_memory(classes, how, levels, numbers, places, lines)


def _series(path: Path, settings: DataSettings, recorded: Preparation | None) -> OwnData:
    data = read_series(path, settings)
    x, y, places = normal_only(data.x, data.y, data.places, path, settings)
    classes, numbers, target = answers(y, path, settings)
    count, channels, steps = x[0].shape
    series = [*x]
    if recorded is not None and recorded.kind == "series":
        missing = max(0, recorded.shape[1] * recorded.fold - steps)
        series = [np.pad(part, ((0, 0), (0, 0), (0, missing)), mode="edge") for part in series]
    own = preparation_of(path, series[0], whole=settings.task == ANOMALY)
    how = _agreed(replace(own, target=target), recorded)
    levels = [torch.from_numpy(how.of_numbers(part)).squeeze(3) for part in series]
    fold = f", {how.fold} steps are the channels of one" if how.fold > 1 else ""
    lines = [f"{path}: {count} and {len(x[1])} series to train and to test, {_text(classes)}, "
             f"{channels} channels of {steps} steps{fold}", *data.notes]  # fmt: skip
    return _in_memory(classes, how, levels, numbers, places, lines)


class LazyPictures:
    """Pictures that are read when they are needed, as a tensor of bytes would be indexed."""

    def __init__(self, paths: tuple[Path, ...], how: Preparation) -> None:
        self._paths, self._how = paths, how

    def __len__(self) -> int:
        return len(self._paths)

    def __getitem__(self, indices: Tensor) -> Tensor:
        return self.of(indices.tolist())

    def of(self, numbers: Sequence[int], tell: Tell = ignore) -> Tensor:
        """Return some of them; `tell` takes notes on their files."""
        pictures = [read_picture(self._paths[n], self._how, tell) for n in numbers]
        return torch.from_numpy(np.stack(pictures))


class OwnSet(Dataset[tuple[Tensor, Tensor]]):
    """Samples, uint8 [N, ...] normalized or int8 [N, ...] as they are, with targets as `OwnData`
    has them: labels and masks become int64. Pictures are folded after they were changed."""

    def __init__(
        self, samples: Any, labels: Any, args: Any, augment: Augmentation | None = None,
        fold: int = 1,
    ) -> None:  # fmt: skip
        self.samples, self.labels, self.augment, self.fold = samples, labels, augment, fold
        self.normalize = ai8x.normalize(args)
        self.divisor = 1 if args.act_mode_8bit else 128

    def __len__(self) -> int:
        return len(self.labels)

    def _items(self, indices: Tensor) -> tuple[Tensor, Any]:
        samples, targets = self.samples[indices], self.labels[indices]
        if isinstance(targets, Tensor) and not targets.is_floating_point():
            targets = targets.long()
        if self.augment is not None and self.augment.moves:
            samples, targets = moved(samples, targets, self.augment.moves)
        if samples.dtype == torch.int8:
            if self.augment is not None:
                return self.augment(samples.to(torch.float32).div_(128)), targets
            return samples.to(torch.float32).div_(self.divisor), targets
        values = samples.to(torch.float32).div_(255)
        if self.augment is not None:
            values = self.augment(values)
        return torch.from_numpy(folded(self.normalize(values).numpy(), self.fold)), targets

    def __getitem__(self, index: int) -> tuple[Tensor, Any]:
        inputs, targets = self._items(torch.tensor([index]))
        return inputs[0], targets[0]


class OwnSetInMemory(OwnSet):
    """The same, a batch at a time."""

    def batch(self, indices: Tensor) -> tuple[Tensor, Any]:
        """Return inputs (float32) and targets of `indices` [B]."""
        return self._items(indices)


def load(
    data: OwnData, settings: DataSettings, args: Any, parts: tuple[bool, bool]
) -> tuple[OwnSet | None, OwnSet | None]:
    """Return training and test set, each None unless it is one of the `parts`."""
    augment = None
    if settings.augment:
        kind = "marked picture" if data.is_marked else data.preparation.kind
        augment = Augmentation(settings.augment, kind, data.preparation.fold)
    sets: list[OwnSet | None] = []
    for training, is_wanted in zip((True, False), parts, strict=True):
        if not is_wanted:
            sets.append(None)
            continue
        samples, labels, _ = data.read(training)
        make = OwnSet if isinstance(samples, LazyPictures) else OwnSetInMemory
        if not training and args.truncate_testset:
            samples, labels = samples[torch.arange(1)], labels[:1]
        fold = data.preparation.fold
        sets.append(make(samples, labels, args, augment if training else None, fold))
    return sets[0], sets[1]


def limited(settings: DataSettings) -> DataSettings:
    """Return settings for another part of the data; nothing random is changed."""
    return replace(settings, augment=())

"""Which samples are for tests, and the numbers of their classes.

Source: docs/own-data.md.
"""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import Any

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor

from datasets.errors import DatasetError
from datasets.own.arrays import as_numbers
from datasets.own.settings import ANOMALY, REGRESSION, DataSettings

_MOST_CLASSES = 1024
"""No layer has more outputs."""
_SHOWN = 5
_LEAST_DEVIATION = 1e-4
"""Of the mean: single precision keeps a thousandth of such a deviation."""
Array = NDArray[Any]
Pair = tuple[Array, Array]
"""Of training and of test."""


def test_samples(
    y: Array, settings: DataSettings, path: Path, groups: Array | None = None
) -> NDArray[np.bool_]:
    """Return which samples are for tests, bool [N].

    A share of each class, at least one sample of those that have two; with `groups` [N], whole
    groups until the share is reached. Numbers that are no classes are chosen among all. Where one
    of several parts is asked for, each sample or group is in one of them. Raises DatasetError E683
    for too many classes, or groups that cannot be divided.
    """
    assert settings.test_share is not None and settings.split_seed is not None
    if settings.task == REGRESSION:
        y = np.zeros(len(y))
    rng, chosen = np.random.default_rng(settings.split_seed), np.zeros(len(y), bool)
    if groups is not None:
        return _by_group(y, groups, settings, rng, path)
    if (count := len(np.unique(y))) > _MOST_CLASSES:
        raise DatasetError(
            "E683", f"there are {count} classes; the limit is {_MOST_CLASSES}", str(path),
            "Check which column or array has the classes.",
        )  # fmt: skip
    for label in np.unique(y):
        members = rng.permutation(np.flatnonzero(y == label))
        if len(members) > 1:
            chosen[tested(members, settings)] = True
    return chosen


def tested(order: Array, settings: DataSettings) -> Array:
    """Return which of at least two samples or groups, in random order, are for tests."""
    assert settings.test_share is not None
    if settings.test_part is not None:
        return np.array_split(order, settings.parts)[settings.test_part]
    return order[: min(len(order) - 1, max(1, round(settings.test_share * len(order))))]


def refuse_part(settings: DataSettings, path: Path) -> None:
    """Raise DatasetError E685 if a part is asked for of data whose tests lie apart."""
    if settings.test_part is not None:
        raise DatasetError(
            "E685", "its tests lie apart, so that it is not divided into parts", str(path),
            "Leave out --test-part, or give all samples together.",
        )  # fmt: skip


def _by_group(
    y: Array, groups: Array, settings: DataSettings, rng: np.random.Generator, path: Path
) -> NDArray[np.bool_]:
    """Return the samples of random groups, while a class that they have stays in training."""
    chosen, classes, share = np.zeros(len(y), bool), y.dtype.kind != "f", settings.test_share
    assert share is not None
    order = rng.permutation(np.unique(groups))
    for group in order if settings.test_part is None else ():
        more = chosen | (groups == group)
        if more.all() or (classes and not set(y[more].tolist()) <= set(y[~more].tolist())):
            continue
        if chosen.any() and abs(more.mean() - share) > abs(chosen.mean() - share):
            continue
        chosen = more
    if settings.test_part is not None and len(order) > 1:
        chosen = np.isin(groups, tested(order, settings))
        if classes and not set(y[chosen].tolist()) <= set(y[~chosen].tolist()):
            chosen[:] = False
    if not chosen.any():
        raise DatasetError(
            "E616", "no group can be kept for tests without taking a class from training",
            str(path), "Add recordings of other people, or give test samples apart; of CSV files, "
            "--group none takes each recording for itself.",
        )  # fmt: skip
    return chosen


def split(
    x: Array, y: Array, settings: DataSettings, path: Path, groups: Array | None = None
) -> tuple[Pair, Pair]:
    """Return samples and labels of training and test, as `test_samples` chooses."""
    chosen = test_samples(y, settings, path, groups)
    return (x[~chosen], x[chosen]), (y[~chosen], y[chosen])


def divided(
    arrays: Mapping[str, Array], settings: DataSettings, path: Path, groups: Array | None = None
) -> tuple[Pair, Pair, Pair]:
    """Return samples, labels and the samples' places of training and test, of the arrays of a file:
    x and y, which are split, or those of training and test. Raises DatasetError E685 if a part is
    empty."""
    names = ("x", "x") if "x" in arrays else ("x_train", "x_test")
    places = [
        np.array([f"{path}: {name}[{n}]" for n in range(len(arrays[name]))]) for name in names
    ]
    if "x" in arrays:
        x, y = split(arrays["x"], arrays["y"], settings, path, groups)
        (train, test), _ = split(places[0], arrays["y"], settings, path, groups)
    else:
        refuse_part(settings, path)
        x, y = (arrays["x_train"], arrays["x_test"]), (arrays["y_train"], arrays["y_test"])
        train, test = places
    if not len(x[0]) or not len(x[1]):
        raise DatasetError(
            "E685", f"{len(x[0])} samples for training, {len(x[1])} for tests", str(path),
            "Each needs one at least.",
        )  # fmt: skip
    return x, y, (train, test)


def windows_named(name: str, count: int) -> list[str]:
    """Return what the windows of a recording are called."""
    return [f"{name}, window {n}" for n in range(count)] if count > 1 else [name] * count


def normal_only(
    x: Pair, y: Pair, places: Pair, path: Path, settings: DataSettings
) -> tuple[Pair, Pair, Pair]:
    """Return samples, classes as text, and places, where training is of the normal class only: of
    the one that `settings` name, else of the only one in training. Others are for tests, of the
    class ANOMALY.

    Raises DatasetError E683 if the class is not known or missing, or tests lack either kind.
    """
    if settings.task != ANOMALY:
        return x, y, places
    names = tuple(np.array([*map(str, part.tolist())], object) for part in y)
    classes = sorted({*names[0]})
    normal = settings.normal or classes[0]
    if normal not in classes or (len(classes) > 1 and not settings.normal):
        raise DatasetError(
            "E683", f"which class is normal? Training has {', '.join(classes[:_SHOWN])}", str(path),
            "Name it: --anomaly CLASS.",
        )  # fmt: skip
    kept = names[0] == normal
    tests = [np.concatenate([pair[1], pair[0][~kept]]) for pair in (x, names, places)]
    tests[1] = np.where(tests[1] == normal, normal, ANOMALY).astype(str)
    if len({*tests[1].tolist()}) < 2:
        raise DatasetError(
            "E683", f"tests are of the class {tests[1][0]} only", str(path),
            "Add samples that are normal, and others; only tests need these.",
        )  # fmt: skip
    pairs = zip((x[0][kept], names[0][kept].astype(str), places[0][kept]), tests, strict=True)
    new_x, new_y, new_places = pairs
    return new_x, new_y, new_places


def answers(
    y: Pair, path: Path, settings: DataSettings, title: str = "y"
) -> tuple[tuple[str, ...], list[Tensor], tuple[float, ...]]:
    """Return what a network is to answer for the samples of training and test.

    These are the names of the classes, their numbers, and (); of numbers to learn, called `title`,
    their name, the numbers, float32, and those in training: their mean and standard deviation.
    Raises DatasetError as `numbered` and `as_numbers`, E683 for numbers that do not differ.
    """
    if settings.task == ANOMALY:
        normal = str(y[0][0])
        return (normal, ANOMALY), [torch.tensor(part != normal).long() for part in y], ()
    if settings.task != REGRESSION:
        return (*numbered(y, path), ())
    parts = [as_numbers(path, title, part) for part in y]
    mean, deviation = float(parts[0].mean()), float(parts[0].std())
    if deviation <= _LEAST_DEVIATION * max(abs(mean), float(np.finfo(np.float32).tiny)):
        raise DatasetError(
            "E683", f"{title} hardly differs in training: mean {mean:.6g}, standard deviation "
            f"{deviation:.3g}", str(path), "Choose another column, or subtract what is common.",
        )  # fmt: skip
    return (title,), [torch.tensor(part, dtype=torch.float32) for part in parts], (mean, deviation)


def numbered(y: Pair, path: Path) -> tuple[tuple[str, ...], list[Tensor]]:
    """Return the names of the classes, those of training, and the number of each label.

    Raises DatasetError E685 for labels that are no classes, E683 for fewer than two classes, or a
    class of tests only.
    """
    if y[0].dtype.kind not in "iubU" or y[1].dtype.kind not in "iubU":
        raise DatasetError(
            "E685", f"labels are {y[0].dtype}", str(path), "Labels are whole numbers."
        )
    classes = sorted(set(y[0].tolist()))
    strange = sorted(set(y[1].tolist()) - set(classes), key=str)
    if len(classes) < 2 or strange:
        fault = (
            f"the class {strange[0]!r} of a test sample does not occur in training" if strange
            else f"there is only the class {classes[0]!r}; there must be two"
        )  # fmt: skip
        raise DatasetError("E683", fault, str(path), "Compare the labels.")
    number = {label: n for n, label in enumerate(classes)}
    labels = [torch.tensor([number[label] for label in part.tolist()]) for part in y]
    return tuple(map(str, classes)), labels

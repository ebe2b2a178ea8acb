"""The accuracy of a network as train.py prints it, with the confusion matrix."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from pathlib import Path

import numpy as np
from numpy.typing import NDArray

from ai8xtools.emulator import EmulatorError

Integers = NDArray[np.int64]
_TOP = 5


def check_labels(
    labels: Integers, classes: int, path: Path | None = None, names: Sequence[str] = ()
) -> None:
    """Raise EmulatorError (E863) for a label without an output, outputs of one value only, or
    another number of `names`.
    """
    place = None if path is None else str(path)
    if classes < 2:
        raise EmulatorError("E863", "the network has one output and no classes to label", place)
    if names and len(names) != classes:
        raise EmulatorError(
            "E863", f"the network has {classes} outputs, its data {len(names)} classes", place,
            "Generate the project without --stop-after.",
        )  # fmt: skip
    if len(labels) and (labels.min() < 0 or labels.max() >= classes):
        worst = int(labels.max()) if labels.max() >= classes else int(labels.min())
        raise EmulatorError(
            "E863",
            f"a label is {worst}; the network has {classes} outputs, with labels from 0 to "
            f"{classes - 1}",
            place,
        )


def result_lines(
    values: Integers, labels: Integers, path: Path | None = None, names: Sequence[str] = ()
) -> Iterator[str]:
    """Yield accuracies and confusion matrix of outputs [input, class] with their labels [input];
    `names` are those of the classes.

    Raises EmulatorError (E863) as `check_labels` does.
    """
    classes = values.shape[1]
    check_labels(labels, classes, path, names)
    matrix = confusion(values, labels)
    right = int(np.trace(matrix))
    order = np.argsort(-values, axis=1, kind="stable")[:, :_TOP]
    among = int((order == labels[:, None]).any(axis=1).sum())
    top = f"   Top{_TOP}: {100 * among / len(labels):.3f}" if classes > _TOP else ""
    yield f"==> Top1: {100 * right / len(labels):.3f}{top}   ({right} of {len(labels)})"
    rows = matrix.tolist()
    width = len(str(max(map(max, rows))))
    lines = ["[" + " ".join(f"{n:{width}}" for n in row) + "]" for row in rows]
    if names:
        pairs = zip(lines, names, strict=True)
        yield "\n".join(["==> Confusion:", *(f"{line} {name}" for line, name in pairs)])
    else:
        yield "==> Confusion:\n[" + "\n ".join(lines) + "]"


def confusion(values: Integers, labels: Integers) -> Integers:
    """Return how often each class was taken for each: int64 [actual, predicted].

    Of equal outputs the first counts.
    """
    classes = values.shape[1]
    predicted = np.argmax(values, axis=1)
    return np.bincount(labels * classes + predicted, minlength=classes**2).reshape(classes, -1)

"""The user's own data for a project: `emulate.py PROJECT --input KIND:PATH`.

Source: docs/own-data.md, "How good it is".
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from ai8xtools.commands.emulate.scores import confusion, result_lines
from ai8xtools.commands.emulate.trained_on import TrainedOn
from ai8xtools.commands.outcome import accuracy_facts
from ai8xtools.diagnostics import note
from ai8xtools.emulator import EmulatorError
from ai8xtools.values import frozen
from ai8xtools.values.accuracy import Accuracy
from ai8xtools.values.error import Error
from ai8xtools.values.separation import Separation
from datasets.own.settings import kind_and_path

Integers = NDArray[np.int64]
_SHOWN = 5


@frozen
class Samples:
    """Test samples [N, C, H, W] with labels or numbers [N], or marks; the names of the classes and
    of the samples' files, if they have some; notes on them; and the facts of the project."""

    images: NDArray[np.int8]
    labels: Any
    classes: Sequence[str]
    names: Sequence[str]
    notes: Sequence[str]
    trained: TrainedOn


def test_samples(name: str, trained: TrainedOn | None, *, plain: bool = False) -> Samples:
    """Return the test samples of KIND:PATH as train.py chooses and prepares them, for a project
    with the accelerator, or a `plain` one.

    Raises EmulatorError E816 for a project of other data, DatasetError for what cannot be used.
    """
    location = kind_and_path(name)
    if trained is None or location is None:
        raise EmulatorError(
            "E816", "the project does not describe the classes and preparation of its data", name,
            "Generate it from a checkpoint of 8 bits that was trained on data of your own"
            f"{'' if plain else ', or name a .npy file, with --labels'}.",
        )  # fmt: skip
    from datasets.own.sets import LazyPictures, open_data  # here: it needs torch

    data = open_data(*location, trained.settings, trained.preparation)
    if (data.is_marked or trained.is_marked) and location[0] != trained.kind:
        raise EmulatorError(
            "E816", f"the network of the project was trained on data of the kind {trained.kind}:",
            name, "Name data of this kind.",
        )  # fmt: skip
    differing = sorted({*data.classes} ^ {*trained.classes})
    if differing or data.classes != trained.classes:
        raise EmulatorError(
            "E816", f"its classes are not those of the project: {', '.join(differing[:_SHOWN])} in "
            "one of them only", name, "Name data of the classes that the network was trained on.",
        )  # fmt: skip
    if data.preparation != trained.preparation:
        sizes = ["x".join(map(str, p.shape)) for p in (data.preparation, trained.preparation)]
        raise EmulatorError(
            "E816", f"its inputs are {sizes[0]}, those of the project {sizes[1]}", name,
            "Name data like that which the network was trained on.",
        )  # fmt: skip
    samples, labels, names = data.read(False)
    if isinstance(samples, LazyPictures):
        samples = samples.of(range(len(samples)))
    values = samples.numpy()
    images = values if values.dtype == np.int8 else data.preparation.of_bytes(values)
    shape = len(images), *trained.preparation.shape
    targets = labels if data.is_marked else labels.numpy()
    return Samples(images.reshape(shape), targets, data.classes, names, data.notes, trained)


def worst_lines(values: Integers, samples: Samples) -> Iterator[str]:
    """Yield the samples that are wrong, those first whose right class is farthest behind."""
    rows = np.arange(len(values))
    behind = values.max(1) - values[rows, samples.labels]
    wrong = np.flatnonzero(values.argmax(1) != samples.labels)
    order = wrong[np.argsort(-behind[wrong], kind="stable")]
    for number in order[:_SHOWN].tolist():
        name = f" ({samples.names[number]})" if samples.names else ""
        answer = samples.classes[int(values[number].argmax())]
        yield f"input {number}{name}: {samples.classes[samples.labels[number]]}, taken for {answer}"
    if len(order) > _SHOWN:
        yield f"and {len(order) - _SHOWN} more"


def _show_separation(values: Integers, samples: Samples) -> str | None:
    """Print how well scores tell anomalies from others, and some that the threshold does not."""
    scores, threshold = np.square(values).sum(1), samples.trained.threshold
    wrong = np.flatnonzero((scores > threshold) != (samples.labels > 0))
    for n in wrong[:_SHOWN].tolist():
        print(f"input {n} ({samples.names[n]}): {samples.classes[samples.labels[n]]}, score "
              f"{scores[n]}, threshold {threshold:.0f}")  # fmt: skip
    if len(wrong) > _SHOWN:
        print(f"and {len(wrong) - _SHOWN} more")
    separation = Separation.of(scores.tolist(), (samples.labels > 0).tolist(), threshold)
    print(f"AUC of the firmware: {separation}")
    return separation.doubt


def _show_error(values: Integers, samples: Samples) -> str | None:
    """Print how far the numbers of outputs [N, 1] are off, the worst ones first."""
    if values.shape[1] != 1:
        raise EmulatorError(
            "E863", f"the network has {values.shape[1]} outputs, one number was learned", None,
            "Generate the project without --stop-after.",
        )  # fmt: skip
    numbers, expected = samples.trained.numbers(values), samples.labels.astype(np.float64)
    assert numbers is not None
    errors = numbers - expected
    for n in np.argsort(-np.abs(errors), kind="stable")[:_SHOWN].tolist():
        print(f"input {n} ({samples.names[n]}): {samples.classes[0]} = {expected[n]:.6g}, taken "
              f"for {numbers[n]:.6g}")  # fmt: skip
    deviations = expected - samples.trained.preparation.target[0]
    error = Error.of(errors.tolist(), deviations.tolist())
    print(f"RMSE of the firmware: {error}")
    return error.doubt


def show_accuracy(
    values: Integers, labels: Integers, samples: Samples | None, path: Path | None = None
) -> str | None:
    """Print how often outputs [N, class] are right; return a sentence if they are hardly better
    than chance.

    `path` names the file of the labels, unless they are those of `samples`.
    """
    if samples is not None and samples.trained.preparation.target:
        return _show_error(values, samples)
    if samples is not None and samples.trained.finds_anomalies:
        return _show_separation(values, samples)
    classes = () if samples is None else samples.classes
    print("\n".join(result_lines(values, labels, path, classes)))
    for line in () if samples is None else worst_lines(values, samples):
        print(line)
    accuracy = Accuracy.of(confusion(values, labels).tolist())
    note(accuracy=accuracy_facts(accuracy))
    print(f"Accuracy of the firmware: {accuracy}")
    return accuracy.doubt

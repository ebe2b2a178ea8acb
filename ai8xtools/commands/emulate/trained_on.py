"""What a project says about the data that its network was trained on: classes, preparation.

Source: docs/own-data.md, "What the checkpoint holds".
"""

from __future__ import annotations

import json
import os
from collections.abc import Iterator
from pathlib import Path

import numpy as np
from numpy.typing import NDArray

from ai8xtools.emulator import EmulatorError
from ai8xtools.reading.files import read_bytes
from ai8xtools.reading.text import line
from ai8xtools.values import frozen
from ai8xtools.values.accuracy import doubt_of, measured_of
from datasets.own.preparation import DESCRIPTION, Preparation
from datasets.own.settings import ANOMALY, MARKED, USUAL, DataSettings, kind_and_path

_SHOWN = 10
_LARGEST = 1 << 20
Floats = NDArray[np.float64]


@frozen
class TrainedOn:
    """The names of the classes, how files become inputs, and which samples are for tests;
    `sample_class` is that of the project's sample, None if it is not known. `doubt` is a sentence
    about a network that is hardly better than chance, `kind` that of the data as in KIND:PATH. Of
    numbers that are learned, the output `one` stands for 1.0 in training; anomalies have a score
    above `threshold`."""

    classes: tuple[str, ...]
    preparation: Preparation
    settings: DataSettings = USUAL
    sample_class: str | None = None
    doubt: str | None = None
    kind: str = ""
    one: float = 128.0
    threshold: float = 0.0

    @property
    def finds_anomalies(self) -> bool:
        """Whether the outputs are anomaly scores."""
        return self.settings.task == ANOMALY

    @property
    def is_marked(self) -> bool:
        """Whether the labels are marks on pictures instead of classes of samples."""
        return self.kind in MARKED

    def numbers(self, outputs: NDArray[np.int64]) -> Floats | None:
        """Return the numbers that outputs [N, 1] stand for, [N]; None for those of classes."""
        if not self.preparation.target:
            return None
        mean, deviation = self.preparation.target
        return outputs[:, 0].astype(np.float64) * (deviation / self.one) + mean


def trained_on(project: Path) -> TrainedOn | None:
    """Return what `dataset.json` in the folder of a project says; None without the file.

    Raises EmulatorError E865 for a file that ai8xize.py did not write.
    """
    path = project / DESCRIPTION
    if not os.path.lexists(path):
        return None
    try:
        facts = json.loads(read_bytes(path, _LARGEST))
        classes = tuple(line(str(name)) for name in facts["classes"])
        settings = DataSettings.of(facts.get("settings", {})).over(USUAL)
        sample = facts.get("sample_class")
        return TrainedOn(
            classes, Preparation.of(facts["preparation"]), settings,
            None if sample is None else line(str(sample)),
            doubt_of(measured_of(facts.get("accuracy"))),
            (kind_and_path(str(facts.get("source", ""))) or ("",))[0],
            float(facts.get("one", 128)),
            float((facts.get("accuracy") or {}).get("threshold", 0)) * 128**2,
        )  # fmt: skip
    except (OSError, LookupError, TypeError, ValueError, AttributeError, RecursionError) as exc:
        raise EmulatorError(
            "E865", f"it is not as ai8xize.py writes it ({type(exc).__name__}: {exc})", str(path),
            "Generate the project again, or remove the file.",
        ) from exc  # fmt: skip


def class_lines(values: NDArray[np.int64], trained: TrainedOn | None) -> Iterator[str]:
    """Yield the class of each output [input, class], or the number that it stands for, of the first
    inputs; of equal ones the first."""
    if trained is None or trained.is_marked:
        return
    numbers, names = trained.numbers(values), trained.classes
    if trained.finds_anomalies:
        scores = np.square(values).sum(1)[:_SHOWN].tolist()
        answers = [f"score {score}: {names[score > trained.threshold]}" for score in scores]
    elif values.shape[1] != len(names):
        return
    elif numbers is None:
        answers = [names[label] for label in values.argmax(1)[:_SHOWN].tolist()]
    else:
        answers = [f"{names[0]} = {number:.6g}" for number in numbers[:_SHOWN].tolist()]
    for place, answer in enumerate(answers):
        yield f"input {place}: {answer}"
    if len(values) > _SHOWN:
        yield f"and {len(values) - _SHOWN} more"

"""What a checkpoint holds about the user's own data: classes, preparation, a sample; without torch.

Source: docs/own-data.md, "What the checkpoint holds".
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from ai8xtools.diagnostics.errors import InputError
from ai8xtools.values.accuracy import Measured, measured_of
from datasets.own.preparation import Preparation
from datasets.own.settings import MARKED, DataSettings, kind_and_path

KEY = "own_data"
"""The entry of a checkpoint's `extras`."""
ACCURACY = "own_accuracy"
"""Another one: how the network did on the test samples at the end of the run."""
WIDE = "own_wide_layer"
"""Another one, of numbers that are learned: the layer whose wide results they are, or empty."""
DETECTOR = "detector"
"""A part of the first: which values of the outputs are locations and scores of which boxes."""
VERSION = 1


@dataclass(frozen=True, slots=True)
class Recorded:
    """What a checkpoint holds: `sample` is an input of the test set, int8 [C, H, W] or [C, L];
    of one with marks, or a number to learn, `sample_class` is None.

    `accuracy` is None where nothing was measured. `detector` is how boxes are found in outputs.
    """

    source: str
    classes: tuple[str, ...]
    settings: DataSettings
    preparation: Preparation
    sample: NDArray[np.int8]
    sample_class: int | None
    accuracy: Measured | None = None
    detector: Mapping[str, Any] | None = None

    @property
    def is_marked(self) -> bool:
        """Whether it is not samples that are of classes, but what is marked on pictures."""
        return (kind_and_path(self.source) or ("",))[0] in MARKED


def recorded_of(extras: Mapping[str, Any], path: str) -> Recorded | None:
    """Return what the extras of a checkpoint hold about the user's own data; None for any other.

    Raises InputError E506 for an entry of another form.
    """
    record = extras.get(KEY)
    if record is None:
        return None
    try:
        sample = np.asarray(record["sample"])
        recorded = Recorded(
            str(record["source"]), tuple(map(str, record["classes"])),
            DataSettings.of(record["settings"]), Preparation.of(record["preparation"]),
            sample.astype(np.int8),
            None if record["sample_class"] is None else int(record["sample_class"]),
            measured_of(extras.get(ACCURACY)), record.get(DETECTOR),
        )  # fmt: skip
        shape = recorded.preparation.shape
        fits = record["version"] == VERSION and sample.shape in (shape, shape[:2])
        fits = fits and recorded.sample_class in (
            (None,)
            if recorded.is_marked or recorded.preparation.target
            else range(len(recorded.classes))
        )
    except (LookupError, TypeError, ValueError):
        fits = False
    if not fits:
        raise InputError(
            "E506", f"the entry {KEY} of the checkpoint is not as train.py writes it", path,
            "Use the file that train.py wrote, or name data set, sample and network by options.",
        )  # fmt: skip
    return recorded

"""The known answer as records of neighbouring words.

Source: docs/generated-project.md, "Arrays".
"""

from __future__ import annotations

from collections.abc import Iterator
from itertools import pairwise

import numpy as np
from numpy.typing import NDArray

from ai8xtools.synthesis.program import ExpectedOutput, Words
from device.chip import WORD_BYTES


def cut(expected: ExpectedOutput, limit: int | None) -> ExpectedOutput:
    """Return the first `limit` words; all of them without a limit."""
    return ExpectedOutput(
        expected.addresses[:limit],
        expected.masks[:limit],
        expected.values[:limit],
        expected.layers[:limit],
    )


def record_stream(expected: ExpectedOutput) -> Words:
    """Return `address, mask, count, values...` for each run of equal mask, and a 0 at the end."""
    parts: list[NDArray[np.uint32]] = []
    for run in _runs(expected):
        head = [expected.addresses[run.start], expected.masks[run.start], run.stop - run.start]
        parts += [np.array(head, np.uint32), expected.values[run]]
    return np.concatenate([*parts, np.zeros(1, np.uint32)])


def _runs(expected: ExpectedOutput) -> Iterator[slice]:
    if not len(expected):
        return
    far = np.diff(expected.addresses.astype(np.int64)) != WORD_BYTES
    breaks = np.flatnonzero(far | (np.diff(expected.masks.astype(np.int64)) != 0)) + 1
    bounds = [0, *breaks.tolist(), len(expected)]
    for start, stop in pairwise(bounds):
        yield slice(start, stop)

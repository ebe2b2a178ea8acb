"""The kernel memories as rectangles, as few as the map allows."""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np
from numpy.typing import NDArray

from ai8xtools.synthesis.report.values import KernelArea


def kernel_areas(owners: NDArray[np.int16]) -> Iterator[KernelArea]:
    """Yield the areas of a kernel map [processor, column] that holds layers, -1 where nothing is.

    Equal runs of columns in neighbouring processors are one area; areas do not overlap and cover
    all columns that belong to a layer.
    """
    open_runs: dict[tuple[int, int, int], int] = {}
    for processor, row in enumerate(owners):
        runs = frozenset(_runs(row))
        for run in [r for r in open_runs if r not in runs]:
            yield _area(run, open_runs.pop(run), processor)
        for run in sorted(runs):
            open_runs.setdefault(run, processor)
    for run, first in open_runs.items():
        yield _area(run, first, len(owners))


def _runs(row: NDArray[np.int16]) -> Iterator[tuple[int, int, int]]:
    """Yield (layer, column, end column) of a processor."""
    borders = np.flatnonzero(np.diff(row, prepend=-1, append=-1))
    for begin, end in zip(borders[:-1].tolist(), borders[1:].tolist(), strict=True):
        if row[begin] >= 0:
            yield int(row[begin]), begin, end


def _area(run: tuple[int, int, int], first: int, end: int) -> KernelArea:
    layer, column, column_end = run
    return KernelArea(layer, first, end, column, column_end)

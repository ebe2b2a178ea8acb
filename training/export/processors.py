"""Which processors hold the channels of each result, so that all kernels fit.

A layer stores its kernels in the same columns of all processors that hold its input; layers that
use all processors are stored first (docs/network-description.md).
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from device.channels import KERNEL_ALIGNMENT, aligned_columns, channels_per_pass
from device.chip import PROCESSORS, PROCESSORS_PER_GROUP, PROCESSORS_PER_INSTANCE
from frontends.layers import INPUT, DescribedLayer


@dataclass(frozen=True, slots=True)
class _ResultGroup:
    """Results that begin at the same processor, and the layers that take them."""

    results: tuple[int, ...]
    width: int
    takers: tuple[int, ...]
    columns: int


def choose_starts(
    entries: Sequence[DescribedLayer], channels: Mapping[int, int], limit: int
) -> tuple[dict[int, int], bool]:
    """Return the first processor of each result, and whether all kernels fit in `limit` columns.

    `channels` are those of each result. Processors start at 0 if that fits; otherwise several ways
    to spread the layers are tried.
    """
    units = _units(entries, channels)
    trials = [_together(units)]
    for step in (PROCESSORS_PER_INSTANCE, PROCESSORS_PER_GROUP):
        trials.append(_spread(units, lambda unit: (unit.width, unit.columns), step))
        trials.append(_spread(units, lambda unit: (unit.width * unit.columns, 0), step))
        trials.append(_spread(units, lambda unit: (-min(unit.results), 0), step))
    for starts in trials:
        if _fits(entries, units, starts, limit):
            return starts, True
    return trials[0], False


def _units(entries: Sequence[DescribedLayer], channels: Mapping[int, int]) -> list[_ResultGroup]:
    """Return results that must begin together: operands, joined channels, and what passes on."""
    results = (INPUT, *range(len(entries)))
    leaders = {index: index for index in results}

    def unite(members: Sequence[int]) -> None:
        old = {leaders[member] for member in members}
        for index in results:
            if leaders[index] in old:
                leaders[index] = min(old)

    widths = {index: channels_per_pass(channels[index]) for index in results}
    for index, entry in enumerate(entries):
        unite(entry.inputs)
        if "Conv" not in entry.keys["op"] and entry.keys["op"] != "Linear":
            unite((*entry.inputs, index))  # channels stay where they are
        if entry.join == "channels":
            total = min(PROCESSORS, sum(channels[member] for member in entry.inputs))
            widths |= {member: max(total, widths[member]) for member in entry.inputs}
    found = []
    for leader in dict.fromkeys(leaders.values()):
        members = tuple(index for index in results if leaders[index] == leader)
        takers = tuple(n for n, e in enumerate(entries) if set(e.inputs) & set(members))
        columns = sum(aligned_columns(entries[taker].kernels) for taker in takers)
        found.append(_ResultGroup(members, max(widths[m] for m in members), takers, columns))
    return found


def _together(units: Sequence[_ResultGroup]) -> dict[int, int]:
    """Let everything begin at processor 0."""
    return {result: 0 for unit in units for result in unit.results}


def _spread(
    units: Sequence[_ResultGroup], key: Callable[[_ResultGroup], tuple[int, int]], step: int
) -> dict[int, int]:
    """Let each unit, the greatest key first, begin where the fewest columns are taken."""
    used = np.zeros(PROCESSORS, dtype=int)
    starts: dict[int, int] = {}
    for unit in sorted(units, key=key, reverse=True):
        choice = range(0, PROCESSORS - unit.width + 1, step)
        highest = [int(used[first : first + unit.width].max()) for first in choice]
        start = choice[highest.index(min(highest))]
        used[start : start + unit.width] += unit.columns
        starts |= dict.fromkeys(unit.results, start)
    return starts


def _fits(
    entries: Sequence[DescribedLayer],
    units: Sequence[_ResultGroup],
    starts: Mapping[int, int],
    limit: int,
) -> bool:
    """Return whether every layer finds its columns, in the order in which they are stored."""
    spans = {
        taker: (starts[unit.results[0]], unit.width) for unit in units for taker in unit.takers
    }
    used = np.zeros((PROCESSORS, limit), dtype=bool)
    for index in sorted(spans, key=lambda n: (spans[n][1] < PROCESSORS, n)):
        start, width = spans[index]
        need = aligned_columns(entries[index].kernels)
        taken: NDArray[np.bool_] = np.logical_or.reduce(used[start : start + width])
        starting = range(0, limit - need + 1, KERNEL_ALIGNMENT)
        column = next((c for c in starting if not taken[c : c + need].any()), None)
        if column is None:
            return False
        used[start : start + width, column : column + need] = True
    return True

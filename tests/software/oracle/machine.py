"""Memories and copies as a controller makes them, for plans executed in Python.

Copies of a channel complete in order. Delayed, they poison the place that they fill and happen when
they are waited for; at once, they happen when they are started. A plan is right if both give the
same.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Mapping
from typing import Any

import numpy as np
from numpy.lib.stride_tricks import as_strided
from numpy.typing import NDArray

from ai8xtools.software.plan.task import Level, Spot, Traffic
from ai8xtools.values import frozen
from tests.software.oracle.order import INPUT, OUTPUT, WEIGHTS

Bytes = NDArray[np.int8]
POISON = 0x55
CALLER: Any = "caller"
"""The memory of the input and the outputs, which no plan has."""


@frozen
class Copy:
    """`rows` runs of `size` bytes; they begin `to_step` and `from_step` bytes apart."""

    target: Spot
    to_step: int
    source: Spot
    from_step: int
    size: int
    rows: int


class Machine:
    """Memories by level, with what was used of them, and the copies on their way."""

    def __init__(self, sizes: Mapping[Level, int], *, delayed: bool) -> None:
        self.memories: dict[Level, Bytes] = {
            level: np.full(size, POISON, np.int8) for level, size in sizes.items()
        }
        self.used = dict.fromkeys(sizes, 0)
        self.delayed = delayed
        self.traffic, self.starts = Traffic(), 0
        self._waiting: dict[int, deque[Copy]] = {n: deque() for n in (INPUT, WEIGHTS, OUTPUT)}

    def start(self, channel: int, copy: Copy) -> None:
        """Start a copy; it may be waited for later."""
        size = copy.size * copy.rows
        self.starts += 1
        self.traffic += Traffic(inputs=size * (channel == INPUT),
                                weights=size * (channel == WEIGHTS),
                                outputs=size * (channel == OUTPUT))  # fmt: skip
        self._waiting[channel].append(copy)
        if self.delayed:
            self._runs(copy.target, copy.to_step, copy)[:] = POISON
        else:
            self._make(copy)

    def wait(self, channel: int) -> None:
        """Wait for the oldest copy of a channel that was not waited for."""
        copy = self._waiting[channel].popleft()
        if self.delayed:
            self._make(copy)

    def idle(self) -> bool:
        """Whether all copies were waited for."""
        return not any(self._waiting.values())

    def at(self, spot: Spot, size: int) -> Bytes:
        """Return bytes of a memory; it counts as used up to there."""
        memory = self.memories[spot.level]
        end = spot.offset + size
        if spot.offset < 0 or end > len(memory):
            raise IndexError(f"{size} bytes at {spot.offset} leave {spot.level}")
        self.used[spot.level] = max(self.used[spot.level], end)
        return memory[spot.offset : end]

    def _make(self, copy: Copy) -> None:
        target = self._runs(copy.target, copy.to_step, copy)
        target[:] = self._runs(copy.source, copy.from_step, copy)

    def _runs(self, spot: Spot, step: int, copy: Copy) -> Bytes:
        """Return the runs of a copy in a memory: [run, byte]."""
        span = self.at(spot, (copy.rows - 1) * step + copy.size)
        return as_strided(span, (copy.rows, copy.size), (step, 1))

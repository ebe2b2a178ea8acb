"""A task an input channel at a time, executed as software/runtime/levels_planes.c does it."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import numpy as np
from numpy.typing import NDArray

from ai8xtools.software.graph import Convolution, Pool, PoolKind
from ai8xtools.software.plan.buffers import bands_of
from ai8xtools.software.plan.layers import part_of
from ai8xtools.software.plan.schemes import Planes
from ai8xtools.software.plan.task import Task
from tests.software.oracle.arithmetic import finished, mean
from tests.software.oracle.machine import Bytes
from tests.software.oracle.machine import Copy as Transfer
from tests.software.oracle.order import INPUT, OUTPUT
from tests.software.oracle.state import Feed, State, moved


class PlanesRun:
    """A task an input channel at a time."""

    def __init__(self, run: State, task: Task, cut: Planes) -> None:
        assert task.layer is not None and isinstance(task.step, Convolution)
        self.state, self.machine, self.task, self.cut = run, run.machine, task, cut
        self.layer, self.step = task.layer, task.step
        self.source, self.target = run.place(task.step.source), run.place(task.step.target)
        self.feed = Feed(run, task, self._tiles() * bands_of(task.layer, cut.rows))
        self.units = [*self._units()]

    def _tiles(self) -> int:
        return -(-self.layer.out_size[1] // self.cut.columns)

    def _units(self) -> Iterator[tuple[int, int, int, int]]:
        """Yield the first column, row and filter, and the channel, of each unit."""
        for column in range(0, self.layer.out_size[1], self.cut.columns):
            for row in range(0, self.layer.out_size[0], self.cut.rows):
                for first in range(0, self.layer.filters, self.cut.filters):
                    for channel in range(self.step.channels):
                        yield column, row, first, channel

    def run(self) -> None:
        """Compute the task."""
        self.leaving = 0
        waiting = self._fetch(0)
        self.feed.start()
        for number, (column, row, first, channel) in enumerate(self.units):
            for _ in range(waiting):
                self.machine.wait(INPUT)
            weights = self.feed.wait()
            waiting = self._fetch(number + 1)
            self.feed.start()
            if not channel:
                self._settle()
                self._sums(column, row, first)[:] = 0
            self._compute(number, column, row, first, channel, weights)
            if channel == self.step.channels - 1:
                self._finish(column, row, first)
        self._settle()

    def _settle(self) -> None:
        for _ in range(self.leaving):
            self.machine.wait(OUTPUT)
        self.leaving = 0

    def _window(self, column: int, row: int) -> tuple[int, int, int, int]:
        """Return first and end of the input rows and columns of a unit."""
        rows = min(self.cut.rows, self.layer.out_size[0] - row)
        columns = min(self.cut.columns, self.layer.out_size[1] - column)
        top, bottom = self.layer.needed(row)[0], self.layer.needed(row + rows - 1)[1]
        return top, bottom, *self.layer.needed_columns(column, columns)

    def _fetch(self, number: int) -> int:
        """Start the plane of a unit; return the copies."""
        if number >= len(self.units):
            return 0
        column, row, _, channel = self.units[number]
        top, bottom, left, right = self._window(column, row)
        height, width = self.layer.in_size
        size = right - left
        if not size or top == bottom:
            return 0
        there = self.state.buffer(self.task, f"input {number % 2}")
        if self.step.source in self.state.plan.planar:
            source = moved(self.source, (channel * height + top) * width + left)
            self.machine.start(INPUT, Transfer(there, size, source, width, size, bottom - top))
            return 1
        channels = self.step.channels
        source = moved(self.source, (top * width + left) * channels + channel)
        if size == width:
            count = (bottom - top) * width
            self.machine.start(INPUT, Transfer(there, 1, source, channels, 1, count))
            return 1
        for number_ in range(bottom - top):
            self.machine.start(INPUT, Transfer(
                moved(there, number_ * size), 1, moved(source, number_ * width * channels),
                channels, 1, size,
            ))  # fmt: skip
        return bottom - top

    def _sum_size(self, column: int, row: int) -> tuple[int, int]:
        """Return the rows and columns of the sums of a unit."""
        layer = self.layer
        rows = min(self.cut.rows, layer.out_size[0] - row)
        columns = min(self.cut.columns, layer.out_size[1] - column)
        return (
            (rows - 1) * layer.sum_stride[0] + layer.sum_window[0],
            (columns - 1) * layer.sum_stride[1] + layer.sum_window[1],
        )

    def _sums(self, column: int, row: int, first: int) -> NDArray[np.int32]:
        filters = min(self.cut.filters, self.layer.filters - first)
        rows, columns = self._sum_size(column, row)
        there = self.state.buffer(self.task, "sums")
        data = self.machine.at(there, 4 * filters * rows * columns)
        return data.view(np.int32).reshape(filters, rows, columns)

    def _compute(
        self, number: int, column: int, row: int, first: int, channel: int, weights: Bytes | None
    ) -> None:
        step = self.step
        sums = self._sums(column, row, first)
        filters, rows, columns = sums.shape
        if weights is None:
            taps = step.weights[first : first + filters, channel]
        else:
            taps = weights.reshape(filters, *step.kernel)
        top, bottom, left, right = self._window(column, row)
        if top == bottom or left == right:
            return
        there = self.state.buffer(self.task, f"input {number % 2}")
        plane = self.machine.at(there, (bottom - top) * (right - left))
        plane = plane.reshape(bottom - top, right - left)
        above, before = row * self.layer.sum_stride[0], column * self.layer.sum_stride[1]
        for tap_row, tap_column in np.ndindex(*step.kernel):
            ys = (above + np.arange(rows)) * step.stride[0] - step.pad[0]
            xs = (before + np.arange(columns)) * step.stride[1] - step.pad[1]
            ys, xs = ys + tap_row * step.dilation - top, xs + tap_column * step.dilation - left
            inside = ((ys >= 0) & (ys < bottom - top))[:, None] & (xs >= 0) & (xs < right - left)
            data = np.zeros((rows, columns), np.int32)
            if inside.any():
                found = plane[np.clip(ys, 0, bottom - top - 1)[:, None],
                              np.clip(xs, 0, right - left - 1)]  # fmt: skip
                data = np.where(inside, found, 0).astype(np.int32)
            sums += taps[:, tap_row, tap_column].astype(np.int32)[:, None, None] * data

    def _finish(self, column: int, row: int, first: int) -> None:
        """Shift, limit and pool sums in their place, and start to copy them away."""
        step, layer = self.step, self.layer
        sums = self._sums(column, row, first)
        filters, rows, columns = sums.shape
        part = part_of(step, first, first + filters)
        total = sums.astype(np.int64).transpose(1, 2, 0).reshape(-1, filters) + part.start
        found = finished(total, part).reshape(rows, columns, filters).transpose(2, 0, 1)
        if step.pool is not None:
            found = _pooled_planes(found, step.pool)
        bytes_ = np.ascontiguousarray(found).view(np.int8).reshape(-1)
        there = self.state.buffer(self.task, "sums")
        self.machine.at(there, bytes_.size)[:] = bytes_
        rows, columns = found.shape[1:]
        size, (height, width) = layer.out_bytes, layer.out_size
        planar = step.target in self.state.plan.planar
        for number in range(filters):
            source = moved(there, number * rows * columns * size)
            if planar:
                at = ((first + number) * height + row) * width + column
                copy = Transfer(moved(self.target, at), width, source, columns, columns, rows)
                self.machine.start(OUTPUT, copy)
                self.leaving += 1
                continue
            pitch = layer.filters * size
            for y in range(rows):
                at = ((row + y) * width + column) * pitch + (first + number) * size
                copy = Transfer(moved(self.target, at), pitch,
                                moved(source, y * columns * size), size, size, columns)  # fmt: skip
                if columns == width:
                    copy = Transfer(copy.target, pitch, source, size, size, rows * columns)
                self.machine.start(OUTPUT, copy)
                self.leaving += 1
                if columns == width:
                    break


def _pooled_planes(found: NDArray[Any], pool: Pool) -> NDArray[Any]:
    """Return pooled planes [filter, row, column]; windows do not overlap."""
    rows, columns = (
        (n - w) // s + 1 for n, w, s in zip(found.shape[1:], pool.window, pool.stride, strict=True)
    )
    taps = np.stack([
        found[:, y :: pool.stride[0], x :: pool.stride[1]][:, :rows, :columns]
        for y, x in np.ndindex(*pool.window)
    ]).astype(np.int64)  # fmt: skip
    average = pool.kind is not PoolKind.MAX
    pooled = mean(taps.sum(axis=0), pool) if average else taps.max(axis=0)
    narrow: NDArray[np.int8] = pooled.astype(np.int8)
    return narrow

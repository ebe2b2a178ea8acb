"""A stack of layers a channel at a time, executed as software/runtime/levels_channels.c does it."""

from __future__ import annotations

import numpy as np

from ai8xtools.software.graph import Convolution, Pool, PoolKind
from ai8xtools.software.plan.layers import part_of
from ai8xtools.software.plan.schemes import Channels
from ai8xtools.software.plan.task import Task
from tests.software.oracle.arithmetic import finished, mean
from tests.software.oracle.machine import Bytes
from tests.software.oracle.machine import Copy as Transfer
from tests.software.oracle.order import INPUT, OUTPUT
from tests.software.oracle.state import Feed, State, moved


class ChannelsRun:
    """Layers that work on one channel after the other, in place."""

    def __init__(self, run: State, task: Task) -> None:
        assert task.layer is not None
        self.state, self.machine, self.task = run, run.machine, task
        self.channels = task.layer.channels
        self.source, self.target = run.place(task.sources[0]), run.place(task.step.target)

    def run(self) -> None:
        """Compute the task."""
        self._weights()
        self._fetch(0)
        for channel in range(self.channels):
            self.machine.wait(INPUT)
            following = channel + 1 < self.channels
            if self.task.ahead:
                if channel and following:
                    self.machine.wait(OUTPUT)
                if following:
                    self._fetch(channel + 1)
            for link in self.task.links:
                self._compute(link, channel)
            self._leave(channel)
            if not self.task.ahead:
                self.machine.wait(OUTPUT)
                if following:
                    self._fetch(channel + 1)
        for _ in range(min(self.channels, 2) if self.task.ahead else 0):
            self.machine.wait(OUTPUT)

    def _weights(self) -> None:
        feeds = [Feed(self.state, link, 1) for link in self.task.links]
        for feed in feeds:
            feed.start()
        for link, feed in zip(self.task.links, feeds, strict=True):
            data = feed.wait()
            if data is not None and isinstance(link.step, Convolution):
                assert np.array_equal(data, link.step.weights.reshape(-1))

    def _work(self, channel: int, offset: int, size: int) -> Bytes:
        number = channel % 2 if self.task.ahead else 0
        work = self.state.buffer(self.task, f"work {number}")
        return self.machine.at(moved(work, offset), size)

    def _fetch(self, channel: int) -> None:
        layer, cut = self.task.layer, self.task.cut
        assert layer is not None and isinstance(cut, Channels)
        rows, columns = layer.in_size
        number = channel % 2 if self.task.ahead else 0
        there = moved(self.state.buffer(self.task, f"work {number}"), cut.place)
        self.machine.start(INPUT, Transfer(
            there, 1, moved(self.source, channel), self.channels, 1, rows * columns
        ))  # fmt: skip

    def _leave(self, channel: int) -> None:
        last = self.task.links[-1]
        assert isinstance(last.cut, Channels)
        number = channel % 2 if self.task.ahead else 0
        there = moved(self.state.buffer(self.task, f"work {number}"), last.cut.result)
        self.machine.start(OUTPUT, Transfer(
            moved(self.target, channel), self.channels, there, 1, 1, last.pixels
        ))  # fmt: skip

    def _compute(self, link: Task, channel: int) -> None:
        layer, cut = link.layer, link.cut
        assert layer is not None and isinstance(cut, Channels)
        rows, columns = layer.in_size
        plane = self._work(channel, cut.place, rows * columns).reshape(rows, columns)
        out = self._work(channel, cut.result, link.pixels)
        for number, (y, x) in enumerate(np.ndindex(*layer.out_size)):
            if isinstance(link.step, Convolution):
                out[number] = _convolved(link.step, plane, y, x, channel)
            else:
                assert isinstance(link.step, Pool)
                out[number] = _pooled(link.step, plane, y, x)


def _convolved(step: Convolution, plane: Bytes, y: int, x: int, channel: int) -> int:
    pool, part = step.pool, part_of(step, channel, channel + 1)
    if pool is None:
        return _result(step, part, plane, y, x)
    window = [
        _result(step, part, plane, y * pool.stride[0] + i, x * pool.stride[1] + k)
        for i, k in np.ndindex(*pool.window)
    ]
    return _of_window(np.array(window), pool)


def _result(step: Convolution, part: Convolution, plane: Bytes, y: int, x: int) -> int:
    total = int(part.start[0])
    for i, k in np.ndindex(*step.kernel):
        row = y * step.stride[0] - step.pad[0] + i * step.dilation
        column = x * step.stride[1] - step.pad[1] + k * step.dilation
        if 0 <= row < plane.shape[0] and 0 <= column < plane.shape[1]:
            total += int(part.weights[0, 0, i, k]) * int(plane[row, column])
    return int(finished(np.array([[total]], np.int64), part)[0, 0])


def _pooled(pool: Pool, plane: Bytes, y: int, x: int) -> int:
    top, left = y * pool.stride[0], x * pool.stride[1]
    rows = top + pool.dilation[0] * np.arange(pool.window[0])
    columns = left + pool.dilation[1] * np.arange(pool.window[1])
    return _of_window(plane[np.ix_(rows, columns)].astype(np.int64).reshape(-1), pool)


def _of_window(values: np.ndarray[tuple[int, ...], np.dtype[np.int64]], pool: Pool) -> int:
    if pool.kind is PoolKind.MAX:
        return int(values.max())
    return int(mean(np.array([[values.sum()]]), pool)[0, 0])

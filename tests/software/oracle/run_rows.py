"""A task in bands of rows, executed in Python as software/runtime/levels_rows.c does it."""

from __future__ import annotations

from collections.abc import Callable, Iterator

import numpy as np
from numpy.typing import NDArray

from ai8xtools.software.graph import Combine, Convolution, Pool, PoolKind, sources_of
from ai8xtools.software.memory import aligned
from ai8xtools.software.plan.buffers import SCRATCH, bands_of
from ai8xtools.software.plan.geometry import Geometry
from ai8xtools.software.plan.layers import part_of, scratch_of
from ai8xtools.software.plan.schemes import Rows, Weights
from ai8xtools.software.plan.task import Spot, Task
from ai8xtools.values import frozen
from tests.software.oracle.arithmetic import joined, mean, sums_of_row
from tests.software.oracle.machine import Bytes
from tests.software.oracle.machine import Copy as Transfer
from tests.software.oracle.order import INPUT, OUTPUT, Act, Event, row_events, runs
from tests.software.oracle.state import Feed, State, moved


@frozen
class Piece:
    """Output columns from `column` on, input columns from `start` to `end`; filters likewise."""

    column: int
    columns: int
    start: int
    end: int
    filter: int
    filters: int


class RowsRun:
    """A task in bands of rows."""

    def __init__(self, run: State, task: Task, cut: Rows) -> None:
        assert task.layer is not None
        self.state, self.machine, self.task, self.cut = run, run.machine, task, cut
        self.layer: Geometry = task.layer
        self.step = task.step
        self.sources = [run.place(s) for s in sources_of(task.step) if not run.passes(s)]
        if not run.passes(task.step.target):
            self.target = run.place(task.step.target)
        tiles = -(-self.layer.out_size[1] // cut.columns)
        bands = bands_of(self.layer, cut.band)
        times = {Weights.ROWS_OUTER: tiles * bands, Weights.WEIGHTS_OUTER: tiles}
        self.feed = Feed(run, task, times.get(cut.weights, 1))

    def run(self) -> None:
        """Compute the task."""
        self.feed.start()
        layer, cut = self.layer, self.cut
        for column in range(0, layer.out_size[1], cut.columns):
            columns = min(cut.columns, layer.out_size[1] - column)
            start, end = self.span(column, columns)
            step = cut.filters if self.task.filters_outer else layer.filters
            for first in range(0, layer.filters, step):
                filters = min(step, layer.filters - first)
                piece = Piece(column, columns, start, end, first, filters)
                whole = cut.weights is Weights.RESIDENT and not column
                if whole or cut.weights is Weights.WEIGHTS_OUTER:
                    self.checked(self.feed.take(), first, filters)
                self._stream(piece)

    def span(self, column: int, columns: int) -> tuple[int, int]:
        """Return first and end of the input columns that are there for some output columns."""
        if self.task.reads or self.task.chained:
            return 0, self.layer.in_size[1]
        return self.layer.needed_columns(column, columns)

    def whole(self) -> Piece:
        """Return the piece that is all columns and filters."""
        columns, filters = self.layer.out_size[1], self.layer.filters
        return Piece(0, columns, *self.span(0, columns), 0, filters)

    def checked(self, data: Bytes | None, first: int, filters: int) -> None:
        """See that the weights that arrived are those of a group."""
        if data is None:
            return
        step = self.step
        assert isinstance(step, Convolution)
        part = part_of(step, first, first + filters)
        kernel = self.state.plan.kernels[step.target]
        packed = kernel.pack(part).values.view(np.int8).reshape(-1)
        if not np.array_equal(packed, data):
            raise AssertionError(f"{self.task.name}: weights have not arrived")

    def _stream(self, piece: Piece) -> None:
        for event in self._events():
            match event.act:
                case Act.START if event.numbers[0] == INPUT:
                    self.fetch(piece, *event.numbers[1:])
                case Act.START:
                    self.leave(piece, *event.numbers[1:])
                case Act.WAIT:
                    for _ in range(self.copies(piece, event.numbers[0])):
                        self.machine.wait(event.numbers[0])
                case _:
                    self._compute(piece, *event.numbers)

    def copies(self, piece: Piece, channel: int) -> int:
        """Return how many copies were started at once."""
        if channel == INPUT:
            nothing = self.task.reads or piece.start == piece.end
            return 0 if nothing else self.layer.sources
        return 0 if self.task.writes else 1

    def _events(self) -> Iterator[Event]:
        if self.task.ahead:
            return row_events(self.layer, self.cut.band, self.task.slots)
        return just_in_time(self.layer, self.cut.band, self.task.slots)

    def fetch(self, piece: Piece, row: int, rows: int, slot: int) -> None:
        """Start to copy input rows into the ring."""
        if self.task.reads or piece.start == piece.end:
            return
        layer, pixel = self.layer, self.layer.channels * self.layer.in_bytes
        for number, source in enumerate(self.sources):
            ring = self.state.buffer(self.task, f"input {number}")
            size = (piece.end - piece.start) * pixel
            left = self.task.input_bytes - row * layer.row_bytes
            from_ = moved(source, row * layer.row_bytes + piece.start * pixel)
            to = moved(ring, slot * self.task.pitch)
            if left < rows * layer.row_bytes:  # the last row of pixels is shorter
                size = min(size, left)
            self.machine.start(
                INPUT, Transfer(to, self.task.pitch, from_, layer.row_bytes, size, rows)
            )

    def leave(self, piece: Piece, unit: int, buffer: int) -> None:
        """Start to copy the results of a unit away."""
        if self.task.writes:
            return
        layer = self.layer
        first = unit * self.cut.band
        rows = min(self.cut.band, layer.out_size[0] - first)
        pixel = layer.filters * layer.out_bytes
        row_bytes = layer.out_size[1] * pixel
        source = self.state.buffer(self.task, f"output {buffer}")
        target = moved(self.target, first * row_bytes + piece.column * pixel)
        if piece.filters < layer.filters:
            target = moved(target, piece.filter * layer.out_bytes)
            size = piece.filters * layer.out_bytes
            columns = self._columns(piece, first)
            copy = Transfer(target, pixel, source, size, size, columns)
        else:
            size = self._columns(piece, first) * pixel
            copy = Transfer(target, row_bytes, source, size, size, rows)
        self.machine.start(OUTPUT, copy)

    def _columns(self, piece: Piece, row: int) -> int:
        """Return the columns of an output row; the last row of pixels is shorter."""
        width = self.layer.out_size[1]
        return min(piece.columns, self.task.pixels - row * width - piece.column)

    def _row(self, piece: Piece, source: int, y: int) -> Bytes | None:
        """Return a row of input, or None if there is none."""
        layer = self.layer
        if not 0 <= y < layer.in_size[0] or piece.start == piece.end:
            return None
        pixel = layer.channels * layer.in_bytes
        size = (piece.end - piece.start) * pixel
        size = min(size, self.task.input_bytes - y * layer.row_bytes)
        if self.task.reads:
            return self.machine.at(moved(self.sources[source], y * self.task.pitch), size)
        ring = self.state.buffer(self.task, f"input {source}")
        return self.machine.at(moved(ring, y % self.task.slots * self.task.pitch), size)

    def _compute(self, piece: Piece, unit: int, first: int, rows: int) -> None:
        cut, pixel = self.cut, piece.filters * self.layer.out_bytes
        if not self.task.writes:
            there = self.state.buffer(self.task, f"output {unit % 2}")
            pitch, column = piece.columns * pixel, 0
        else:
            there = moved(self.target, first * self.layer.out_size[1] * pixel)
            pitch, column = self.layer.out_size[1] * pixel, piece.column * pixel
        self.spoil()
        outer = cut.weights is Weights.ROWS_OUTER
        step = cut.filters if outer else piece.filters
        for filter_ in range(piece.filter, piece.filter + piece.filters, step):
            filters = min(step, piece.filter + piece.filters - filter_)
            if outer:
                self.checked(self.feed.take(), filter_, filters)
            for y in range(first, first + rows):
                found = self._made(piece, y, filter_, filters)
                bytes_ = filters * self.layer.out_bytes
                begin = (filter_ - piece.filter) * self.layer.out_bytes
                start = moved(there, (y - first) * pitch + column)
                out = self.machine.at(start, len(found) * pixel).reshape(len(found), pixel)
                out[:, begin : begin + bytes_] = found.view(np.int8).reshape(len(found), -1)

    def spoil(self) -> None:
        """Overwrite the memory that kernels work in."""
        key = (self.task.index, SCRATCH)
        if (scratch := self.state.plan.buffers.get(key)) is not None:
            size = scratch_of(self.task.step, self.state.plan.kernels)
            self.machine.at(scratch, aligned(size))[:] = 0x2A

    def make_row(self, piece: Piece, y: int, there: Spot) -> None:
        """Make a whole row in a place."""
        self.spoil()
        found = self._made(piece, y, 0, piece.filters).view(np.int8).reshape(-1)
        self.machine.at(there, found.size)[:] = found

    def _made(self, piece: Piece, y: int, first: int, filters: int) -> NDArray[np.generic]:
        """Return results of a row: [column, filter]."""
        columns = self._columns(piece, y)
        match self.step:
            case Convolution():
                part = self.step
                if filters < part.filters:
                    part = part_of(part, first, first + filters)
                return _convolved(part, y, piece.column, columns, piece.start,
                                  lambda row: self._row(piece, 0, row))  # fmt: skip
            case Pool():
                return _pooled(self.step, y, piece.column - piece.start, columns, piece.start,
                               lambda row: self._row(piece, 0, row))  # fmt: skip
            case Combine():
                rows = [self._row(piece, n, y) for n in range(len(self.sources))]
                skipped = (piece.column - piece.start) * self.layer.channels
                size = columns * self.layer.channels
                some = [row[skipped : skipped + size] for row in rows if row is not None]
                return joined(self.step.join, some).astype(np.int8).reshape(columns, -1)
            case _:
                raise AssertionError(f"{self.task.name} has no rows")


def just_in_time(layer: Geometry, band: int, slots: int) -> Iterator[Event]:
    """Yield the order of bands whose rows are copied when the band before is done."""
    height, begin = layer.out_size[0], 0
    total = bands_of(layer, band)
    for unit in range(total):
        first = unit * band
        rows = min(band, height - first)
        end = layer.needed(first + rows - 1)[1]
        starts = [*runs(begin, end, slots)]
        yield from (Event(Act.START, (INPUT, *run)) for run in starts)
        yield from (Event(Act.WAIT, (INPUT,)) for _ in starts)
        if unit >= 2:
            yield Event(Act.WAIT, (OUTPUT,))
        yield Event(Act.COMPUTE, (unit, first, rows))
        yield Event(Act.START, (OUTPUT, unit, unit % 2))
        begin = end
    yield from (Event(Act.WAIT, (OUTPUT,)) for _ in range(min(2, total)))


def _convolved(
    step: Convolution,
    y: int,
    column: int,
    columns: int,
    start: int,
    row: Callable[[int], Bytes | None],
) -> NDArray[np.generic]:
    """Return a row of a convolution, pooled if it pools: [column, filter]."""
    if step.pool is None:
        return sums_of_row(step, _under(step, y, row), column, columns, start)
    pool, average = step.pool, step.pool.kind is not PoolKind.MAX
    first, last = column * pool.stride[1], (column + columns - 1) * pool.stride[1] + pool.window[1]
    places = np.arange(columns)[:, None] * pool.stride[1] + np.arange(pool.window[1])
    windows = []
    for number in range(pool.window[0]):
        rows = _under(step, y * pool.stride[0] + number, row)
        made = sums_of_row(step, rows, first, last - first, start)
        windows.append(made[places].astype(np.int64))
    window = np.concatenate(windows, axis=1)
    found = mean(window.sum(axis=1), pool) if average else window.max(axis=1)
    narrow: NDArray[np.int8] = found.astype(np.int8)
    return narrow


def _under(step: Convolution, y: int, row: Callable[[int], Bytes | None]) -> list[Bytes | None]:
    """Return the input rows under the kernel at a row of sums."""
    found = []
    for number in range(step.kernel[0]):
        place, rest = divmod(
            y * step.stride[0] - step.pad[0] + number * step.dilation, step.spread[0]
        )
        found.append(None if rest else row(place))
    return found


def _pooled(
    step: Pool, y: int, column: int, columns: int, start: int, row: Callable[[int], Bytes | None]
) -> NDArray[np.int8]:
    """Return a row of a pooling whose input rows begin at column `start`: [column, channel]."""
    first = (column + start) * step.stride[1] - start
    taps = []
    for number in range(step.window[0]):
        data = row(y * step.stride[0] + number * step.dilation[0])
        assert data is not None
        pixels = data.astype(np.int64).reshape(-1, step.channels)
        for tap in range(step.window[1]):
            at = first + tap * step.dilation[1]
            taps.append(pixels[at :: step.stride[1]][:columns])
    window = np.stack(taps)
    found = window.max(axis=0)
    if step.kind is not PoolKind.MAX:
        found = mean(window.sum(axis=0), step)
    narrow: NDArray[np.int8] = found.astype(np.int8)
    return narrow

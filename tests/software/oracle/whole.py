"""Execution of a plan in one array of bytes, as the C program does it, to prove the plan.

Rows are made on demand in the places that the plan gives them. A plan that overwrites what is still
needed gives other results than the simulation.
"""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from ai8xtools.software.graph import (
    Combine,
    Convolution,
    Copy,
    Insert,
    Int64,
    Piece,
    Pool,
    PoolKind,
    Roll,
    Step,
    sources_of,
)
from ai8xtools.software.plan.buffers import SUMS
from ai8xtools.software.plan.plan import Plan
from ai8xtools.software.plan.schemes import Scheme
from ai8xtools.software.plan.streaming import Part, rows_of, streams
from tests.software.oracle.arithmetic import joined, mean, sums_of_row

Bytes = NDArray[np.int8]
_POISON = 0x55


class Executor:
    """Memory of a program; `run` is one inference."""

    def __init__(self, plan: Plan) -> None:
        self.plan, self.graph = plan, plan.graph
        self.arena: Bytes = np.full(max(plan.arena_bytes, 1), _POISON, np.int8)
        self.output: Bytes = np.zeros(
            max(o.offset + self.graph.tensors[o.tensor].size_bytes for o in plan.outputs), np.int8
        )
        self.input: Bytes = np.zeros(0, np.int8)
        self.done: dict[int, int] = {}
        self.within: set[int] = set()
        self.maker = {step.target: step for step in self.graph.steps}
        if self.graph.kept is not None:
            self._whole(self.graph.kept)[:] = 0

    def run(self, sample: Int64) -> tuple[Int64, ...]:
        """Return the outputs [channel, row, column] of an input [channel, row, column]."""
        self.input = sample.transpose(1, 2, 0).astype(np.int8).reshape(-1)
        self.done = {}
        for segment in self.plan.tasks:
            steps = self.plan.steps_of(segment)
            by_rows = self.plan.scheme is Scheme.ROWS and streams(
                steps[0], self.graph, recounted=len(steps) > 1
            )
            self.within = {step.target for step in steps} if by_rows else set()
            if by_rows and self.plan.takes_rows:
                self.within.add(self.graph.input)
            for step in steps:
                if isinstance(step, Insert | Roll) or (isinstance(step, Copy) and not by_rows):
                    self._run(step)
                elif step.target in segment.roots:
                    self._demand(step.target, rows_of(step, self.graph))
        for output in self.plan.outputs:
            if output.copied:
                data = self._whole(output.tensor)
                self.output[output.offset : output.offset + data.size] = data
        return tuple(self._delivered(o.tensor, o.offset) for o in self.plan.outputs)

    def _delivered(self, tensor: int, offset: int) -> Int64:
        one = self.graph.tensors[tensor]
        data = self.output[offset : offset + one.size_bytes]
        values = data.view(np.int32) if one.bytes_per_value == 4 else data
        return values.astype(np.int64).reshape(one.rows, one.columns, -1).transpose(2, 0, 1)

    def _memory(self, tensor: int) -> tuple[Bytes, int]:
        """Return where a tensor stands: an array, and the place of its first byte."""
        block = self.plan.block_of(tensor)
        if block is not None:
            return self.arena, block.offset
        if tensor == self.graph.input:
            return self.input, 0
        return self.output, next(
            o.offset for o in self.plan.outputs if o.tensor == tensor and not o.copied
        )

    def _whole(self, tensor: int) -> Bytes:
        memory, start = self._memory(tensor)
        return memory[start : start + self.graph.tensors[tensor].size_bytes]

    def _row(self, tensor: int, y: int, rows: int) -> Bytes:
        """Return the bytes of a row of a tensor whose rows are counted so."""
        one = self.graph.tensors[tensor]
        ring = self.plan.rings.get(tensor, one.rows)
        size = one.size_bytes // rows
        memory, start = self._memory(tensor)
        place = start + y % (ring * rows // one.rows) * size
        return memory[place : place + size]

    def _demand(self, tensor: int, count: int) -> None:
        """Make rows of a tensor until there are `count`."""
        while self.done.get(tensor, 0) < count:
            y = self.done.get(tensor, 0)
            if tensor == self.graph.input:
                rows = self.graph.tensors[tensor].rows
                size = self.input.size // rows
                self._row(tensor, y, rows)[:] = self.input[y * size : (y + 1) * size]
            else:
                self._make(self.maker[tensor], y)
            self.done[tensor] = y + 1

    def _fetch(self, step: Step, part: Part) -> None:
        for source in dict.fromkeys(sources_of(step)):
            if source in self.within:
                size, rows = self.graph.tensors[source].size_bytes, self._read(step)
                row = self.graph.tensors[source].row_bytes
                self._demand(source, -(-part.end * (size // rows if rows else row) // row))

    def _read(self, step: Step) -> int:
        """Return in how many rows a step reads its sources; 0: as they were made."""
        match step:
            case Convolution() | Pool():
                return step.in_size[0]
            case Combine():
                return step.size[0]
            case _:
                return 0

    def _make(self, step: Step, y: int) -> None:
        match step:
            case Convolution():
                self._convolve(step, y)
            case Pool():
                self._pool(step, y)
            case Combine():
                self._fetch(step, Part(y, y + 1))
                rows = [self._row(source, y, step.size[0]) for source in step.sources]
                self._row(step.target, y, step.size[0])[:] = joined(step.join, rows)
            case Copy():
                self._copy_row(step, y)
            case _:
                raise AssertionError(f"{step.name} is not made by rows")

    def _convolve(self, step: Convolution, y: int) -> None:
        out = self._row(step.target, y, rows_of(step, self.graph))
        if step.pool is None:
            out[:] = self._sums(step, y).reshape(-1).view(np.int8)
            return
        pool, average = step.pool, step.pool.kind is not PoolKind.MAX
        sums = out
        if average:
            key = (self.graph.steps.index(step), SUMS)
            block = next((b for b in self.plan.blocks if b.buffer == key), None)
            assert block is not None
            sums = self.arena[block.offset : block.offset + block.size].view(np.int16)
        for number in range(pool.window[0]):
            row = self._sums(step, y * pool.stride[0] + number)
            columns = np.arange(pool.out_size[1])[:, None] * pool.stride[1]
            window = row[columns + np.arange(pool.window[1])].astype(np.int64)
            found = (window.sum(axis=1) if average else window.max(axis=1)).reshape(-1)
            if number:
                found = found + sums if average else np.maximum(found, sums)
            sums[:] = found
        if average:
            out[:] = mean(sums.astype(np.int64), pool)

    def _sums(self, step: Convolution, y: int) -> NDArray[np.int8] | NDArray[np.int32]:
        """Return a row of results before pooling: [column, filter]."""
        top = y * step.stride[0] - step.pad[0]
        reach = (step.kernel[0] - 1) * step.dilation
        end = (top + reach) // step.spread[0] + 1
        self._fetch(step, Part(0, min(max(end, 0), step.in_size[0])))
        found = []
        for number in range(step.kernel[0]):
            place, rest = divmod(top + number * step.dilation, step.spread[0])
            inside = not rest and 0 <= place < step.in_size[0]
            found.append(self._row(step.source, place, step.in_size[0]) if inside else None)
        return sums_of_row(step, found, 0, step.out_size[1])

    def _pool(self, step: Pool, y: int) -> None:
        first = y * step.stride[0]
        reach = (step.window[0] - 1) * step.dilation[0]
        self._fetch(step, Part(first, first + reach + 1))
        taps = [
            self._row(step.source, first + number * step.dilation[0], step.in_size[0])
            .reshape(step.in_size[1], -1)[column * step.dilation[1] :: step.stride[1]]
            [: step.out_size[1]].astype(np.int64)
            for number in range(step.window[0])
            for column in range(step.window[1])
        ]  # fmt: skip
        window = np.stack(taps)
        found = window.max(axis=0)
        if step.kind is not PoolKind.MAX:
            found = mean(window.sum(axis=0), step)
        self._row(step.target, y, step.out_size[0])[:] = found.reshape(-1)

    def _copy_row(self, step: Copy, y: int) -> None:
        self._fetch(step, Part(y, y + 1))
        rows = self.graph.tensors[step.target].rows
        out = self._row(step.target, y, rows)
        for piece in step.pieces:
            _copied(out, self._row(piece.source, y, rows), piece, piece.count // rows)

    def _run(self, step: Copy | Insert | Roll) -> None:
        """Run a step on whole tensors."""
        out = self._whole(step.target)
        match step:
            case Copy():
                for piece in step.pieces:
                    _copied(out, self._whole(piece.source), piece, piece.count)
            case Insert():
                data = self._whole(step.source)
                out[out.size - data.size :] = data
            case Roll():
                out[: out.size - step.dropped] = out[step.dropped :].copy()
                out[out.size - step.dropped :] = 0


def _copied(out: Bytes, data: Bytes, piece: Piece, count: int) -> None:
    for run in range(count):
        to, source = piece.to_start + run * piece.to_step, piece.from_start + run * piece.from_step
        out[to : to + piece.length] = data[source : source + piece.length]

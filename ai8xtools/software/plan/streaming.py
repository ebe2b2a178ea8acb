"""Rows on demand: how many rows of each tensor must exist at the same time.

Each step makes the rows of its target in order, one at a time, when a step behind it asks. A row
that pools is made in parts, one for each row of the window. The C program does exactly this, so
following it gives the sizes of the rings.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from math import lcm

from ai8xtools.software.graph import (
    Combine,
    Convolution,
    Copy,
    Elements,
    Pool,
    Size,
    Step,
    StepGraph,
    Tensor,
    Windows,
    sources_of,
)
from ai8xtools.software.memory import aligned
from ai8xtools.values import frozen

_NEVER = 1 << 30
"""Lowest row that a step needs when it has made all of its own."""


@frozen
class Part:
    """A part of the work on a row: source rows `first` to before `end` are read."""

    first: int
    end: int


def streams(step: Step, graph: StepGraph, *, recounted: bool = False) -> bool:
    """Whether a step can make its rows one after the other from rows of its sources.

    With `recounted` it may read each row as several, or several as one.
    """
    match step:
        case Elements() if step.broadcasts:
            return False
        case Convolution() | Pool() | Combine() | Elements() | Windows():
            fits = all(_fits(graph.tensors[one], step, recounted) for one in sources_of(step))
            return fits and graph.kept not in sources_of(step)
        case Copy():
            return step.by_rows and graph.kept not in step.sources
        case _:
            return False


def _fits(source: Tensor, step: Step, recounted: bool) -> bool:
    size = read_size(step, source)
    if size == (source.rows, source.columns):
        return True
    few, many = sorted((size[0], source.rows))
    return recounted and few > 1 and many % few == 0


def read_size(step: Step, source: Tensor) -> Size:
    """Return the rows and columns as which a step reads a tensor."""
    match step:
        case Convolution() | Pool() | Windows():
            return step.in_size
        case Combine() | Elements():
            return step.size
        case _:
            return source.rows, source.columns


def source_rows(step: Step, source: Tensor, part: Part) -> Part:
    """Return a part of the rows that a step reads in rows as the tensor is made."""
    read = read_size(step, source)[0]
    return Part(part.first * source.rows // read, -(-part.end * source.rows // read))


def rows_of(step: Step, graph: StepGraph) -> int:
    """Return the rows that a step makes."""
    match step:
        case Convolution():
            return step.pool.out_size[0] if step.pool else step.out_size[0]
        case Pool() | Windows():
            return step.out_size[0]
        case Combine() | Elements():
            return step.size[0]
        case _:
            return graph.tensors[step.target].rows


def parts_of(step: Step, row: int) -> list[Part]:
    """Return the parts in which a step makes a row of its target."""
    match step:
        case Convolution() if step.pool is not None:
            first = row * step.pool.stride[0]
            return [_window(step, y) for y in range(first, first + step.pool.window[0])]
        case Convolution():
            return [_window(step, row)]
        case Pool():
            first = row * step.stride[0]
            return [Part(first, first + (step.window[0] - 1) * step.dilation[0] + 1)]
        case Windows():
            top, rows = row * step.stride[0] - step.pad[0], step.in_size[0]
            end = top + (step.window[0] - 1) * step.dilation[0] + 1
            return [Part(max(top, 0), min(max(end, 0), rows))]
        case _:
            return [Part(row, row + 1)]


def _window(conv: Convolution, y: int) -> Part:
    """Return the input rows under the kernel at a row of the sums; `first` = `end`: none."""
    top = y * conv.stride[0] - conv.pad[0]
    bottom = top + (conv.kernel[0] - 1) * conv.dilation
    first = -(-top // conv.spread[0])
    end = bottom // conv.spread[0] + 1
    rows = conv.in_size[0]
    first, end = min(max(first, 0), rows), min(max(end, 0), rows)
    return Part(first, max(first, end))


class Pull:
    """Follows the demand for rows through some steps and notes what rings must hold."""

    def __init__(self, graph: StepGraph, steps: Sequence[Step], whole: Mapping[int, int]) -> None:
        """`whole` are tensors that exist before: their rows."""
        self.graph = graph
        self.maker = {step.target: step for step in steps}
        self.done: dict[int, int] = dict(whole)
        self.lowest: dict[tuple[int, int], int] = {}
        self.readers: dict[int, list[int]] = {}
        for step in steps:
            for source in sources_of(step):
                self.readers.setdefault(source, []).append(step.target)
        self.rows = {tensor: 1 for tensor in self.readers if tensor not in whole}
        self.steps = tuple(steps)
        self.input = graph.input if graph.input not in whole else None

    def ring(self, tensor: int) -> int:
        """Return the rows of a ring, in which each row that a step reads is in one piece."""
        one, together = self.graph.tensors[tensor], 1
        for step in self.steps:
            if tensor in sources_of(step):
                together = lcm(together, max(one.rows // read_size(step, one)[0], 1))
        return min(aligned(self.rows.get(tensor, 1), together), one.rows)

    def demand(self, tensor: int, count: int) -> None:
        """Make rows of a tensor until there are `count`."""
        while self.done.get(tensor, 0) < count:
            row = self.done.get(tensor, 0)
            if tensor == self.input:
                self._write(tensor, row)
            else:
                self._make(self.maker[tensor], row)
            self.done[tensor] = row + 1

    def _make(self, step: Step, row: int) -> None:
        sources = {source: self.graph.tensors[source] for source in sources_of(step)}
        for part in parts_of(step, row):
            needs = {source: source_rows(step, one, part) for source, one in sources.items()}
            for source, some in needs.items():
                self.lowest[source, step.target] = some.first
            for source, some in needs.items():
                self.demand(source, some.end)
            self._write(step.target, row)
        last = row + 1 == rows_of(step, self.graph)
        for source, one in sources.items():
            self.lowest[source, step.target] = (
                _NEVER if last else source_rows(step, one, parts_of(step, row + 1)[0]).first
            )

    def _write(self, tensor: int, row: int) -> None:
        """Note that a row is written: rows that somebody still needs must stay."""
        if tensor not in self.rows:
            return
        lowest = min(self.lowest.get((tensor, reader), 0) for reader in self.readers[tensor])
        self.rows[tensor] = max(self.rows[tensor], row - min(lowest, row) + 1)

"""Rows on demand: how many rows of each tensor must exist at the same time.

Each step makes the rows of its target in order, one at a time, when a step behind it asks. A row
that pools is made in parts, one for each row of the window. The C program does exactly this, so
following it gives the sizes of the rings.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from software.graph import Combine, Convolution, Copy, Graph, Pool, Size, Step, sources_of
from values import frozen

_NEVER = 1 << 30
"""Lowest row that a step needs when it has made all of its own."""


@frozen
class Part:
    """A part of the work on a row: source rows `first` to before `end` are read."""

    first: int
    end: int


def streams(step: Step, graph: Graph) -> bool:
    """Whether a step can make its rows one after the other from rows of its sources."""
    match step:
        case Convolution() | Pool():
            return _shape(graph, step.source) == step.in_size and graph.kept != step.source
        case Combine():
            same = all(_shape(graph, source) == step.size for source in step.sources)
            return same and graph.kept not in step.sources
        case Copy():
            return step.by_rows and graph.kept not in step.sources
        case _:
            return False


def _shape(graph: Graph, tensor: int) -> Size:
    one = graph.tensors[tensor]
    return one.rows, one.columns


def rows_of(step: Step, graph: Graph) -> int:
    """Return the rows that a step makes."""
    match step:
        case Convolution():
            return step.pool.out_size[0] if step.pool else step.out_size[0]
        case Pool():
            return step.out_size[0]
        case Combine():
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

    def __init__(self, graph: Graph, steps: Sequence[Step], whole: Mapping[int, int]) -> None:
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
        self.input = graph.input if graph.input not in whole else None

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
        sources = dict.fromkeys(sources_of(step))
        for part in parts_of(step, row):
            for source in sources:
                self.lowest[source, step.target] = part.first
            for source in sources:
                self.demand(source, part.end)
            self._write(step.target, row)
        if row + 1 < rows_of(step, self.graph):
            following = parts_of(step, row + 1)[0].first
        else:
            following = _NEVER
        for source in sources:
            self.lowest[source, step.target] = following

    def _write(self, tensor: int, row: int) -> None:
        """Note that a row is written: rows that somebody still needs must stay."""
        if tensor not in self.rows:
            return
        lowest = min(self.lowest.get((tensor, reader), 0) for reader in self.readers[tensor])
        self.rows[tensor] = max(self.rows[tensor], row - min(lowest, row) + 1)

"""Layers that hand each other rows, executed as software/runtime/levels_chain.c does it."""

from __future__ import annotations

from ai8xtools.software.plan.schemes import Rows
from ai8xtools.software.plan.task import Spot, Task
from tests.software.oracle.order import INPUT, OUTPUT, runs
from tests.software.oracle.run_rows import RowsRun
from tests.software.oracle.state import State, moved


class ChainRun:
    """Rows that are made when the next layer asks for them; the last layer makes all of its own."""

    def __init__(self, run: State, task: Task) -> None:
        self.state, self.machine, self.task = run, run.machine, task
        self.links = []
        for link in task.links:
            assert isinstance(link.cut, Rows)
            self.links.append(RowsRun(run, link, link.cut))
        self.pieces = [link.whole() for link in self.links]
        self.done = self.machine.at(run.buffer(task, "done"), 2 * len(self.links)).view("<u2")
        self.fetched = self.waiting = 0

    def run(self) -> None:
        """Compute the task."""
        for link in self.links:
            link.feed.start()
        for link, piece in zip(self.links, self.pieces, strict=True):
            link.checked(link.feed.wait(), 0, piece.filters)
        self.done[:] = 0
        last = self.links[-1]
        rows = last.layer.out_size[0]
        copies = last.copies(self.pieces[-1], OUTPUT)
        for y in range(rows):
            for _ in range(copies if y >= 2 else 0):
                self.machine.wait(OUTPUT)
            self._demand(y)
            last.leave(self.pieces[-1], y, y % 2)
        for _ in range(copies * min(2, rows)):
            self.machine.wait(OUTPUT)

    def _demand(self, y: int) -> None:
        """Make a row of the last layer, and all rows that are asked for before."""
        number = len(self.links) - 1
        while self.done[-1] <= y:
            link, row = self.links[number], int(self.done[number])
            if number and self.done[number - 1] < link.layer.needed(row)[1]:
                number -= 1
                continue
            if not number:
                self._fetch(row)
            link.make_row(self.pieces[number], row, self._place(number, row))
            self.done[number] += 1
            number = min(number + 1, len(self.links) - 1)

    def _fetch(self, row: int) -> None:
        """See that the input rows are there that a row of the first layer needs."""
        first = self.links[0]
        self._start(first.layer.needed(row)[1])
        for _ in range(self.waiting):
            self.machine.wait(INPUT)
        self.waiting = 0
        if first.task.ahead and row + 1 < first.task.rows:
            self._start(first.layer.needed(row + 1)[1])

    def _start(self, end: int) -> None:
        first, piece = self.links[0], self.pieces[0]
        for run in runs(self.fetched, end, first.task.slots):
            first.fetch(piece, *run)
            self.waiting += first.copies(piece, INPUT)
        self.fetched = max(self.fetched, end)

    def _place(self, number: int, row: int) -> Spot:
        """Return where a row of a link goes: to the next ring, a buffer, or its tensor."""
        link = self.links[number]
        if number + 1 < len(self.links):
            following = self.links[number + 1].task
            ring = self.state.buffer(following, "input 0")
            return moved(ring, row % following.slots * following.pitch)
        size = link.layer.out_size[1] * link.layer.filters * link.layer.out_bytes
        if link.task.writes:
            return moved(link.target, row * size)
        return self.state.buffer(link.task, f"output {row % 2}")

"""Rows on demand: rings hold exactly the rows that are still read when another one is written."""

from __future__ import annotations

import functools
import random
from collections.abc import Iterator, Sequence
from dataclasses import replace

import numpy as np

from ai8xtools.software.fuse import fuse
from ai8xtools.software.graph import (
    Combine,
    Convolution,
    Copy,
    Pool,
    Step,
    StepGraph,
    Tensor,
    sources_of,
)
from ai8xtools.software.lower import lower
from ai8xtools.software.plan.streaming import (
    Pull,
    parts_of,
    read_size,
    rows_of,
    source_rows,
    streams,
)
from ai8xtools.synthesis.network import Combination
from tests.software.networks import random_network
from tests.software.test_recounted import _network as recounting
from tests.software.test_recounted import rows_plan

_NOBODY = 1 << 20


def graphs() -> Iterator[StepGraph]:
    for seed in range(60):
        yield fuse(lower(random_network(seed)))
    sound, image = [(6, (24, 1), 3), (4, (24, 1), 1)], [(5, (6, 4), 3), (3, (12, 2), 3)]
    for shapes in ([*sound, *image], [*image, (2, (24, 1), 5)]):
        yield fuse(lower(recounting(4, shapes)))


@functools.cache
def plain_convolution() -> Convolution:
    some = (step for graph in graphs() for step in graph.steps if isinstance(step, Convolution))
    return next(step for step in some if not step.pool and step.spread == step.stride == (1, 1))


def branching(seed: int) -> StepGraph:
    """Return a graph of sums and of convolutions of all reaches, in which tensors have readers that
    are ahead of others."""
    choice, rows = random.Random(seed), 14
    steps: list[Step] = []
    for target in range(1, 9):
        source = choice.randrange(max(target - 3, 0), target)
        other = choice.randrange(target)
        if choice.random() < 0.4 and source != other:
            step: Step = Combine(
                sources=(source, other), target=target, layer=0, name="", channels=1,
                size=(rows, 1), join=Combination.ADD,
            )  # fmt: skip
        else:
            reach = choice.choice((1, 3, 5, 9))
            step = replace(
                plain_convolution(), source=source, target=target, dilation=1,
                weights=np.zeros((1, 1, reach, 1), np.int8),
                pad=(choice.choice((0, reach // 2, reach - 1)), 0), in_size=(rows, 1),
                out_size=(rows, 1),
            )  # fmt: skip
        steps.append(step)
    tensors = tuple(
        Tensor(index=number, name="", rows=rows, columns=1, channels=1) for number in range(9)
    )
    read = {source for step in steps for source in sources_of(step)}
    ends = tuple(step.target for step in steps if step.target not in read)
    return StepGraph(name="", tensors=tensors, steps=tuple(steps), input=0, outputs=ends)


class Traced(Pull):
    """Notes rows that are written, and the first row of each reading, in order."""

    def __init__(self, graph: StepGraph, steps: Sequence[Step], whole: dict[int, int]) -> None:
        super().__init__(graph, steps, whole)
        self.read: list[dict[int, int]] = []
        self.written: list[tuple[int, int]] = []
        self._parts: dict[tuple[int, int], int] = {}

    def _write(self, tensor: int, row: int) -> None:
        self.read.append({})
        self.written.append((tensor, row))
        if tensor in self.maker:
            step = self.maker[tensor]
            number = self._parts[tensor, row] = self._parts.get((tensor, row), -1) + 1
            part = parts_of(step, row)[number]
            for source in sources_of(step):
                some = source_rows(step, self.graph.tensors[source], part)
                self.read[-1][source] = some.first
                assert self.done.get(source, 0) >= some.end
        super()._write(tensor, row)

    def needed(self) -> dict[int, int]:
        """Return the rows between one that is written and the first that is read afterwards."""
        found, later = dict.fromkeys(self.rows, 1), dict.fromkeys(self.rows, _NOBODY)
        for (tensor, row), read in zip(self.written[::-1], self.read[::-1], strict=True):
            if tensor in found:
                found[tensor] = max(found[tensor], row - later[tensor] + 1)
            for source, first in read.items():
                if source in later:
                    later[source] = min(later[source], first)
        return found


def test_a_ring_has_the_rows_that_are_read_later() -> None:
    rings = recounted = 0
    for graph in (*graphs(), *map(branching, range(60))):
        ways = (rows_plan(graph), rows_plan(graph, recounted=False))
        tasks = {(task.steps, task.roots) for way in ways for task in way.tasks}
        for numbers, roots in tasks:
            steps = [graph.steps[index] for index in numbers]
            if not streams(steps[0], graph, recounted=True):
                continue
            made = {step.target for step in steps}
            before = {t for step in steps for t in sources_of(step)} - made - {graph.input}
            pull = Traced(graph, steps, {t: graph.tensors[t].rows for t in before})
            for step in steps:
                if step.target in roots:
                    pull.demand(step.target, rows_of(step, graph))
            assert pull.rows == pull.needed()
            for tensor, rows in pull.rows.items():
                stored = graph.tensors[tensor]
                of_one = [stored.rows // read_size(step, stored)[0] for step in steps
                          if tensor in sources_of(step)]  # fmt: skip
                together = [count for count in of_one if count > 1]
                assert pull.ring(tensor) == next(
                    count for count in range(rows, stored.rows + 1)
                    if count == stored.rows or not any(count % some for some in together)
                )  # fmt: skip
                recounted += bool(together)
            rings += sum(rows > 1 for rows in pull.rows.values())
    assert rings > 50 and recounted


def test_a_buffer_that_is_kept_between_runs_is_not_read_by_rows() -> None:
    kinds = set()
    for graph in graphs():
        for step in graph.steps:
            for source in sources_of(step):
                assert not streams(step, replace(graph, kept=source), recounted=True)
            kinds |= {type(step)} if streams(step, graph) else set()
    assert kinds == {Convolution, Pool, Combine, Copy}

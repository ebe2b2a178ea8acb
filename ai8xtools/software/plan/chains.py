"""Layers that hand each other rows through rings in L1, so that what is between them has no place.

Source: docs/memory-levels.md, "Chains".
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import replace

from ai8xtools.software.graph import Convolution, Pool, Step, StepGraph, sources_of
from ai8xtools.software.kernels import Kernel
from ai8xtools.software.memory import aligned
from ai8xtools.software.plan.buffers import DONE_BYTES, SCRATCH, buffers_of
from ai8xtools.software.plan.cost import compute_cycles, copy_cycles, cycles_of, traffic_of
from ai8xtools.software.plan.layers import geometry_of
from ai8xtools.software.plan.schemes import Rows, Scheme, Weights
from ai8xtools.software.plan.streaming import streams
from ai8xtools.software.plan.task import Task, Traffic
from ai8xtools.software.profile import Profile
from ai8xtools.values import frozen

_LONGEST = 12
"""Steps of a chain at most."""
_ASKING = 60
"""Cycles until a row is made that another layer asks for."""


def longest(graph: StepGraph, first: int, fits: Callable[[Step, StepGraph], bool]) -> int:
    """Return how many steps from `first` on fit, each with a result for the next one alone."""
    steps, number = graph.steps, 0
    for step in steps[first:]:
        if not fits(step, graph) or (number and not passes(graph, steps[first + number - 1], step)):
            break
        number += 1
    return number


def _by_rows(step: Step, graph: StepGraph) -> bool:
    """Whether a step takes rows and gives rows."""
    return isinstance(step, Convolution | Pool) and streams(step, graph)


def passes(graph: StepGraph, producer: Step, following: Step) -> bool:
    """Whether the result of a step is for the following one alone."""
    readers = [step for step in graph.steps if producer.target in sources_of(step)]
    outside = {*graph.outputs, graph.kept}
    wide = graph.tensors[producer.target].bytes_per_value > 1
    return readers == [following] and producer.target not in outside and not wide


@frozen(slots=False)
class _Link:
    """A layer of a chain: its bytes of L1 without scratch memory, and what it takes."""

    task: Task
    memory: int
    scratch: int
    compute: float
    traffic: Traffic


class Chains:
    """Makes chains of steps of a graph; weights are read in place or stay in L1."""

    def __init__(
        self, graph: StepGraph, profile: Profile, kernels: Mapping[int, Kernel], *, in_place: bool
    ) -> None:
        self.graph, self.profile, self.kernels = graph, profile, kernels
        self.in_place, self.dma = in_place, profile.ahead
        self.links: dict[tuple[int, bool, bool, bool, int], _Link] = {}
        numbers = range(len(graph.steps))
        self.most = [min(longest(graph, n, _by_rows), _LONGEST) for n in numbers]

    def of(
        self, first: int, count: int, l1: int, *, reads: bool, writes: bool, far: bool
    ) -> Task | None:
        """Return the task of `count` steps from `first` on; None if they do not fit `l1` bytes.

        With `reads` the input is in L1, with `writes` the output; `far`: one of them is in L3.
        """
        links: list[_Link] = []
        demand = (
            0  # rows of the output, 0 for all; then those that each link needs of the one before
        )
        for n in reversed(range(count)):
            link = self._link(first + n, reads and not n, writes or n + 1 < count, n > 0, demand)
            links.insert(0, link)
            assert link.task.layer is not None
            demand = link.task.layer.needed(link.task.rows - 1)[1]
            if not demand:
                return None
        memory = sum(link.memory for link in links) + max(link.scratch for link in links)
        if memory + aligned(DONE_BYTES * count) > l1:
            return None
        tasks = tuple(link.task for link in links)
        task = Task(
            index=first, step=tasks[-1].step, count=count, scheme=Scheme.ROW_CHAIN, links=tasks
        )
        traffic = sum((link.traffic for link in links), Traffic())
        rows = [link.task.rows for link in links]
        compute = sum(link.compute for link in links) + _ASKING * sum(rows)
        copies = copy_cycles(tasks[-1], traffic, self.profile, far=far)
        return replace(task, cycles=cycles_of(compute, copies, rows[-1], dma=self.dma))

    def _link(self, index: int, reads: bool, writes: bool, chained: bool, demand: int) -> _Link:
        key = (index, reads, writes, chained, demand)
        if key not in self.links:
            self.links[key] = self._new_link(*key)
        return self.links[key]

    def _new_link(self, index: int, reads: bool, writes: bool, chained: bool, demand: int) -> _Link:
        """Return a layer row by row, all columns and filters."""
        step = self.graph.steps[index]
        layer = geometry_of(step, self.graph, self.kernels)
        assert layer is not None
        in_place = self.in_place or not isinstance(step, Convolution)
        cut = Rows(weights=Weights.IN_PLACE if in_place else Weights.RESIDENT, band=1,
                   filters=layer.filters, columns=layer.out_size[1], tiles=1, memory=0)  # fmt: skip
        task = Task(
            index=index, step=step, layer=layer, scheme=Scheme.ROW_CHAIN, cut=cut, reads=reads,
            writes=writes, ahead=self.dma and not chained, in_place=in_place, pixels=layer.pixels,
            input_bytes=layer.input_bytes, chained=chained, demand=demand,
        )  # fmt: skip
        sizes = {name: size for _, name, size, _ in buffers_of(task, self.kernels)}
        scratch = sizes.pop(SCRATCH, 0)
        traffic = traffic_of(task, self.kernels)
        compute = compute_cycles(task, self.profile.core, self.kernels)
        task = replace(task, cycles=compute)
        return _Link(task, sum(sizes.values()), scratch, compute, traffic)

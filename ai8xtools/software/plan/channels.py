"""Stacks of layers that do not mix channels, computed a channel at a time in one piece of memory.

A result is written when no result behind it needs what stands in its place. Source:
docs/memory-levels.md, "Chains".
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace

from ai8xtools.software.graph import Convolution, Pool, Step, StepGraph
from ai8xtools.software.kernels import Kernel
from ai8xtools.software.plan.buffers import bytes_in
from ai8xtools.software.plan.chains import longest
from ai8xtools.software.plan.cost import compute_cycles, copy_cycles, cycles_of, traffic_of
from ai8xtools.software.plan.geometry import Geometry
from ai8xtools.software.plan.layers import geometry_of
from ai8xtools.software.plan.schemes import Channels, Scheme
from ai8xtools.software.plan.streaming import streams
from ai8xtools.software.plan.task import Level, Task, Traffic
from ai8xtools.software.profile import Profile


def apart(step: Step, graph: StepGraph) -> bool:
    """Whether a step computes each channel of its result from that channel of its input alone."""
    match step:
        case Convolution():
            alone = step.depthwise and not step.transposed and not step.wide
            return alone and streams(step, graph)
        case Pool():
            return streams(step, graph)
        case _:
            return False


def distance(layer: Geometry) -> int:
    """Return by how many bytes a channel's result has to begin below that which it is made from."""
    (height, width), columns = layer.out_size, layer.in_size[1]
    most = 0
    for y in range(height):
        top = layer.needed(y)[0] * columns
        below = layer.needed(y + 1)[0] * columns if y + 1 < height else None
        for x in range(width):
            needed = [] if below is None else [below]
            if x + 1 < width:
                needed.append(top + layer.needed_columns(x + 1, 1)[0])
            if needed:
                most = max(most, y * width + x + 1 - min(needed))
    return most


class Stacks:
    """Makes stacks of steps of a graph; weights are read in place or stay in L1."""

    def __init__(
        self, graph: StepGraph, profile: Profile, kernels: Mapping[int, Kernel], *, in_place: bool
    ) -> None:
        self.graph, self.profile, self.kernels, self.in_place = graph, profile, kernels, in_place
        self.most = [longest(graph, n, apart) for n in range(len(graph.steps))]
        self.tasks: dict[tuple[int, int], Task] = {}

    def of(self, first: int, count: int, l1: int, *, far: bool) -> Task | None:
        """Return the task of `count` steps from `first` on; None if they do not fit `l1` bytes.

        `far`: what it reads or makes is in L3.
        """
        if self.memory(first, count) > l1:
            return None
        task = self._task(first, count)
        traffic = sum((traffic_of(link, self.kernels) for link in task.links), Traffic())
        compute = sum(link.cycles for link in task.links)
        copies = copy_cycles(task, traffic, self.profile, far=far)
        copies += 3 * (traffic.inputs + traffic.outputs)  # values come one by one
        assert task.layer is not None
        cycles = cycles_of(compute, copies, task.layer.channels, dma=task.ahead)
        return replace(task, cycles=cycles)

    def memory(self, first: int, count: int) -> int:
        """Return the bytes of L1 that `count` steps from `first` on need."""
        return bytes_in(Level.L1, self._task(first, count), self.kernels)

    def _task(self, first: int, count: int) -> Task:
        if (first, count) not in self.tasks:
            self.tasks[first, count] = self._new_task(first, count)
        return self.tasks[first, count]

    def _new_task(self, first: int, count: int) -> Task:
        steps = self.graph.steps[first : first + count]
        layers = [geometry_of(step, self.graph, self.kernels) for step in steps]
        geometries = [layer for layer in layers if layer is not None]
        apart_by = [distance(layer) for layer in geometries]
        places = [sum(apart_by[number:]) for number in range(count + 1)]
        sizes = [geometries[0].in_size, *(layer.out_size for layer in geometries)]
        size = max(
            place + rows * columns for place, (rows, columns) in zip(places, sizes, strict=True)
        )
        links = []
        for number, (step, layer) in enumerate(zip(steps, geometries, strict=True)):
            cut = Channels(place=places[number], result=places[number + 1], memory=size)
            task = Task(
                index=first + number, step=step, layer=layer, scheme=Scheme.CHAIN, cut=cut,
                writes=number + 1 < count, chained=number > 0, pixels=layer.pixels,
                input_bytes=layer.input_bytes, ahead=self.profile.ahead,
                in_place=self.in_place or not isinstance(step, Convolution),
            )  # fmt: skip
            compute = compute_cycles(task, self.profile.core, {})
            links.append(replace(task, cycles=compute))
        return Task(
            index=first, step=steps[-1], count=count, layer=geometries[0], scheme=Scheme.CHAIN,
            cut=links[0].cut, links=tuple(links), ahead=self.profile.ahead,
        )  # fmt: skip

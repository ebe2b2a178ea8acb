"""What the runs of tasks share: memories, places, copies, weights."""

from __future__ import annotations

import numpy as np

from ai8xtools.software.graph import Convolution
from ai8xtools.software.plan.layers import packed_groups, packed_planes
from ai8xtools.software.plan.plan import Plan
from ai8xtools.software.plan.schemes import Channels, Planes
from ai8xtools.software.plan.task import Spot, Task
from tests.software.oracle.machine import CALLER, Bytes, Machine
from tests.software.oracle.machine import Copy as Transfer
from tests.software.oracle.order import WEIGHTS


def moved(spot: Spot, offset: int) -> Spot:
    """Return a place `offset` bytes further."""
    return Spot(spot.level, spot.offset + offset)


class State:
    """A plan with its memories; outputs of the caller stand behind `out_start` bytes of input."""

    def __init__(self, plan: Plan, *, delayed: bool) -> None:
        self.plan, self.graph, self._passing = plan, plan.graph, plan.passing
        tensors = self.graph.tensors
        self.out_start = tensors[self.graph.input].size_bytes
        size = self.out_start + sum(tensors[o.tensor].size_bytes for o in plan.outputs)
        self.machine = Machine({**plan.used, CALLER: size}, delayed=delayed)

    def place(self, tensor: int) -> Spot:
        """Return where a tensor is."""
        plan = self.plan
        if tensor in plan.places:
            return plan.places[tensor]
        if tensor == plan.graph.input:
            return Spot(CALLER, 0)
        output = next(o for o in plan.outputs if o.tensor == tensor and not o.copied)
        return Spot(CALLER, self.out_start + output.offset)

    def passes(self, tensor: int) -> bool:
        """Whether a tensor only passes through a chain, row by row."""
        return tensor in self._passing

    def buffer(self, task: Task, name: str) -> Spot:
        """Return where a buffer of a task is."""
        return self.plan.buffers[task.index, name]

    def transfer(self, channel: int, to: Spot, source: Spot, size: int) -> None:
        """Start to copy some bytes."""
        self.machine.start(channel, Transfer(to, size, source, size, size, 1))


def weight_data(task: Task, plan: Plan) -> list[Bytes]:
    """Return the weights of a task in the order in which they are copied, group by group."""
    step = task.step
    assert isinstance(step, Convolution) and task.cut is not None
    if isinstance(task.cut, Planes):
        return [*packed_planes(step, task.cut.filters)]
    if isinstance(task.cut, Channels):
        return [step.weights.reshape(-1)]
    groups = packed_groups(step, plan.kernels[step.target], task.cut.filters)
    return [one.values.view(np.int8).reshape(-1) for one in groups]


class Feed:
    """Weights of groups that are copied one ahead, as often as they are needed."""

    def __init__(self, state: State, task: Task, times: int) -> None:
        self.state, self.task = state, task
        self.sizes = [] if task.in_place else [d.size for d in weight_data(task, state.plan)]
        self.offsets = np.concatenate([[0], np.cumsum(self.sizes, dtype=int)])
        self.left = times * len(self.sizes)
        self.next = 0

    def start(self) -> None:
        """Start to copy the next weights, if any are needed."""
        if self.next < self.left:
            group = self.next % len(self.sizes)
            there = self.state.buffer(self.task, f"weights {self.next % 2}")
            source = moved(self.state.plan.stored[self.task.index], int(self.offsets[group]))
            self.state.transfer(WEIGHTS, there, source, self.sizes[group])
        self.next += 1

    def wait(self) -> Bytes | None:
        """Wait for the weights that were started last and return them; None if read in place."""
        if not self.sizes:
            return None
        number = self.next - 1
        self.state.machine.wait(WEIGHTS)
        there = self.state.buffer(self.task, f"weights {number % 2}")
        return self.state.machine.at(there, self.sizes[number % len(self.sizes)])

    def take(self) -> Bytes | None:
        """Wait for weights, and start those behind them."""
        found = self.wait()
        self.start()
        return found

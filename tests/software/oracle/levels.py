"""Execution of a level plan in byte arrays, as the C program does it, to prove the plan.

Copies are made by a `Machine`; a plan that overwrites what is still needed, or reads what has not
arrived, gives other results than the simulation.
"""

from __future__ import annotations

import numpy as np

from ai8xtools.software.graph import Convolution, Copy, Insert, Int64, Roll
from ai8xtools.software.plan.plan import Plan
from ai8xtools.software.plan.schemes import Channels, Planes, Rows
from ai8xtools.software.plan.task import Spot, Task
from tests.software.oracle.machine import CALLER, Bytes
from tests.software.oracle.machine import Copy as Transfer
from tests.software.oracle.order import INPUT, OUTPUT
from tests.software.oracle.run_chain import ChainRun
from tests.software.oracle.run_channels import ChannelsRun
from tests.software.oracle.run_planes import PlanesRun
from tests.software.oracle.run_rows import RowsRun
from tests.software.oracle.state import State, moved, weight_data


class LevelExecutor(State):
    """Memory of a program; `run` is one inference. `machine` counts what is copied."""

    def __init__(self, plan: Plan, *, delayed: bool = False) -> None:
        super().__init__(plan, delayed=delayed)
        if self.graph.kept is not None:
            self._whole(self.graph.kept)[:] = 0
        for task in plan.layers:
            self._load(task)
        self.machine.used = dict.fromkeys(self.machine.used, 0)

    def _load(self, task: Task) -> None:
        """Put the weights of a task where they are."""
        if task.in_place or not isinstance(task.step, Convolution):
            return
        at = self.plan.stored[task.index]
        for data in weight_data(task, self.plan):
            self.machine.at(at, data.size)[:] = data
            at = moved(at, data.size)

    def run(self, sample: Int64) -> tuple[Int64, ...]:
        """Return the outputs [channel, row, column] of an input [channel, row, column]."""
        data = sample.transpose(1, 2, 0).astype(np.int8).reshape(-1)
        self._whole(self.graph.input)[:] = data
        for task in self.plan.tasks:
            self._task(task)
            assert self.machine.idle()
        for output in self.plan.outputs:
            if output.copied:
                size = self.graph.tensors[output.tensor].size_bytes
                there = Spot(CALLER, self.out_start + output.offset)
                self.transfer(OUTPUT, there, self.place(output.tensor), size)
                self.machine.wait(OUTPUT)
        return tuple(self._delivered(o.tensor, o.offset) for o in self.plan.outputs)

    def _delivered(self, tensor: int, offset: int) -> Int64:
        one = self.graph.tensors[tensor]
        data = self.machine.at(Spot(CALLER, self.out_start + offset), one.size_bytes)
        values = data.copy().view(np.int32) if one.bytes_per_value == 4 else data
        return values.astype(np.int64).reshape(one.rows, one.columns, -1).transpose(2, 0, 1)

    def _whole(self, tensor: int) -> Bytes:
        return self.machine.at(self.place(tensor), self.graph.tensors[tensor].size_bytes)

    def _task(self, task: Task) -> None:
        if isinstance(task.cut, Channels):
            ChannelsRun(self, task).run()
            return
        if task.links:
            ChainRun(self, task).run()
            return
        match task.cut:
            case Rows():
                RowsRun(self, task, task.cut).run()
            case Planes():
                PlanesRun(self, task, task.cut).run()
            case _:
                self._copies(task)

    def _copies(self, task: Task) -> None:
        step = task.step
        match step:
            case Copy():
                for piece in step.pieces:
                    self.machine.start(INPUT, Transfer(
                        moved(self.place(step.target), piece.to_start), piece.to_step,
                        moved(self.place(piece.source), piece.from_start), piece.from_step,
                        piece.length, piece.count,
                    ))  # fmt: skip
                    self.machine.wait(INPUT)
            case Insert():
                size = self.graph.tensors[step.source].size_bytes
                end = self.graph.tensors[step.target].size_bytes - size
                there = moved(self.place(step.target), end)
                self.transfer(INPUT, there, self.place(step.source), size)
                self.machine.wait(INPUT)
            case Roll():
                out = self._whole(step.target)
                out[: out.size - step.dropped] = out[step.dropped :].copy()
                out[out.size - step.dropped :] = 0
            case _:
                raise AssertionError(f"{task.name} has no cut")

"""The value that the planner gives: what runs in which order, and where everything stands."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import field
from fractions import Fraction

from ai8xtools.diagnostics import DiagnosticError
from ai8xtools.diagnostics.errors import ToolError
from ai8xtools.software.graph import Convolution, Step, StepGraph
from ai8xtools.software.kernels import Core, Kernel
from ai8xtools.software.kernels.call import KernelCall
from ai8xtools.software.memory import Block, Overlap
from ai8xtools.software.plan.arena import conflict, lower_bound
from ai8xtools.software.plan.schemes import Scheme
from ai8xtools.software.plan.task import Level, Spot, Task, Traffic
from ai8xtools.values import frozen

DELIVERED = -1
"""The number that stands for all outputs among tensors, where they stand in the arena."""


@frozen
class Output:
    """A tensor that is delivered `offset` bytes from the start of the output.

    `copied`: it stands elsewhere and is copied at the end.
    """

    tensor: int
    offset: int
    copied: bool


@frozen(kw_only=True)
class Slide:
    """The rows of a tensor whose window slides; those from `first` to before `end` move with it.

    A beat makes `new` rows; `ring` rows have room at the same time, all of a window, in order, if
    it is needed `whole`. The first rows of a window are made `ahead` beats before it begins, so
    that those of some `windows` exist at the same time.
    """

    tensor: int
    first: int
    end: int
    new: int
    ring: int
    whole: bool
    ahead: int
    windows: int

    def first_stays(self, beats: int) -> bool:
        """Whether the first rows are made where the whole window is, in a hop of some `beats`."""
        return self.whole and self.ahead < beats


@frozen
class Sliding:
    """A window that slides by `hop` rows of the input, in some `beats`.

    `order` is what a beat makes: for a row of a tensor its number in `slides`, for its first rows
    that plus the number of slides.
    """

    hop: int
    beats: int
    slides: tuple[Slide, ...]
    order: tuple[int, ...]

    def rows_of_hop(self, tensor: int, rows: int) -> int:
        """Return how many of the rows of a tensor a hop makes."""
        for slide in self.slides:
            if slide.tensor == tensor:
                return slide.first + self.beats * slide.new + rows - slide.end
        return rows


class NoRoomError(DiagnosticError):
    """A network does not fit the memory of a microcontroller."""


class PlanError(ToolError):
    """A plan contradicts itself: a defect of the planner."""


@frozen(slots=False, kw_only=True)
class Plan:
    """The order of steps when a graph is computed, and the places of all data.

    `tasks` run one after the other: in a single memory by one `scheme`; for levels of memory,
    without it, each is cut into units that are copied. `rings` are the rows of each tensor that
    have room, all of them for one that is whole; those that are `planar` stand channel by channel.
    `stored` are the places of weights that are not read where they are.

    `places` are those of tensors; the input and outputs that have none stand in memory of the
    caller. `buffers` are those of steps by index and name. `used` are the bytes of each memory,
    `blocks` all of L1 with their offsets. `kernels` are by target of the convolution, `calls` by
    target of the step that a library computes, `reasons` why it does not compute others. With
    `sliding` the first task has the steps whose rows slide, if any do; `buffers` of rows at the
    edges are by tensor and name.
    """

    graph: StepGraph
    core: Core
    kernels: Mapping[int, Kernel]
    outputs: tuple[Output, ...]
    places: Mapping[int, Spot]
    blocks: tuple[Block, ...]
    used: Mapping[Level, int]
    scheme: Scheme | None = None
    tasks: tuple[Task, ...] = ()
    rings: Mapping[int, int] = field(default_factory=dict)
    overlaps: tuple[Overlap, ...] = ()
    calls: Mapping[int, KernelCall] = field(default_factory=dict)
    reasons: Mapping[int, str] = field(default_factory=dict)
    planar: frozenset[int] = frozenset()
    buffers: Mapping[tuple[int, str], Spot] = field(default_factory=dict)
    stored: Mapping[int, Spot] = field(default_factory=dict)
    traffic: Traffic = Traffic()
    sliding: Sliding | None = None

    @property
    def name(self) -> str:
        """The name of the plan."""
        if self.sliding is not None:
            return "stream"
        return "levels" if self.scheme is None else self.scheme

    @property
    def arena_bytes(self) -> int:
        """Bytes of L1, or of the only memory."""
        return self.used[Level.L1]

    @property
    def lower_bound(self) -> int:
        """Bytes that no arrangement of the blocks goes below."""
        return lower_bound(self.blocks, {(o.data, o.result): o.distance for o in self.overlaps})

    @property
    def layers(self) -> tuple[Task, ...]:
        """Tasks, with the links of chains in their place."""
        return tuple(one for task in self.tasks for one in task.layers)

    @property
    def passing(self) -> frozenset[int]:
        """Tensors that have no place: their rows go from link to link of a chain."""
        return frozenset(one.step.target for task in self.tasks for one in task.links[:-1])

    @property
    def cycles(self) -> float:
        """Estimated cycles of the tasks."""
        return sum(task.cycles for task in self.tasks)

    def block_of(self, tensor: int) -> Block | None:
        """Return the block of a tensor; None if it does not stand in L1."""
        return next((block for block in self.blocks if block.tensor == tensor), None)

    @property
    def takes_rows(self) -> bool:
        """Whether the input can come row by row."""
        return self.graph.input in self.rings

    @property
    def data_bytes(self) -> int:
        """Bytes of rings, maps and sums, without scratch and alignment."""
        return sum(block.size for block in self.blocks if block.name != "scratch")

    def function_of(self, step: Step) -> str | None:
        """Return the function that computes a step, if the plan chose one."""
        call, kernel = self.calls.get(step.target), self.kernels.get(step.target)
        if call is not None:
            return call.function
        return None if kernel is None else kernel.function

    def share_of(self, step: Step) -> Fraction:
        """Return the share of a step that an inference computes: less than 1 in a hop."""
        if self.sliding is None:
            return Fraction(1)
        rows = self.graph.tensors[step.target].rows
        return Fraction(self.sliding.rows_of_hop(step.target, rows), rows)

    @property
    def macs(self) -> int:
        """Products of weights and data of an inference, or of a hop."""
        steps = (step for step in self.graph.steps if isinstance(step, Convolution))
        return int(sum(step.macs * self.share_of(step) for step in steps))

    def steps_of(self, task: Task) -> tuple[Step, ...]:
        """Return the steps of a task."""
        return self.graph.steps[task.index : task.last + 1]

    def validate(self) -> None:
        """Raise PlanError if blocks that live together share bytes, or a tensor has no place."""
        allowed = {(one.data, one.result): one.distance for one in self.overlaps}
        for number, one in enumerate(self.blocks):
            if one.offset < 0 or one.end > self.arena_bytes:
                raise PlanError("E909", f"{one.name} leaves the arena", None, "Report this.")
            for other in self.blocks[number + 1 :]:
                if conflict(one, other, allowed):
                    raise PlanError(
                        "E909", f"{one.name} and {other.name} overlap", None, "Report this."
                    )
        outside = {one.tensor for one in self.outputs if not one.copied} | self.passing
        for step in self.graph.steps:
            if step.target not in self.places and step.target not in outside:
                raise PlanError("E909", f"{step.name} has no place", None, "Report this.")
            if isinstance(step, Convolution) and self.function_of(step) is None:
                raise PlanError("E909", f"{step.name} has no kernel", None, "Report this.")

"""The value that a planner gives: what runs in which order, and where everything stands."""

from __future__ import annotations

import enum
from collections.abc import Mapping
from dataclasses import field

from diagnostics.errors import ToolError
from software.graph import Convolution, Graph, Step
from software.kernels import Core, Kernel
from software.kernels.call import Call
from software.memory import Block, Overlap
from software.plan.arena import conflict
from values import frozen

DELIVERED = -1
"""The number that stands for all outputs among tensors, where they stand in the arena."""


class Scheme(enum.StrEnum):
    """How memory is used.

    RESIDENT: a step after the other, tensors as a whole. ROWS: rows on demand through chains of
    steps, rings of rows in between.
    """

    RESIDENT = "resident"
    ROWS = "rows"


@frozen
class Segment:
    """Steps that run interleaved, by their index; all rows of `roots` are asked for in order."""

    steps: tuple[int, ...]
    roots: tuple[int, ...]


@frozen
class Output:
    """A tensor that is delivered `offset` bytes from the start of the output.

    `copied`: it stands elsewhere and is copied at the end.
    """

    tensor: int
    offset: int
    copied: bool


class PlanError(ToolError):
    """A plan contradicts itself: a defect of the planner."""


@frozen(slots=False, kw_only=True)
class Plan:
    """Where everything stands while a graph runs.

    `rings` are the rows of each tensor in the arena that have room, all of them for a tensor that
    is whole; the input and outputs that are neither stand in memory of the caller. `kernels` are by
    target of the convolution, `blocks` have their offsets. `calls` are by target of the step that a
    library computes, `reasons` why it does not compute others.
    """

    graph: Graph
    scheme: Scheme
    core: Core
    segments: tuple[Segment, ...]
    rings: Mapping[int, int]
    kernels: Mapping[int, Kernel]
    outputs: tuple[Output, ...]
    blocks: tuple[Block, ...]
    overlaps: tuple[Overlap, ...]
    arena_bytes: int
    lower_bound: int
    calls: Mapping[int, Call] = field(default_factory=dict)
    reasons: Mapping[int, str] = field(default_factory=dict)

    def block_of(self, tensor: int) -> Block | None:
        """Return the block of a tensor; None if it stands in memory of the caller."""
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

    def steps_of(self, segment: Segment) -> tuple[Step, ...]:
        """Return the steps of a segment."""
        return tuple(self.graph.steps[index] for index in segment.steps)

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
        outside = {self.graph.input, *(one.tensor for one in self.outputs if not one.copied)}
        for step in self.graph.steps:
            if step.target not in self.rings and step.target not in outside:
                raise PlanError("E909", f"{step.name} has no place", None, "Report this.")
            if isinstance(step, Convolution) and self.function_of(step) is None:
                raise PlanError("E909", f"{step.name} has no kernel", None, "Report this.")

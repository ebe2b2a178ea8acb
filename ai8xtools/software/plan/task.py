"""Levels of memory, places in them, and steps that are cut for them."""

from __future__ import annotations

import enum

from ai8xtools.software.graph import Step, sources_of
from ai8xtools.software.memory import aligned
from ai8xtools.software.plan.geometry import Geometry
from ai8xtools.software.plan.schemes import Cut, Planes, Rows, Scheme
from ai8xtools.values import frozen


class Level(enum.StrEnum):
    """Memories in which data are placed; the input and the outputs have those of the caller."""

    L1 = "L1"
    L2 = "L2"
    L3 = "L3"


@frozen
class Spot:
    """A place in a memory, in bytes from its start."""

    level: Level
    offset: int


@frozen(kw_only=True)
class Traffic:
    """Bytes that are copied: inputs, weights, outputs."""

    inputs: int = 0
    weights: int = 0
    outputs: int = 0

    @property
    def total(self) -> int:
        """Bytes of all channels."""
        return self.inputs + self.weights + self.outputs

    def __add__(self, other: Traffic) -> Traffic:
        return Traffic(
            inputs=self.inputs + other.inputs, weights=self.weights + other.weights,
            outputs=self.outputs + other.outputs,
        )  # fmt: skip


@frozen(slots=False, kw_only=True)
class Task:
    """Steps that are computed together: `count` from `index` on; `step` is the last.

    In a single memory it is a step as a whole, or steps that ask each other for rows; all rows of
    the tensors `roots` are asked for in order.

    For levels of memory it is cut; without `scheme` it only copies. `cut` is what a unit is,
    `layer` its geometry. With `reads` the input is read where it is in L1, with `writes` the output
    is made in its place there. `ahead`: copies arrive while the core computes; `in_place`: weights
    are read where they are; `planar`: the output is made channel by channel. The last unit of
    pixels may be shorter: `pixels` are all of the output, `input_bytes` those of an input. `cycles`
    are an estimate, `reason` says why this scheme was chosen. `links` are layers that hand each
    other rows or channels; a link is `chained` if another of them makes its input, which may ask
    for fewer rows than there are: those of the `demand` (0: all).
    """

    index: int
    step: Step
    count: int = 1
    roots: tuple[int, ...] = ()
    layer: Geometry | None = None
    scheme: Scheme | None = None
    cut: Cut | None = None
    reads: bool = False
    writes: bool = False
    ahead: bool = True
    in_place: bool = True
    planar: bool = False
    pixels: int = 0
    input_bytes: int = 0
    cycles: float = 0.0
    reason: str = ""
    links: tuple[Task, ...] = ()
    chained: bool = False
    demand: int = 0

    @property
    def name(self) -> str:
        """The step's name, with what it is."""
        if len(self.links) > 1:
            return f"{self.links[0].step.name} to {self.step.name}"
        return f"{self.step.name} {type(self.step).__name__.lower()}"

    @property
    def last(self) -> int:
        """Index of its last step."""
        return self.index + self.count - 1

    @property
    def steps(self) -> range:
        """Indices of its steps."""
        return range(self.index, self.index + self.count)

    @property
    def layers(self) -> tuple[Task, ...]:
        """The links, or itself."""
        return self.links or (self,)

    @property
    def sources(self) -> tuple[int, ...]:
        """The tensors that it reads."""
        return sources_of(self.layers[0].step)

    @property
    def pitch(self) -> int:
        """Bytes from a row of the ring to the next."""
        assert self.layer is not None and isinstance(self.cut, Rows)
        if self.reads or self.chained:
            return self.layer.row_bytes
        columns = self.layer.tile_columns(self.cut.columns)
        row = columns * self.layer.channels * self.layer.in_bytes
        return aligned(row) if self.ahead and self.scheme and self.scheme.unit else row

    @property
    def rows(self) -> int:
        """Output rows that are made."""
        assert self.layer is not None
        return self.demand or self.layer.out_size[0]

    @property
    def slots(self) -> int:
        """Rows of the ring."""
        assert self.layer is not None and isinstance(self.cut, Rows)
        if self.reads:
            return self.layer.in_size[0]
        ring = self.layer.ring_rows(self.cut.band, ahead=self.ahead)
        return max(min(ring, self.layer.needed(self.rows - 1)[1]), 1)

    @property
    def groups(self) -> int:
        """Groups of filters that are computed one after the other."""
        assert self.layer is not None and isinstance(self.cut, Rows | Planes)
        return -(-self.layer.filters // self.cut.filters)

    @property
    def filters_outer(self) -> bool:
        """Whether all rows are read again for each group of filters."""
        return isinstance(self.cut, Rows) and self.cut.weights.filters_outer

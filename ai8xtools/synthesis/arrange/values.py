"""What is to be arranged: tensors, what ties them to each other, and what each layer needs.

Positions count executed layers from 0; -1 is before the first one. Words are those of one data
memory instance, columns those of one kernel memory.
Source: docs/placement.md, "Places that are left open".
"""

from __future__ import annotations

from collections.abc import Mapping

from ai8xtools.synthesis.layout import InputPort
from ai8xtools.synthesis.network import DATA_BUFFER, NETWORK_INPUT, Layer, Network
from ai8xtools.synthesis.options import NOTHING, Occupied
from ai8xtools.values import frozen
from device import Chip
from device.chip import PROCESSORS_PER_INSTANCE

BLOCK = 4
"""Kernels begin at multiples of this many columns; memory is counted in blocks of them."""


@frozen
class Choice:
    """How the sample arrives, how many layers stream, and whether results overwrite inputs."""

    planar: bool = False
    port: InputPort = InputPort.MEMORY
    streamed: int = 0
    in_place: bool = False

    def __str__(self) -> str:
        text = "CHW" if self.planar else "HWC"
        if self.port.is_fifo:
            text += f" through {'the fast ' if self.port.is_fast else 'a '}FIFO"
        if self.streamed:
            text += f", {self.streamed} layers streaming"
        return text + (", results over inputs that have been read" if self.in_place else "")


@frozen
class StoredTensor:
    """The sample, a layer's result, or a rolling buffer.

    `pattern` has a bit for each processor of a pass, seen from the first one, which can be any of
    `starts`. `words` are those in memory without gaps; the first `leading` of them are not valid.
    It is alive from position `born` to `dies`, both included.
    """

    owner: int
    pattern: int
    starts: tuple[int, ...]
    words: int
    born: int
    dies: int
    width: int
    passes: int
    pixels: int
    leading: int = 0

    def meets(self, other: StoredTensor) -> bool:
        """Whether both are alive at the same time."""
        return self.born <= other.dies and other.born <= self.dies

    @property
    def span(self) -> int:
        """Processors from the first to the last one."""
        return self.pattern.bit_length()

    @property
    def room(self) -> int:
        """Processors from the first one to the end of the last one's instance."""
        return -(-self.span // PROCESSORS_PER_INSTANCE) * PROCESSORS_PER_INSTANCE


@frozen
class Tie:
    """Two tensors that stand at a fixed distance from each other, and why."""

    first: int
    second: int
    reason: str


@frozen
class Unit:
    """Tensors at fixed distances from each other; `starts` are those of the whole."""

    members: tuple[int, ...]
    starts: tuple[int, ...]


@frozen
class Cell:
    """Tensors at one offset, which take turns word by word; `fixed` is a given offset."""

    members: tuple[int, ...]
    words: int
    fixed: int | None = None


@frozen
class KernelLoad:
    """The kernels of a layer: the tensors it reads and the columns it needs in their processors.

    Layers of the same `content` share them where they read from the same processors.
    """

    layer: int
    reads: tuple[int, ...]
    columns: int
    depthwise: bool
    content: int
    fixed: int | None

    @property
    def blocks(self) -> int:
        """Blocks of columns that are taken."""
        return -(-self.columns // BLOCK)


@frozen
class BiasLoad:
    """The bias bytes of a layer, in one of `groups` (None: any), or of each of its channels."""

    layer: int
    count: int
    first: bool
    groups: tuple[int, ...] | None
    by_channel: tuple[int, ...] | None
    passes: int


@frozen(slots=False)
class Problem:
    """A network on a chip with one choice of how the sample arrives.

    `tensors` are numbered; `unit_of` and `distance` tell the place of each in its unit, `cell_of`
    and `slot` that in its cell, whose tensors stand `step` words apart. `reads` are the tensors of
    each layer, `joins` those that must stand in rising order. `pairs` of tensors in different
    cells are alive together, `twins` are in one place of a cell. `overlaps` gives the words by
    which an output (first) may stay below an input (second) instead of its size. `occupied` is
    what other networks have.
    """

    network: Network
    chip: Chip
    choice: Choice
    tensors: tuple[StoredTensor, ...]
    unit_of: tuple[int, ...]
    distance: tuple[int, ...]
    units: tuple[Unit, ...]
    cell_of: tuple[int, ...]
    slot: tuple[int, ...]
    step: tuple[int, ...]
    cells: tuple[Cell, ...]
    reads: tuple[tuple[int, ...], ...]
    joins: tuple[tuple[int, ...], ...]
    loads: tuple[KernelLoad, ...]
    biases: tuple[BiasLoad, ...]
    pairs: tuple[tuple[int, int], ...]
    twins: tuple[tuple[int, int], ...]
    overlaps: Mapping[tuple[int, int], int]
    occupied: Occupied = NOTHING

    @property
    def capacity(self) -> int:
        """Words of a data memory instance."""
        return self.chip.instance_bytes // 4

    def tensor_of(self, owner: int) -> int:
        """Return the number of the tensor of a layer, or of the sample."""
        return next(i for i, t in enumerate(self.tensors) if t.owner == owner)

    def name(self, tensor: int) -> str:
        """Say what a tensor is."""
        owner = self.tensors[tensor].owner
        apart = {NETWORK_INPUT: "the input", DATA_BUFFER: "the rolling buffer"}
        return apart.get(owner) or f"the result of {self.network.layer(owner)}"

    def layer(self, index: int) -> Layer:
        """Return a layer."""
        return self.network.layer(index)

"""What happened on the bus and in the accelerator, in order, so that time can be estimated."""

from __future__ import annotations

from collections.abc import Sequence
from enum import Enum

from device import Chip
from emulator.decode.config import LayerConfig
from emulator.decode.cycles import STARTUP_CYCLES, Cycles, network_cycles
from emulator.state.memory import Memory
from emulator.words.addresses import AddressMap
from emulator.words.writes import Writes
from values import frozen


@frozen
class TimedRun:
    """Layers that ran after one start, with the clock of the accelerator; `number` counts from 0.

    The start itself takes one cycle.
    """

    number: int
    layers: tuple[LayerConfig, ...]
    cycles: tuple[Cycles, ...]
    mhz: float

    @classmethod
    def of(cls, number: int, memory: Memory, layers: Sequence[LayerConfig], mhz: float) -> TimedRun:
        """Estimate how long layers took whose registers are in `memory`."""
        return cls(number, tuple(layers), tuple(network_cycles(memory, layers)), mhz)

    @property
    def total_cycles(self) -> int:
        """Cycles of the accelerator."""
        return STARTUP_CYCLES + sum(layer.estimate for layer in self.cycles)

    @property
    def microseconds(self) -> float:
        """Time from the start to the interrupt."""
        return self.total_cycles / self.mhz


class MarkKind(Enum):
    """What happened between two writes; the values are for people."""

    READ_CONTROL = "control registers were read"
    READ_OTHER = "registers or memories were read"
    RUN = "the accelerator ran"


@frozen
class Mark:
    """Something that happened after so many writes: `count` reads, or the run of that number."""

    writes: int
    kind: MarkKind
    count: int


@frozen
class Recording:
    """Everything that reached the accelerator of a chip, in order: writes, reads, and its runs."""

    addresses: AddressMap
    writes: Writes
    marks: tuple[Mark, ...]
    runs: tuple[TimedRun, ...]

    @property
    def chip(self) -> Chip:
        """The chip."""
        return self.addresses.chip

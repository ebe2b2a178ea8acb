"""What happened on the bus and in the accelerator, in order, so that time can be estimated."""

from __future__ import annotations

from array import array
from collections.abc import Iterator, Sequence
from enum import Enum

from ai8xtools.emulator.decode.config import LayerConfig
from ai8xtools.emulator.decode.cycles import STARTUP_CYCLES, Cycles, network_cycles
from ai8xtools.emulator.state.memory import Memory
from ai8xtools.emulator.words.addresses import AddressMap
from ai8xtools.emulator.words.writes import Writes
from ai8xtools.values import frozen
from device import Chip


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


class MarkLog:
    """Marks as they happen, in little memory: a FIFO's status is read before each word."""

    _KINDS = tuple(MarkKind)

    def __init__(self) -> None:
        self._writes, self._kinds, self._counts = array("I"), array("B"), array("I")

    def __iter__(self) -> Iterator[Mark]:
        """Yield the marks in order."""
        for writes, kind, count in zip(self._writes, self._kinds, self._counts, strict=True):
            yield Mark(writes, self._KINDS[kind], count)

    def clear(self) -> None:
        """Forget all marks."""
        del self._writes[:], self._kinds[:], self._counts[:]

    def read(self, writes: int, *, control: bool) -> None:
        """Note a read after so many writes."""
        kind = _READ_CONTROL if control else _READ_OTHER
        if self._kinds and self._kinds[-1] == kind and self._writes[-1] == writes:
            self._counts[-1] += 1
        else:
            self._append(writes, kind, 1)

    def ran(self, writes: int, number: int) -> None:
        """Note the run of this number after so many writes."""
        self._append(writes, _RUN, number)

    def _append(self, writes: int, kind: int, count: int) -> None:
        self._writes.append(writes)
        self._kinds.append(kind)
        self._counts.append(count)


_READ_CONTROL, _READ_OTHER, _RUN = range(len(MarkKind))


@frozen
class Recording:
    """Everything that reached the accelerator of a chip, in order: writes, reads, and its runs."""

    addresses: AddressMap
    writes: Writes
    marks: MarkLog
    runs: tuple[TimedRun, ...]

    @property
    def chip(self) -> Chip:
        """The chip."""
        return self.addresses.chip

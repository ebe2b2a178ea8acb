"""The time that the accelerator has taken since a program began, estimated while it runs."""

from __future__ import annotations

from ai8xtools.emulator.firmware.bus import Bus
from ai8xtools.emulator.machine.accelerator import NetworkRun
from ai8xtools.emulator.machine.timing import Recording, TimedRun
from ai8xtools.emulator.state.clocks import accelerator_mhz, word_microseconds
from ai8xtools.emulator.state.memory import Memory


class Timekeeper:
    """Counts words on a bus and cycles of the accelerator. `measured` are times that programs got.

    Words of a program that has not set up the accelerator take no time.
    """

    def __init__(self, bus: Bus) -> None:
        self._bus = bus
        self.runs: list[TimedRun] = []
        self.measured: list[int] = []
        self._last: tuple[NetworkRun, int] | None = None  # with the layers of it that have run

    @property
    def microseconds(self) -> float:
        """Estimated time that words and runs have taken."""
        addresses = self._bus.addresses
        if addresses is None:
            return 0.0
        words = len(self._bus.log) + self._bus.read_count
        ran = sum(run.microseconds for run in self.runs)
        return words * word_microseconds(addresses.chip) + ran

    def ran(self, run: NetworkRun, memory: Memory) -> None:
        """Note that the accelerator has run, or gone on with a run, until it stopped."""
        before = self._last[1] if self._last is not None and self._last[0] is run else 0
        self._last = run, len(run.layers)
        layers = [done.config for done in run.layers[before:]]
        mhz = accelerator_mhz(self._bus.words, memory.chip)
        self.runs.append(TimedRun.of(len(self.runs), memory, layers, mhz))
        self._bus.marks.ran(len(self._bus.log), len(self.runs) - 1)

    def recording(self) -> Recording | None:
        """Return all that has happened; None if the program set up no accelerator."""
        bus = self._bus
        if bus.addresses is None:
            return None
        return Recording(bus.addresses, bus.writes(), bus.marks, tuple(self.runs))

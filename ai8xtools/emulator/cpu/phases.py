"""Where the time of a program goes: what it executes and waits for between calls of functions."""

from __future__ import annotations

from collections.abc import Callable, Mapping

from ai8xtools.emulator.cpu.core import Core
from ai8xtools.emulator.cpu.counting import cost_of_block
from ai8xtools.values import frozen


@frozen
class Phase:
    """What a phase took in all: `entries` counts how often it began, `cycles` are those of the
    instructions (an estimate), `gauges` by how much each gauge rose."""

    entries: int
    cycles: float
    gauges: tuple[float, ...]


class Phases:
    """Divides the time of a program into phases, each of which begins with the call of a function.

    `begins` names the phase of each function, `gauges` returns numbers that only rise. The program
    begins in the phase `first`; functions that it does not have begin nothing.
    """

    def __init__(
        self,
        core: Core,
        begins: Mapping[str, str],
        first: str,
        gauges: Callable[[], tuple[float, ...]],
    ) -> None:
        bit = core.architecture.family.code_bit
        symbols = core.image.symbols
        self._begins = {symbols[f] & ~bit: phase for f, phase in begins.items() if f in symbols}
        self._core, self._gauges, self._phase = core, gauges, first
        self._blocks: dict[tuple[int, int], float] = {}
        self._cycles = dict.fromkeys((first, *begins.values()), 0.0)
        self._entries = dict.fromkeys(self._cycles, 0)
        self._risen: dict[str, tuple[float, ...]] = {}
        self._last = gauges()
        core.watch_blocks(self._enter)

    def measured(self) -> dict[str, Phase]:
        """Return what each phase took until now."""
        self._switch(self._phase)
        nothing = tuple(0.0 for _ in self._last)
        return {
            name: Phase(self._entries[name], cycles, self._risen.get(name, nothing))
            for name, cycles in self._cycles.items()
        }

    def _enter(self, address: int, size: int) -> None:
        phase = self._begins.get(address)
        if phase is not None:
            self._entries[phase] += 1
            self._switch(phase)
        key = (address, size)
        if key not in self._blocks:
            self._blocks[key] = cost_of_block(self._core, address, size).cycles
        self._cycles[self._phase] += self._blocks[key]

    def _switch(self, phase: str) -> None:
        now = self._gauges()
        rise = tuple(new - old for new, old in zip(now, self._last, strict=True))
        before = self._risen.get(self._phase, tuple(0.0 for _ in now))
        self._risen[self._phase] = tuple(map(sum, zip(before, rise, strict=True)))
        self._last, self._phase = now, phase

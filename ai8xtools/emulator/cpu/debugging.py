"""What a core and a debugger know of each other."""

from __future__ import annotations

from typing import Any, Protocol

from ai8xtools.emulator.cpu.architecture import Architecture
from ai8xtools.emulator.cpu.io import IoArea
from ai8xtools.emulator.cpu.memory_map import CoreMemory
from ai8xtools.emulator.errors import EmulatorError


class Debugger(Protocol):
    """A debugger that watches a program instruction by instruction."""

    def stops_before(self, address: int, depth: int) -> bool:
        """Tell whether the program shall stop before it executes an instruction.

        `depth` counts the handlers of interrupts that are running.
        """

    def stopped(self, target: DebugTarget, depth: int) -> None:
        """The program has stopped; it goes on when this returns."""

    def failed(self, target: DebugTarget, error: EmulatorError) -> None:
        """The program cannot go on."""

    def ended(self, status: int | None) -> None:
        """The program has ended; `status` is what it returned, None if it was stopped."""


class DebugTarget:
    """Registers and memories of a core, as a debugger sees them.

    Looking changes nothing: what a program would trigger by reading does not happen. Writing to
    peripherals is like writing by the program.
    """

    def __init__(
        self, unicorn: Any, architecture: Architecture, memory: CoreMemory, areas: list[IoArea]
    ) -> None:
        self.architecture = architecture
        self.memory = memory
        self.wants_end = False
        """Whether the program shall end now."""
        self.wants_detach = False
        """Whether the program shall go on alone."""
        self._unicorn, self._areas = unicorn, areas

    def read_register(self, number: int) -> int:
        """Return a register, by unicorn's number."""
        return int(self._unicorn.reg_read(number))

    def write_register(self, number: int, value: int) -> None:
        """Change a register, by unicorn's number."""
        self._unicorn.reg_write(number, value)

    def read(self, address: int, size: int) -> bytes | None:
        """Return bytes; None if a part of them is nowhere."""
        stored = self.read_memory(address, size)
        if stored is not None:
            return stored
        area = self._area(address, size)
        if area is None or area.peek is None:
            return None
        return bytes(area.peek(address + offset) for offset in range(size))

    def read_memory(self, address: int, size: int) -> bytes | None:
        """Return bytes of flash or SRAM; None for others."""
        if not self._in_memory(address, size):
            return None
        return bytes(self._unicorn.mem_read(address, size))

    def write(self, address: int, data: bytes) -> bool:
        """Change bytes; return whether all of them are somewhere.

        Peripherals get words where these are aligned, else bytes.
        """
        if self._in_memory(address, len(data)):
            self._unicorn.mem_write(address, data)
            self._unicorn.ctl_flush_tb()  # it may be code
            return True
        area = self._area(address, len(data))
        if area is None:
            return False
        width = 4 if address % 4 == 0 and len(data) % 4 == 0 else 1
        for offset in range(0, len(data), width):
            value = int.from_bytes(data[offset : offset + width], "little")
            area.write(address + offset, width, value)
        return True

    def _in_memory(self, address: int, size: int) -> bool:
        memory = self.memory
        return any(
            base <= address and address + size <= base + length
            for base, length in (
                (memory.flash_base, memory.flash_bytes),
                (memory.sram_base, memory.sram_bytes),
            )
        )

    def _area(self, address: int, size: int) -> IoArea | None:
        return next(
            (
                area
                for area in self._areas
                if area.base <= address and address + size <= area.base + area.size_bytes
            ),
            None,
        )

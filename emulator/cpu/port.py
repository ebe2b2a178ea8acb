"""The emulator's own registers, by which programs print and end; see sdk/runtime.c."""

from __future__ import annotations

from emulator.cpu.io import CoreObserver, IoArea
from emulator.errors import EmulatorError

PORT = 0xF0000000
_BYTES = 0x1000
_CONSOLE, _ABORT, _STOPWATCH = range(0, 12, 4)


class Port:
    """The registers; what the program prints goes to `observer`."""

    def __init__(self, observer: CoreObserver) -> None:
        self._observer = observer

    @property
    def areas(self) -> tuple[IoArea, ...]:
        """The addresses of the registers."""
        return (IoArea("the emulator's port", PORT, _BYTES, self._read, self._write),)

    def _read(self, address: int, _width: int) -> int:
        return 1 if address == PORT + _STOPWATCH else 0

    def _write(self, address: int, _width: int, value: int) -> None:
        if address == PORT + _CONSOLE:
            self._observer.text(chr(value))
        elif address == PORT + _ABORT:
            raise EmulatorError("E824", "the program calls abort()")

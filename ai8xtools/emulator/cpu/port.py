"""The emulator's own registers: what the run time of programs asks of the world outside.

The same registers stand in sdk/source/emulator.h.
"""

from __future__ import annotations

from collections.abc import Callable
from enum import IntEnum, auto
from typing import assert_never

from ai8xtools.emulator.bits import WORD_BITS, WORD_LIMIT, signed, truncated
from ai8xtools.emulator.cpu.io import CoreObserver, IoArea
from ai8xtools.emulator.cpu.mathematics import compute, format_number, parse_number
from ai8xtools.emulator.errors import StoppedError

PORT = 0xF0000000
"""Address of the registers."""
READING_MICROSECONDS = 10
"""Time that passes while the clock is read: programs wait by reading it."""
_BYTES = 0x1000
_TEXT_BYTES = 80
_STAND_IN_BYTES = 64


class _Register(IntEnum):
    """Numbers of the registers, in words."""

    CONSOLE = 0
    ABORT = auto()
    STOPWATCH = auto()
    EXIT = auto()
    STAND_IN = auto()
    X_LOW = auto()
    X_HIGH = auto()
    Y_LOW = auto()
    Y_HIGH = auto()
    COMPUTE = auto()
    RESULT_LOW = auto()
    RESULT_HIGH = auto()
    FORMAT = auto()
    FORMATTED = auto()
    PARSE = auto()
    PARSED = auto()
    DELAY = auto()
    CLOCK_LOW = auto()
    CLOCK_HIGH = auto()
    ASLEEP = auto()
    STOPWATCH_START = auto()
    STOPWATCH_STOP = auto()
    FLASH_ADDRESS = auto()
    FLASH_WORD = auto()
    DUE = auto()
    UNUSED = auto()

    @classmethod
    def _missing_(cls, _value: object) -> _Register:
        return cls.UNUSED


class Port:
    """The registers of one core; what the program prints and lacks goes to `observer`.

    `read_memory` reads the core's memory, `write_flash` changes its flash memory, `leave` gets the
    status with which the program ends itself. `microseconds` is the time for which it has waited
    since its start.
    """

    def __init__(
        self,
        observer: CoreObserver,
        read_memory: Callable[[int, int], bytes],
        write_flash: Callable[[int, bytes], None],
        leave: Callable[[int], None],
    ) -> None:
        self.microseconds = 0.0
        self._observer = observer
        self._read_memory, self._write_flash = read_memory, write_flash
        self._leave = leave
        self._flash_address = 0
        self._arguments = [0, 0, 0, 0]
        self._result = self._parsed = 0
        self._started: dict[int, float] = {}  # stopwatches by their timer
        self._measured = 1
        self._formatted: list[str] = []

    @property
    def areas(self) -> tuple[IoArea, ...]:
        """The addresses of the registers."""
        return (IoArea("the emulator's port", PORT, _BYTES, self._read, self._write),)

    def _read(self, address: int, _width: int) -> int:
        match register := _Register((address - PORT) // 4):
            case _Register.STOPWATCH:
                return self._measured
            case _Register.RESULT_LOW:
                return truncated(self._result)
            case _Register.RESULT_HIGH:
                return self._result // WORD_LIMIT
            case _Register.FORMATTED:
                return ord(self._formatted.pop()) if self._formatted else 0
            case _Register.PARSED:
                return self._parsed
            case _Register.CLOCK_LOW:
                self.microseconds += READING_MICROSECONDS
                return truncated(int(self.now()))
            case _Register.CLOCK_HIGH:
                return int(self.now()) // WORD_LIMIT
            case _Register.DUE:
                return int(self._observer.due)
            case (
                _Register.CONSOLE | _Register.ABORT | _Register.EXIT | _Register.STAND_IN
                | _Register.X_LOW | _Register.X_HIGH | _Register.Y_LOW | _Register.Y_HIGH
                | _Register.COMPUTE | _Register.FORMAT | _Register.PARSE | _Register.DELAY
                | _Register.ASLEEP | _Register.STOPWATCH_START | _Register.STOPWATCH_STOP
                | _Register.FLASH_ADDRESS | _Register.FLASH_WORD | _Register.UNUSED
            ):  # fmt: skip
                return 0
            case _:
                assert_never(register)

    def _write(self, address: int, _width: int, value: int) -> None:
        match register := _Register((address - PORT) // 4):
            case _Register.CONSOLE:
                self._observer.text(chr(truncated(value, 8)))
            case _Register.ABORT:
                raise StoppedError("E824", "the program calls abort()")
            case _Register.EXIT:
                self._leave(signed(value, WORD_BITS))
            case _Register.STAND_IN:
                self._observer.stand_in(self._string(value, _STAND_IN_BYTES))
            case _Register.X_LOW | _Register.X_HIGH | _Register.Y_LOW | _Register.Y_HIGH:
                self._arguments[register - _Register.X_LOW] = value
            case _Register.COMPUTE:
                self._result = compute(value, self._number(0), self._number(2))
            case _Register.FORMAT:
                conversion = self._string(value, _TEXT_BYTES)
                self._formatted = list(reversed(format_number(conversion, self._number(0))))
            case _Register.PARSE:
                self._result, self._parsed = parse_number(self._string(value, _TEXT_BYTES))
            case _Register.ASLEEP:
                self._observer.asleep(alone=value != 0)
            case _Register.DELAY:
                self.microseconds += value
            case _Register.FLASH_ADDRESS:
                self._flash_address = value
            case _Register.FLASH_WORD:
                self._write_flash(self._flash_address, value.to_bytes(4, "little"))
            case _Register.STOPWATCH_START:
                self._started[value] = self.now()
            case _Register.STOPWATCH_STOP:
                elapsed = self.now() - self._started.get(value, 0.0)
                self._measured = max(1, truncated(round(elapsed)))
                self._observer.measured(self._measured)
            case (
                _Register.STOPWATCH | _Register.RESULT_LOW | _Register.RESULT_HIGH
                | _Register.FORMATTED | _Register.PARSED | _Register.CLOCK_LOW
                | _Register.CLOCK_HIGH | _Register.DUE | _Register.UNUSED
            ):  # fmt: skip
                pass
            case _:
                assert_never(register)

    def now(self) -> float:
        """Return the microseconds since the start, with what the devices have taken."""
        return self.microseconds + self._observer.device_microseconds

    def _number(self, first: int) -> int:
        return self._arguments[first + 1] * WORD_LIMIT + self._arguments[first]

    def _string(self, address: int, limit: int) -> str:
        """Read a C string of at most `limit` characters."""
        text = b""
        while len(text) < limit and (byte := self._read_memory(address + len(text), 1)) != b"\0":
            text += byte
        return text.decode("latin-1")

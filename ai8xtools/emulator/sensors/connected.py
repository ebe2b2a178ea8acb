"""The registers through which programs reach sensors and the timers that wake or end them.

The same registers stand in sdk/source/sensors.h.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator
from enum import IntEnum, auto

from ai8xtools.emulator.cpu.io import IoArea
from ai8xtools.emulator.errors import StoppedError
from ai8xtools.emulator.sensors import camera, microphone, serial
from ai8xtools.emulator.sensors.buttons import Buttons
from ai8xtools.emulator.sensors.camera import Camera
from ai8xtools.emulator.sensors.clock import NEVER
from ai8xtools.emulator.sensors.microphone import Microphone
from ai8xtools.emulator.sensors.recorded import Recorded
from ai8xtools.emulator.sensors.serial import ClosedLineError, Serial

BASE = 0xF0001000
"""Address of the registers: behind those of the emulator."""
_BYTES, _WORD_BYTES = 0x1000, 4
_I2S = 0x40060000
_I2S_LEVEL, _I2S_DATA, _I2S_FLAGS = _I2S + 0x30, _I2S + 0x40, _I2S + 0x50
_LEVEL = 1 << 24
SERIES = "series"

_SECOND_US = 1_000_000
SYSTEM_TIMER = 125
"""Number of the timer in the core, which has no interrupt of the chip."""
LOW_POWER, OFF, RESTART = 1, 2, 3
"""How deeply a core sleeps, if not as usual."""


class Event(IntEnum):
    """What wakes a program; the number of a timer is added to TIMER."""

    NONE = 0
    SAMPLES = auto()
    COPIED = auto()
    PRESSED = auto()
    RECEIVED = auto()
    TIMER = 16


_REGISTERS = [
    "width",
    "height",
    "format",
    "pixel_bytes",
    "buffer",
    "set_up",
    "start",
    "done",
    "row",
    "release",
    "rows",
    "overflows",
    "divider",
    "rate",
    "sample_bytes",
    "threshold",
    "listen",
    "copy_to",
    "copy_bytes",
    "values_to",
    "values",
    "timer",
    "timer_first_us",
    "timer_us",
    "watchdog_ms",
    "feed",
    "next",
    "event",
    "mode",
    "button",
    "pins",
    "copied",
    "line",
    "line_level",
    "line_byte",
    "line_wait",
    "line_to",
    "line_done",
    "line_argument",
    "line_left",
    "unheard",
]
"""In the order of their addresses."""


class Sensors:
    """What is connected to a board. `ended` names the sensor whose recording is over.

    `attach` tells it how to end the program and reach its memory and its clock.
    """

    def __init__(self, recorded: Recorded | None = None) -> None:
        self.recorded = recorded or Recorded()
        self.ended: str | None = None
        self.camera, self.microphone = Camera(self, self.recorded), Microphone(self, self.recorded)
        self.buttons = Buttons(self)
        self.serial = Serial(self.recorded.line, self.recorded.uart, self)
        self.mode = 0
        self.on_mode: Callable[[int], None] = lambda _mode: None
        """Called before a core sleeps more deeply than usual."""
        self.measured = 0
        """Rows of measurements that were read."""
        self._stop: Callable[[], None] = lambda: None
        self._store: Callable[[int, bytes], None] = lambda _address, _data: None
        self._check_buffer: Callable[[int, int], None] = lambda _address, _size: None
        self._now: Callable[[], float] = lambda: 0.0
        self._pass: Callable[[float], None] = lambda _microseconds: None
        self._registers = dict.fromkeys(_REGISTERS, 0)
        self._rows: Iterator[bytes] | None = None
        self._timers: dict[int, tuple[float, float]] = {}  # when due, and the period
        self._mute: set[int] = set()  # timers whose interrupts the program did not handle
        self._fired: int | None = None  # the last one
        self._spins_us: float | None = None
        self._limit = self._fed = 0.0
        values = self._registers
        self._answers: dict[str, Callable[[], int]] = {
            "done": self.camera.done,
            "row": self.camera.row,
            "rows": lambda: self.camera.rows,
            "overflows": lambda: self.camera.overflows,
            "values": lambda: self._values(values["values"]),
            "timer_us": self._until_timer,
            "button": self.buttons.look,
            "next": self._next,
            "event": self._event,
            "line": lambda: self.serial.connected,
            "line_level": self._line_level,
            "line_byte": self.serial.take,
        }
        self._acts: dict[str, Callable[[int], None]] = {
            "set_up": self._set_up_camera,
            "start": lambda _value: self.camera.start(),
            "release": lambda _value: self.camera.release(),
            "divider": self.camera.divide,
            "sample_bytes": lambda size: self.microphone.set_up(values["rate"], size),
            "threshold": self.microphone.wait_for,
            "listen": self._listen,
            "copy_bytes": self._copy_samples,
            "timer_us": self._start_timer,
            "watchdog_ms": self._start_watchdog,
            "feed": self._feed,
            "mode": self._enter,
            "pins": self._watch_pins,
            "line_byte": self.serial.send,
            "line_wait": lambda _value: self.serial.wait(),
            "line_left": self._copy_bytes,
            "unheard": self._note_unheard,
        }

    def attach(
        self,
        store: Callable[[int, bytes], None],
        now: Callable[[], float],
        pass_time: Callable[[float], None],
        stop: Callable[[], None],
        check_buffer: Callable[[int, int], None] = lambda _address, _size: None,
    ) -> None:
        """Connect it with a core; `check_buffer` refuses one that is not in its memory."""
        self._check_buffer = check_buffer
        self._store, self._now, self._pass, self._stop = store, now, pass_time, stop
        self.serial.attach(stop)

    @property
    def area(self) -> IoArea:
        """Where the registers are."""
        return IoArea("sensors", BASE, _BYTES, self._read, self._write)

    @property
    def delivered(self) -> str | None:
        """Say what came from which sensor; None if nothing did."""
        for count, what in (
            (self.camera.delivered, "picture"),
            (self.microphone.delivered, "sample"),
            (self.measured, "measurement"),
            (self.serial.delivered, "byte"),
        ):
            if count:
                return f"{count} {what}{'s' if count > 1 else ''}"
        return None

    @property
    def count(self) -> int:
        """How much came from all sensors."""
        sensors = self.camera.delivered + self.microphone.delivered + self.measured
        return sensors + self.serial.delivered

    @property
    def source(self) -> str | None:
        """The sensor that has delivered something, by its option."""
        if self.camera.delivered:
            return camera.NAME
        if self.microphone.delivered:
            return microphone.NAME
        if self.measured:
            return SERIES
        return serial.NAME if self.serial.delivered else None

    # What sensors ask of the board

    @property
    def now(self) -> float:
        """Microseconds since the start of the program."""
        return self._now()

    def pass_time(self, microseconds: float) -> None:
        """Let time pass."""
        self._pass(microseconds)

    def store(self, address: int, data: bytes) -> None:
        """Write into the memory of the core, as DMA does."""
        self._store(address, data)

    def news(self) -> None:
        """Something new has come for the program, or its network has run."""
        self.buttons.news()
        self.serial.news()

    def is_over(self, sensor: str) -> None:
        """A program waits for a sensor whose recording is over: it ends."""
        self.ended = sensor
        self._stop()

    @property
    def interrupts(self) -> bool:
        """Whether something will interrupt the program, or end it, if time passes."""
        inputs = self.microphone.listens or self.buttons.pins or self.serial.listens
        return bool(self._timers or self._limit or inputs)

    @property
    def live(self) -> bool:
        """Whether something will interrupt the program that it handles, or end it."""
        inputs = self.microphone.listens or self.buttons.pins or self.serial.listens
        return bool(
            inputs or self._limit or self.serial.connected or self._timers.keys() - self._mute
        )

    @property
    def spins(self) -> bool:
        """Whether the program that waits for an interrupt computes meanwhile."""
        return self._spins_us is not None

    def spin(self, microseconds: float | None) -> None:
        """The program computes for so long, and may wait for an interrupt; None: it sleeps."""
        self._spins_us = microseconds

    # Registers of the chip

    def peripheral(self, address: int) -> int | None:
        """Return what a register of the I2S interface or a UART reads; None for others."""
        if address == _I2S_LEVEL:
            return self.microphone.level() * _LEVEL
        if address == _I2S_DATA:
            return self.microphone.take()
        return self.microphone.flags if address == _I2S_FLAGS else self.serial.read(address)

    def acknowledge(self, address: int, value: int) -> None:
        """A register of a peripheral is written."""
        if address == _I2S_FLAGS:
            self.microphone.acknowledge(value)
        else:
            self.serial.write(address, value)

    # Registers of the emulator

    def _read(self, address: int, _width: int) -> int:
        self._watch()
        register = _name(address)
        answer = self._answers.get(register)
        return self._registers.get(register, 0) if answer is None else int(answer())

    def _write(self, address: int, _width: int, value: int) -> None:
        register = _name(address)
        self._registers[register] = value
        act = self._acts.get(register)
        if act is not None:
            act(value)

    def _set_up_camera(self, mode: int) -> None:
        values = self._registers
        size = values["width"], values["height"]
        pixel = values["format"], values["pixel_bytes"]
        self.camera.set_up(size, pixel, values["buffer"], mode)

    def _listen(self, on: int) -> None:
        if on:
            self.microphone.start()
        else:
            self.microphone.stop()

    def _start_timer(self, period: int) -> None:
        """Start the chosen timer, or stop it."""
        self.start_timer(self._registers["timer"], self._registers["timer_first_us"], period)

    def start_timer(self, number: int, first: float, period: float) -> None:
        """Have a timer fire after so many microseconds (0: stop it), and after each period."""
        self._timers.pop(number, None)
        if first:
            self._timers[number] = self.now + first, period

    def _until_timer(self) -> int:
        """Return the microseconds until a timer fires."""
        due = min((due for due, _ in self._timers.values()), default=math.inf)
        return NEVER if due == math.inf else math.ceil(max(0.0, due - self.now))

    def _start_watchdog(self, milliseconds: int) -> None:
        self._limit, self._fed = milliseconds * 1000.0, self.now

    def _enter(self, mode: int) -> None:
        self.mode = mode
        self.on_mode(self.mode)

    def _feed(self, _value: int) -> None:
        self._watch()
        self._fed = self.now

    def _copy_samples(self, size: int) -> None:
        address = self._registers["copy_to"]
        if size:
            self._check_buffer(address, size)
        self.microphone.copy_to(address, size)

    def _copy_bytes(self, left: int) -> None:
        self.serial.copies = left > 0

    @property
    def unheard(self) -> int | None:
        """The last interrupt that came and was not handled: not enabled, or without a handler."""
        return self._registers["unheard"] - 1 if self._registers["unheard"] else None

    def _note_unheard(self, _number: int) -> None:
        if self._fired is not None:
            self._mute.add(self._fired)

    def _watch_pins(self, count: int) -> None:
        self.buttons.pins = count

    def _values(self, count: int) -> int:
        """Store the next measurements; the result of a transfer that does not answer is not 0."""
        if SERIES in self.recorded.silent:
            return 1
        if not count:
            return 0
        if self._rows is None:
            self._rows = (row.astype("<i2").tobytes() for row in self.recorded.rows(count))
        row = next(self._rows, None)
        if row is None:
            self.is_over(SERIES)
            return 1
        self.measured += 1
        self.store(self._registers["values_to"], row)
        return 0

    def _line_level(self) -> int:
        try:
            return self.serial.level()
        except ClosedLineError:
            self.is_over(serial.NAME)
            return 0

    def _next(self) -> int:
        """Return the microseconds until something wakes a program that sleeps."""
        times = [self.camera.next_us(), self.microphone.next_us(), self._until_timer()]
        times.append(self.buttons.next_us(alone=min(times) == NEVER))
        times.append(self.serial.next_us(alone=min(times) == NEVER, spins=self.spins))
        if self._limit:
            times.append(self._fed + self._limit - self.now + 1)
        if self._spins_us is not None:
            times.append(self._spins_us)
        return min(NEVER, math.ceil(min(times)))

    def _event(self) -> int:
        """Return what is due, the earliest timer first."""
        number = min(self._timers, key=lambda one: self._timers[one][0], default=0)
        due, period = self._timers.get(number, (math.inf, 0.0))
        if due <= self.now:
            del self._timers[number]
            self._mute.discard(number)
            self._fired = number
            if period:
                self._timers[number] = due + period, period
            return Event.TIMER + number
        self._fired = None
        if self.buttons.interrupts():
            return Event.PRESSED
        if self.serial.interrupts():
            return Event.RECEIVED
        copies = self.microphone.copies
        if self.microphone.step():
            return Event.COPIED if copies else Event.SAMPLES
        return Event.NONE

    def _watch(self) -> None:
        """The watchdog restarts a program that does not reset it: it ends."""
        if self._limit and self.now > self._fed + self._limit:
            raise StoppedError(
                "E873", "the watchdog restarts the chip: the program has not reset it for "
                f"{self._limit / _SECOND_US:.1f} s",
                remedy="Call MXC_WDT_ResetTimer() more often, or choose a longer period.",
            )  # fmt: skip


def _name(address: int) -> str:
    number = (address - BASE) // _WORD_BYTES
    return _REGISTERS[number] if number < len(_REGISTERS) else ""

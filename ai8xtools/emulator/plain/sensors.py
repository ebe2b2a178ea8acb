"""Recordings in the place of the sensor of an application without the vendor's SDK.

`source/sensor.c` takes the place of the project's sensor.c. Time does not pass here.
Source: docs/emulator.md, "Recordings in the place of sensors".
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator, Sequence
from enum import IntEnum, auto
from pathlib import Path
from typing import assert_never

import numpy as np

from ai8xtools.emulator.cpu.io import IoArea
from ai8xtools.emulator.sensors import FRAME_SECONDS, ClosedLineError, Recorded, Serial
from ai8xtools.emulator.sensors.recorded import Picture
from ai8xtools.reading import source_text

BASE = 0xF0020000
"""Address of the registers; emulator/plain/source/sensor.c writes them."""
HEADER, SOURCE = "sensor.h", "sensor.c"
_BYTES, _WORD_BYTES = 0x1000, 4
BENCH = "bench"
"""The kind of a program that takes inputs over a serial line."""
_KINDS = {"SENSOR_COLUMNS": "camera", "SENSOR_RATE": "microphone", "SENSOR_PERIOD_MS": "series",
          "SENSOR_BAUD": BENCH}  # fmt: skip
_KIND = re.compile(rf"^[#]define ({'|'.join(_KINDS)})\b", re.MULTILINE)
_PIECES = {"camera": "pictures", "microphone": "samples", "series": "measurements", BENCH: "bytes"}
_NOTHING = 0x100
"""Instead of a byte of the line."""
_RED, _GREEN, _BLUE, _ONE = 19595, 38470, 7471, 65536
"""Of brightness, as Pillow weighs colours."""


class _Register(IntEnum):
    COLUMNS = 0
    ROWS = auto()
    STEP = auto()
    RATE = auto()
    COUNT = auto()
    TO = auto()
    READ = auto()
    TAKE = auto()
    SEND = auto()


def sensor_of(project: Path) -> str | None:
    """Return the sensor of an application: camera, microphone, series, bench, "" for none of
    them; None for other programs."""
    header = project / HEADER
    if not header.is_file() or not (project / SOURCE).is_file():
        return None
    text = source_text(header)
    if "sensor_read(sensor_value" not in text:
        return None
    match = _KIND.search(text)
    return _KINDS[match[1]] if match else ""


class PlainSensor:
    """The sensor of one program; `stop` ends it where its recording is over."""

    def __init__(self, kind: str, recorded: Recorded) -> None:
        self.kind, self.delivered, self.ended = kind, 0, False
        self._recorded, self._serial = recorded, Serial(recorded.line)
        self._registers = dict.fromkeys(_Register, 0)
        self._pieces: Iterator[bytes] | None = None

    def attach(self, write: Callable[[int, bytes], None], stop: Callable[[], None]) -> None:
        """Connect it with a core."""
        self._write_memory, self._stop = write, stop
        self._serial.attach(stop)

    @property
    def areas(self) -> Sequence[IoArea]:
        """Where its registers are."""
        return [IoArea("the sensor", BASE, _BYTES, self._read, self._store)]

    @property
    def delivery(self) -> str:
        """How much it has delivered, in words."""
        return f"{self.delivered} {_PIECES[self.kind]}"

    @property
    def seconds(self) -> float:
        """How long a real sensor takes to deliver as much."""
        rate = self._registers[_Register.RATE]
        each = {"camera": FRAME_SECONDS, "microphone": 1 / (rate or 1), "series": rate / 1000}
        return self.delivered * each.get(self.kind, 0.0)

    def _store(self, address: int, _width: int, value: int) -> None:
        match register := _Register((address - BASE) // _WORD_BYTES):
            case _Register.SEND:
                self._serial.send(value)
            case (
                _Register.COLUMNS | _Register.ROWS | _Register.STEP | _Register.RATE
                | _Register.COUNT | _Register.TO | _Register.READ | _Register.TAKE
            ):  # fmt: skip
                self._registers[register] = value
            case _:
                assert_never(register)

    def _read(self, address: int, _width: int) -> int:
        match register := _Register((address - BASE) // _WORD_BYTES):
            case _Register.TAKE:
                return self._take()
            case _Register.READ:
                return self._deliver()
            case (
                _Register.COLUMNS | _Register.ROWS | _Register.STEP | _Register.RATE
                | _Register.COUNT | _Register.TO | _Register.SEND
            ):  # fmt: skip
                return 0
            case _:
                assert_never(register)

    def _take(self) -> int:
        """Return the next byte of the line."""
        try:
            return self._serial.take() if self._serial.level() else _NOTHING
        except ClosedLineError:
            self.ended = True
            self._stop()
            return _NOTHING

    def _deliver(self) -> int:
        """Store the next piece; 1: nothing comes."""
        if self.kind in self._recorded.silent:
            return 1
        if self._pieces is None:
            self._pieces = self._all()
        piece = next(self._pieces, None)
        if piece is None:
            self.ended = True
            self._stop()
            return 1
        self._write_memory(self._registers[_Register.TO], piece)
        self.delivered += self._registers[_Register.COUNT] if self.kind == "microphone" else 1
        return 0

    def _all(self) -> Iterator[bytes]:
        values, count = self._registers, self._registers[_Register.COUNT]
        if self.kind == "camera":
            size, step = (values[_Register.COLUMNS], values[_Register.ROWS]), values[_Register.STEP]
            channels = count * step**2 // (size[0] * size[1])
            for picture in self._recorded.pictures(*size):
                taken = picture[step // 2 :: step, step // 2 :: step]
                yield (taken if channels > 1 else _grey(taken)).tobytes()
        elif self.kind == "microphone":
            samples = self._recorded.samples(values[_Register.RATE])
            for first in range(0, len(samples) - count + 1, count):
                yield samples[first : first + count].astype("<i2").tobytes()
        else:
            for row in self._recorded.rows(count):
                yield row.astype("<i2").tobytes()


def _grey(picture: Picture) -> Picture:
    weighed = picture.astype(np.int64) @ [_RED, _GREEN, _BLUE]
    return ((weighed + _ONE // 2) // _ONE).astype(np.uint8)

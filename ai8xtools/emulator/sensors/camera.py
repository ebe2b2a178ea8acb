"""A camera: rows of pixels in their time, two buffers in turn, rows that nobody takes are lost.

Source: docs/emulator.md, "Recordings in the place of sensors".
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import numpy as np
from numpy.typing import NDArray

from ai8xtools.emulator.sensors.clock import NEVER, PATIENCE_US, Board, steps
from ai8xtools.emulator.sensors.recorded import Picture, Recorded

NAME = "camera"
FRAME_SECONDS, _FRAME_US = 0.033333, 33_333
"""Of a picture whose clock is not divided."""
_RGB444, _RGB565, _RGB888, _YUV422 = 2, 3, 4, 5
"""Formats of pixels as the driver numbers them; others have the brightness alone."""
_FREE_LOOKS = 2
"""As many a program may take before it sleeps; more are those of one that waits awake."""
_PASSED_OVER = 16
"""As often it may ask for the end while a row is there; more often, it takes no rows."""


class Camera:
    """The camera of a board. `delivered` counts the pictures that it has begun."""

    def __init__(self, board: Board, recorded: Recorded) -> None:
        self._board, self._recorded = board, recorded
        self.delivered = 0
        self.rows = self.overflows = 0
        self._pictures: Iterator[Picture] = iter(())
        self._width = self._height = self._bytes = self._format = self._buffer = 0
        self._streams = False
        self._divider = 1
        self._began: float | None = None  # while a picture is taken
        self._done = False
        self._awaits = False  # a picture that the recording does not have
        self._encoded: list[bytes] = []
        self._seen = 0  # rows whose time has come
        self._row: int | None = None  # the buffer that the program may read
        self._looks = 0  # since the program slept
        self._passed_over = 0  # questions for the end since it has asked for a row

    def set_up(self, size: tuple[int, int], pixel: tuple[int, int], buffer: int, mode: int) -> None:
        """Choose columns and rows, format and bytes of a pixel, the buffer; `mode` 2 has rows."""
        self._width, self._height = size
        self._format, self._bytes = pixel
        self._buffer, self._streams = buffer, mode == 2
        self._pictures = self._recorded.pictures(*size)
        self._began, self._done, self._row = None, False, None

    def divide(self, divider: int) -> None:
        """Slow the clock of the sensor down."""
        self._divider = divider + 1

    def start(self) -> None:
        """Begin a picture."""
        self._began, self._done, self._row, self._seen = self._board.now, False, None, 0
        self.rows = self.overflows = 0
        silent = NAME in self._recorded.silent or not self._height
        picture = None if silent else next(self._pictures, None)
        self._awaits = picture is None
        if picture is None:
            return
        self.delivered += 1
        self._board.news()
        self._encoded = [encoded(row, self._format, self._bytes) for row in picture]

    @property
    def _row_us(self) -> float:
        return _FRAME_US * self._divider / self._height

    def _catch_up(self) -> None:
        """Deliver the rows whose time has come."""
        if self._began is None or self._awaits:
            return
        due = min(self._height, steps(self._board.now - self._began, self._row_us))
        for row in range(self._seen, due):
            if not self._streams:
                continue
            if self._row is not None:
                self.overflows += 1
                continue
            self._row = self._buffer + self.rows % 2 * len(self._encoded[row])
            self._board.store(self._row, self._encoded[row])
            self.rows += 1
        self._seen = due
        if due == self._height:
            if not self._streams:
                self._board.store(self._buffer, b"".join(self._encoded))
                self.rows = due
            self._began, self._done = None, True

    def next_us(self) -> float:
        """Return how long a program that sleeps waits for the next row or picture."""
        self._looks = 0
        return self._rest_us()

    def _rest_us(self) -> float:
        self._catch_up()
        if self._began is None:
            return NEVER
        if self._awaits:
            self._missed()
            return NEVER
        rows = self._seen + 1 if self._streams else self._height
        return max(0.0, self._began + rows * self._row_us - self._board.now)

    def done(self) -> bool:
        """Whether a picture is over; otherwise time passes, unless a row waits to be taken."""
        self._catch_up()
        self._passed_over += self._row is not None
        if self._row is not None and self._passed_over <= _PASSED_OVER:
            return False  # the end comes a while after the last row
        if not self._done:
            self._wait()
        return self._done

    def row(self) -> int:
        """Return the address of the row that is there; 0 if none is, and time passes."""
        self._catch_up()
        self._passed_over = 0
        if self._row is None and not self._done:
            self._wait()
            return 0
        return self._row or 0

    def release(self) -> None:
        """Give the row back: the next one may come."""
        self._catch_up()
        self._row = None

    def _wait(self) -> None:
        """Let time pass, because the program looks again and again."""
        self._looks += 1
        if self._looks > _FREE_LOOKS:
            self._board.pass_time(min(self._rest_us(), PATIENCE_US) + 1)

    def _missed(self) -> None:
        if NAME not in self._recorded.silent and self._height:
            self._board.is_over(NAME)


def encoded(row: Picture, form: int, size: int) -> bytes:
    """Return pixels [column, RGB] as the camera's driver stores them, `size` bytes each."""
    red, green, blue = row.astype(np.uint16).T
    grey = (red * 77 + green * 150 + blue * 29) // 256
    if form == _RGB444:
        return bytes_of(red // 16 * 256 + green // 16 * 16 + blue // 16, ">u2")
    if form == _RGB565:
        return bytes_of(red // 8 * 2048 + green // 4 * 32 + blue // 8, ">u2")
    if form == _RGB888:
        reduced = np.stack([red // 8 * 8, green // 4 * 4, blue // 8 * 8], 1)
        return bytes_of(np.pad(reduced, ((0, 0), (0, size - 3))))
    if form == _YUV422:
        other = np.where(np.arange(len(row)) % 2, red, blue).astype(np.int64)
        colour = np.clip((other - grey) // 2 + 128, 0, 255)
        return bytes_of(np.stack([grey, colour], 1))
    return bytes_of(np.pad(grey[:, None], ((0, 0), (0, size - 1))))


def bytes_of(values: NDArray[Any], dtype: str = "u1") -> bytes:
    """Return whole numbers as bytes."""
    return bytes(values.astype(dtype).tobytes())

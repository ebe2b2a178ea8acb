"""What sensors deliver: recordings, or random data where there are none."""

from __future__ import annotations

from collections.abc import Callable, Iterator

import numpy as np
from numpy.typing import NDArray

from ai8xtools.emulator.errors import RecordingError
from ai8xtools.emulator.sensors.serial import Line
from ai8xtools.values import frozen

Picture = NDArray[np.uint8]
Samples = NDArray[np.int16]
_PICTURES = 10
_SECONDS = 3
_ROWS = 1000


@frozen
class Recorded:
    """Where the data of each sensor come from; None: random data.

    `camera` returns pictures [row, column, RGB] of a width and height, `microphone` samples of a
    rate in Hz, `series` rows of as many values as are asked for. `names` are those of files for
    messages, by option. A sensor in `silent` never delivers. `uart` is sent to the program over its
    UART, unless `line` is the other end of it.
    """

    camera: Callable[[int, int], Iterator[Picture]] | None = None
    microphone: Callable[[int], Samples] | None = None
    series: Callable[[int], Samples] | None = None
    silent: frozenset[str] = frozenset()
    uart: bytes = b""
    line: Line | None = None

    def pictures(self, width: int, height: int) -> Iterator[Picture]:
        """Return what the camera sees."""
        return (self.camera or _pictures)(width, height)

    def samples(self, rate: int) -> Samples:
        """Return what the microphone hears, and a second of silence."""
        heard = (self.microphone or _sound)(rate)
        return np.concatenate([heard, np.zeros(rate, np.int16)])

    def rows(self, count: int) -> Samples:
        """Return measurements [row, value] of so many values each."""
        rows = (self.series or _measurements)(count)
        if rows.shape[1] != count:
            raise RecordingError(
                "E872", f"the program reads {count} values at a time, the recording has "
                f"{rows.shape[1]} columns", "--series", "Name a file with a column for each value.",
            )  # fmt: skip
        return rows


def _random() -> np.random.Generator:
    return np.random.default_rng(1)


def _pictures(width: int, height: int) -> Iterator[Picture]:
    random = _random()
    for _ in range(_PICTURES):
        yield random.integers(0, 256, (height, width, 3), np.uint8)


def _sound(rate: int) -> Samples:
    return _random().integers(-8192, 8192, _SECONDS * rate, np.int16)


def _measurements(count: int) -> Samples:
    return _random().integers(-16384, 16384, (_ROWS, count), np.int16)

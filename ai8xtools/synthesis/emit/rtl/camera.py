"""The camera of an RTL simulation: the sample as levels of its pins, one line per sample.

Source: docs/rtl.md, "The camera".
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Literal

import numpy as np
from numpy.typing import NDArray

from ai8xtools.diagnostics import Diagnostic, Place
from ai8xtools.diagnostics.options import needs
from ai8xtools.synthesis.program import Program
from ai8xtools.values import frozen

Levels = NDArray[np.uint8]
"""Samples of the pins, [sample, 3]: vertical and horizontal signal, data."""

_WIDTHS = {888: 8, 555: 10, 565: 12}
"""Bits of data by format, as the interface counts them."""
_PIXELS_PER_WORD = 4
_BEFORE, _SYNCHRONIZATION, _BEHIND_IT, _AFTER = 10, 50, 20, 10
"""Samples without pixels, at the beginning, while a frame is announced, then, and at the end."""


@frozen
class Camera:
    """Where the camera's samples are stored, and how they are sent.

    `format` is 888 (a byte per channel), 555 or 565 (two bytes for three channels). `retrace` is
    the number of samples between rows, `period_ns` the time of a line of the file; `synchronous`
    sends one each `clocks_per_pixel` cycles instead. `use_fifo` moves the words through a ring
    buffer to the fast FIFO. `image` is the sample, [channel, row, column].
    """

    filename: str
    image: NDArray[np.int64]
    planar: bool
    format: Literal[555, 565, 888] = 888
    retrace: int = 5
    period_ns: int = 80
    clocks_per_pixel: int = 9
    synchronous: bool = False
    use_fifo: bool = False

    @property
    def channels(self) -> int:
        """Channels of the image."""
        return int(self.image.shape[0])

    @property
    def rows(self) -> int:
        """Rows of the image."""
        return int(self.image.shape[1])

    @property
    def columns(self) -> int:
        """Pixels of a row."""
        return int(self.image.shape[2])

    @property
    def data_width(self) -> int:
        """Data width of the interface in bits."""
        return _WIDTHS[self.format]


def camera_problems(camera: Camera, program: Program) -> Iterator[Diagnostic]:
    """Yield why the camera cannot feed the network."""
    if not program.fifo:
        yield needs("--input-csv", "--fifo")
    if camera.format != 888 and camera.channels != 3:
        yield Diagnostic(
            "E094",
            f"format {camera.format} is for 3 channels, the input has {camera.channels}",
            Place(option="--input-csv-format"),
            "Use format 888.",
        )
    if camera.planar and camera.use_fifo:
        yield Diagnostic(
            "E094",
            "the ring buffer passes whole pixels on, but the input is planar: its words are four "
            "pixels of a channel",
            Place(option="--input-fifo"),
            "Use 'data_format: HWC', or leave out --input-fifo.",
        )
    if camera.planar and camera.columns % _PIXELS_PER_WORD:
        yield Diagnostic(
            "E094",
            f"rows of {camera.columns} pixels are not whole words of {_PIXELS_PER_WORD} pixels",
            Place(option="--input-csv"),
            "Use 'data_format: HWC', or rows of a multiple of 4 pixels.",
        )


def camera_lines(camera: Camera) -> str:
    """Return the text of the file: a head, then each sample as three lines of levels."""
    levels = np.concatenate([*_samples(camera)])
    lines = ["vsync,href,pclk,d"]
    for vertical, horizontal, data in levels.tolist():
        head, tail = f"{vertical},{horizontal}", f"{data:02x}"
        clocks = (0, 1, 1, 0, 0, 0) if horizontal else (0, 1, 1)
        lines += [f"{head},{clock},{tail}" for clock in clocks]
    return "\n".join(lines) + "\n"


def _samples(camera: Camera) -> Iterator[Levels]:
    yield _blank(_BEFORE)
    yield _blank(_SYNCHRONIZATION, vertical=1)
    yield _blank(_BEHIND_IT)
    for row in _bytes(camera):
        data = np.zeros((len(row), 3), np.uint8)
        data[:, 1] = 1
        data[:, 2] = row
        yield data
        yield _blank(camera.retrace)
    yield _blank(_AFTER)


def _blank(count: int, vertical: int = 0) -> Levels:
    levels = np.zeros((count, 3), np.uint8)
    levels[:, 0] = vertical
    return levels


def _bytes(camera: Camera) -> NDArray[np.uint8]:
    """Return the bytes of each row, [row, byte]."""
    pixels = (camera.image & 0xFF).transpose(1, 2, 0)  # [row, column, channel]
    if camera.format == 888:
        return pixels.reshape(camera.rows, -1).astype(np.uint8)
    red, green, blue = pixels[..., 0], pixels[..., 1], pixels[..., 2]
    if camera.format == 555:
        words = (red & 0xF8) << 7 | (green & 0xF8) << 2 | (blue & 0xF8) >> 3
    else:
        words = (red & 0xF8) << 8 | (green & 0xFC) << 3 | (blue & 0xF8) >> 3
    return np.stack([words >> 8, words & 0xFF], axis=-1).reshape(camera.rows, -1).astype(np.uint8)

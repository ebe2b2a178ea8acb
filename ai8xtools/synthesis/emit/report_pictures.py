"""Pictures of what layers compute, as PNG files in grey that a page can hold.

Source: W3C, Portable Network Graphics, sections 5 (chunks) and 9 (filter method 0, filter 0).
"""

from __future__ import annotations

import base64
import struct
import zlib
from collections.abc import Iterable

import numpy as np
from numpy.typing import NDArray

from ai8xtools.synthesis.report.values import LayerRow, Report
from ai8xtools.values import frozen

_BUDGET = 100_000
"""Pixels of all pictures of a page."""
_SIDE, _LEAST_SIDE = 28, 6
_MOST_MAPS = 16
_STRIP = 224
"""Pixels of a strip: channels of one value each, or series."""
_BORDER = 255
_WIDTH = 464
"""Pixels to which small pictures are enlarged."""


@frozen
class Picture:
    """Feature maps of a layer: `png` is base64 text, `shown` of `channels` channels are in it.

    `width` and `height` are those on the page; `reduced` means that pixels are means of values.
    """

    layer: int
    png: str
    width: int
    height: int
    shown: int
    channels: int
    reduced: bool


def pictures(report: Report) -> dict[int, Picture]:
    """Return a picture of every layer whose output is known, by layer.

    The more layers there are, the fewer channels and pixels each picture has.
    """
    layers = [layer for layer in report.layers if layer.result is not None]
    return dict(_pictures(layers, _BUDGET // max(1, len(layers))))


def _pictures(layers: Iterable[LayerRow], budget: int) -> Iterable[tuple[int, Picture]]:
    for layer in layers:
        assert layer.result is not None
        yield layer.index, picture_of(layer.index, layer.result.values, budget)


def picture_of(layer: int, values: NDArray[np.integer], budget: int) -> Picture:
    """Return a picture of values [channel, row, column], of about `budget` pixels at most."""
    shown, grey, reduced = _drawn(values, budget)
    encoded = base64.b64encode(png(grey)).decode("ascii")
    rows, columns = grey.shape
    zoom = max(1, min(_SIDE // rows, _WIDTH // columns))
    size = (zoom * columns, zoom * rows)
    return Picture(layer, encoded, *size, shown, len(values), reduced)


def _drawn(values: NDArray[np.integer], budget: int) -> tuple[int, NDArray[np.uint8], bool]:
    """Return how many channels are shown, the picture [row, column], white for the greatest value,
    and whether pixels are means."""
    channels, rows, columns = values.shape
    if rows == 1 or columns == 1:
        series = values.reshape(channels, rows * columns)
        if series.shape[1] == 1:
            series = series.reshape(1, channels)
        most = max(1, budget // min(series.shape[1], _STRIP))
        small = _reduced(series, min(most, _STRIP), _STRIP)
        return channels, _grey(small), small.size < series.size
    side = min(_SIDE, max(_LEAST_SIDE, int((budget // 2) ** 0.5)))
    count = min(channels, _MOST_MAPS, max(1, budget // (side * side)))
    maps = np.stack([_reduced(image, side, side) for image in values[:count]])
    return count, _tiled(_grey(maps)), maps[0].size < values[0].size


def _reduced(image: NDArray[np.integer], rows: int, columns: int) -> NDArray[np.float64]:
    """Return the means of blocks, so that at most these many rows and columns are left."""
    out = image.astype(np.float64)
    for axis, most in ((0, rows), (1, columns)):
        size = out.shape[axis]
        if size > most:
            starts = np.arange(most) * size // most
            lengths = np.diff(np.append(starts, size))
            sums = np.add.reduceat(out, starts, axis=axis)
            out = sums / (lengths[:, None] if axis == 0 else lengths[None, :])
    return out


def _grey(values: NDArray[np.float64]) -> NDArray[np.uint8]:
    """Scale values from least to greatest to 0 to 255."""
    low, high = values.min(), values.max()
    scaled: NDArray[np.float64] = (values - low) * (255 / (high - low) if high > low else 0)
    return np.rint(scaled).astype(np.uint8)


def _tiled(maps: NDArray[np.uint8]) -> NDArray[np.uint8]:
    """Put images [image, row, column] side by side with a border of one pixel."""
    count, rows, columns = maps.shape
    out = np.full((rows, count * (columns + 1) - 1), _BORDER, np.uint8)
    for number, image in enumerate(maps):
        left = number * (columns + 1)
        out[:, left : left + columns] = image
    return out


def png(grey: NDArray[np.uint8]) -> bytes:
    """Return an image [row, column] as a PNG file of 8 bits grey."""
    rows, columns = grey.shape
    lines = np.concatenate([np.zeros((rows, 1), np.uint8), grey], axis=1)
    head = struct.pack(">2I5B", columns, rows, 8, 0, 0, 0, 0)
    data = zlib.compress(lines.tobytes(), 9)
    chunks = ((b"IHDR", head), (b"IDAT", data), (b"IEND", b""))
    return b"\x89PNG\r\n\x1a\n" + b"".join(_chunk(kind, body) for kind, body in chunks)


def _chunk(kind: bytes, body: bytes) -> bytes:
    """Return a chunk with its length and checksum."""
    return struct.pack(">I", len(body)) + kind + body + struct.pack(">I", zlib.crc32(kind + body))

"""Tables of numbers as text with commas, formatted in bulk.

Numbers stand right-aligned in fields of equal width first; the spaces are dropped at the end.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence

import numpy as np
from numpy.typing import NDArray

Cells = NDArray[np.uint8]
"""One field of characters for each number: [number, place]."""

_SPACE, _COMMA, _NEWLINE = b" ,\n"
_HEXADECIMAL = np.frombuffer(b"0123456789abcdef", np.uint8)


def hexadecimal_cells(values: NDArray[np.int64]) -> Cells:
    """Return the hexadecimal digits of numbers from 0 on, without leading zeros."""
    places = max(1, -(-int(values.max(initial=0)).bit_length() // 4))
    shifts = 4 * np.arange(places - 1, -1, -1)
    cells: Cells = _HEXADECIMAL[values[:, None] >> shifts & 0xF]
    cells[:, :-1][values[:, None] >> shifts[:-1] == 0] = _SPACE
    return cells


def formatted_cells(values: NDArray[np.int64], number_format: Callable[[int], str]) -> Cells:
    """Return numbers in a format; made once for each number that occurs."""
    numbers, places = np.unique(values, return_inverse=True)
    texts = [number_format(number) for number in numbers.tolist()]
    width = max(map(len, texts), default=1)
    fields = "".join(text.rjust(width) for text in texts).encode("ascii")
    return np.frombuffer(fields, np.uint8).reshape(-1, width)[places.reshape(-1)]


def constant_cells(text: str, count: int) -> Cells:
    """Return the same text for every line."""
    return np.broadcast_to(np.frombuffer(text.encode("ascii"), np.uint8), (count, len(text)))


def table(columns: Sequence[Cells]) -> bytes:
    """Return columns of fields as lines with commas between the fields."""
    count = len(columns[0])
    width = sum(cells.shape[1] + 1 for cells in columns)
    text = np.full((count, width), _COMMA, np.uint8)
    place = 0
    for cells in columns:
        text[:, place : place + cells.shape[1]] = cells
        place += cells.shape[1] + 1
    text[:, -1:] = _NEWLINE
    lines: bytes = text[text != _SPACE].tobytes()
    return lines


def matrices(cells: Cells, shape: tuple[int, int, int]) -> list[bytes]:
    """Return fields as matrices with commas: `shape` is (matrices, rows, columns)."""
    text = np.full((*shape, cells.shape[1] + 1), _COMMA, np.uint8)
    text[..., :-1] = cells.reshape(*shape, -1)
    text[:, :, -1, -1] = _NEWLINE
    return [matrix[matrix != _SPACE].tobytes() for matrix in text]

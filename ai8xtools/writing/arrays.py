"""Large arrays as text, formatted in bulk: C macros in hexadecimal, matrices in decimal."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

_ZERO, _MINUS, _SPACE, _NEWLINE = b"0- \n"


def macro_lines(values: NDArray[np.unsignedinteger], per_line: int) -> str:
    """Return the value lines of a macro that holds an array of unsigned numbers.

    Every line but the last ends with `, \\`, the last value is followed by ` \\`. The number of
    digits follows from the type (uint8: 2, uint32: 8).
    Source: docs/generated-project.md, "Arrays".
    """
    digits = 2 * values.itemsize
    big_endian = values.astype(values.dtype.newbyteorder(">"))
    numbers = np.frombuffer(big_endian.tobytes().hex().encode(), np.uint8).reshape(-1, digits)
    cells = np.empty((len(values), digits + 4), np.uint8)
    cells[:] = np.frombuffer(b"0x" + digits * b"0" + b", ", np.uint8)
    cells[:, 2:-2] = numbers
    whole = len(values) // per_line
    lines = np.empty((whole, per_line * cells.shape[1] + 4), np.uint8)
    lines[:, :2] = _SPACE
    lines[:, 2:-2] = cells[: whole * per_line].reshape(whole, per_line * cells.shape[1])
    lines[:, -2:] = np.frombuffer(b"\\\n", np.uint8)
    text: bytes = lines.tobytes()
    rest = cells[whole * per_line :]
    if len(rest):
        text += b"  " + rest.tobytes() + b"\\\n"
    return text.removesuffix(b", \\\n").decode("ascii") + " \\\n"


def matrix_lines(values: NDArray[np.integer]) -> str:
    """Return a matrix of integers [rows, columns], right-aligned, one row per line."""
    rows: int = len(values)
    if not values.size:
        return "\n" * rows
    text = decimal_cells(values.reshape(-1), spaces=1).reshape(rows, -1)
    text[:, -1] = _NEWLINE
    lines: bytes = text.tobytes()
    return lines.decode("ascii")


def decimal_cells(values: NDArray[np.integer], spaces: int = 0) -> NDArray[np.uint8]:
    """Return the digits of integers below 10^18, right-aligned: uint8 [number, place].

    Each number is followed by `spaces` spaces.
    """
    lowest, highest = int(values.min()), int(values.max())
    if highest - lowest >= len(values):
        return _digits(values, spaces)
    # Each number of the range once, then as often as it occurs
    table = _digits(np.arange(lowest, highest + 1), spaces)
    whole = table.view(f"V{table.shape[1]}")[:, 0]
    taken: NDArray[np.uint8] = whole[values.astype(np.intp) - lowest].view(np.uint8)
    return taken.reshape(len(values), -1)


def _digits(values: NDArray[np.integer], spaces: int) -> NDArray[np.uint8]:
    magnitude = np.abs(values.astype(np.int64))
    largest = int(magnitude.max())
    negative = values < 0
    places = len(str(largest)) + int(negative.any())
    if largest < 2**31:
        magnitude = magnitude.astype(np.uint32)  # divides several times faster
    cells = np.full((len(values), places + spaces), _SPACE, np.uint8)
    in_front = np.where(negative, np.uint8(_MINUS), np.uint8(_SPACE))
    for place in range(places - 1, -1, -1):
        rest = magnitude // 10
        digit = (magnitude - 10 * rest).astype(np.uint8) + np.uint8(_ZERO)
        if place < places - 1:
            ended = magnitude == 0
            digit[ended] = in_front[ended]
            in_front[ended] = _SPACE
        cells[:, place] = digit
        magnitude = rest
    return cells

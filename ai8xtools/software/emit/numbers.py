"""Arrays as lines of decimal numbers for macros of C."""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray

from ai8xtools.writing.arrays import decimal_cells

PER_LINE = 16


def lines_of(values: NDArray[Any]) -> str:
    """Return numbers with commas, 16 to a line, each line but the last continued."""
    numbers = values.astype(np.int64)
    text = decimal_cells(numbers, spaces=2)
    text[:, -2] = ord(",")
    whole = len(numbers) // PER_LINE
    lines = np.full((whole, PER_LINE * text.shape[1] + 2), ord(" "), np.uint8)
    lines[:, :-2] = text[: whole * PER_LINE].reshape(whole, PER_LINE * text.shape[1])
    lines[:, -2], lines[:, -1] = ord("\\"), ord("\n")
    content: bytes = lines.tobytes() + text[whole * PER_LINE :].tobytes()
    return content.decode("ascii").rstrip(" ,\\\n")

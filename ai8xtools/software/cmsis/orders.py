"""Orders of weights of fully connected layers: those of `arm_fully_connected_q7_opt` and `q15_opt`.

Rows stand in groups of four, whose columns take turns, so that one walk through memory serves four
outputs. Source: docs/cmsis-nn.md, "Functions".
"""

from __future__ import annotations

from typing import Any, TypeVar

import numpy as np
from numpy.typing import NDArray

_ROWS = 4
_Number = TypeVar("_Number", bound=np.generic)


def interleaved(matrix: NDArray[_Number], bits: int) -> NDArray[_Number]:
    """Return weights [output, input] in the order of `_opt`, flat.

    With 8 bits columns 1 to 4 of rows a to d stand as a1 b1 a3 b3 c1 d1 c3 d3 a2 b2 a4 b4 c2 d2 c4
    d4, with 16 bits columns 1 and 2 as a1 a2 b1 b2 c1 c2 d1 d2; columns that are left over as
    aN bN cN dN, rows that are left over as they are.
    """
    rows = len(matrix) // _ROWS * _ROWS
    parts = [_group(matrix[first : first + _ROWS], bits) for first in range(0, rows, _ROWS)]
    return np.concatenate([*parts, matrix[rows:].reshape(-1)])


def _group(four: NDArray[Any], bits: int) -> NDArray[Any]:
    """Return four rows."""
    step = 4 if bits == 8 else 2
    whole = four.shape[1] // step * step
    if bits == 8:  # row: pair, place in it; column: place of the pair, half
        blocks = four[:, :whole].reshape(2, 2, -1, 2, 2).transpose(2, 4, 0, 3, 1)
    else:
        blocks = four[:, :whole].reshape(_ROWS, -1, 2).transpose(1, 0, 2)
    return np.concatenate([blocks.reshape(-1), four[:, whole:].T.reshape(-1)])

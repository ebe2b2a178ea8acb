"""Where the results of a program are."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from ai8xtools.synthesis.program import Program


def delivered(program: Program) -> NDArray[np.int64]:
    """Return the addresses of the bytes that cnn_unload() of a program delivers."""
    parts = []
    for layer in program.unload:
        for piece in layer.pieces:
            pixels = piece.address + piece.stride_bytes * np.arange(layer.pixels)
            lanes = np.array(piece.lanes)
            if layer.width == 32:
                words = pixels[:, None] + 4 * lanes
                parts.append((words[..., None] + np.arange(4)).reshape(-1))
            else:
                parts.append((lanes[:, None] + pixels).reshape(-1))
    return np.concatenate(parts)

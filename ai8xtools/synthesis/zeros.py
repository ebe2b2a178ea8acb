"""Channels that are always zero, behind those of the weights: they fill passes.

What reads them has weights of zero for them; what passes them on leaves them zero.
Source: docs/placement.md, "Layers that are added or merged".
"""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
from numpy.typing import NDArray

Mask = NDArray[np.bool_]
"""Which channels are not zero."""

BINARY = -1
_ONE = 64
"""Of 128, with a shift by one: the value that leaves data as it is."""


def whole(channels: int) -> Mask:
    """Return the mask of channels of which none is always zero."""
    return np.ones(channels, dtype=bool)


def channels_read(parts: Sequence[Mask], *, combined: bool) -> Mask:
    """Return the mask of what a layer reads of its sources, joined or combined."""
    return parts[0] if combined or len(parts) == 1 else np.concatenate(parts)


def spread_weights(
    weights: NDArray[np.int8], read: Mask, zero_outputs: int, bits: int, *, depthwise: bool
) -> NDArray[np.int8]:
    """Return weights [out, in/groups, rows, columns] for channels of which some are zero.

    `read` is the mask of the channels, or of all values where they are flattened. Weights for
    other counts of channels stay as they are. Binary weights have no zero: what is zero is then
    multiplied by one.
    """
    fill = 1 if bits == BINARY else 0
    if depthwise:
        if len(weights) != np.count_nonzero(read):
            return weights
        spread = np.full((len(read), *weights.shape[1:]), fill, np.int8)
        spread[read] = weights
        return spread
    outs, ins = weights.shape[:2]
    if ins != np.count_nonzero(read):
        return weights
    spread = np.full((outs + zero_outputs, len(read), *weights.shape[2:]), 0, np.int8)
    spread[:outs, ~read] = fill
    spread[:outs, read] = weights
    return spread


def spread_bias(
    bias: NDArray[np.int64] | None, read: Mask, zero_outputs: int, *, depthwise: bool
) -> NDArray[np.int64] | None:
    """Return a bias with zeros for the outputs that are zero."""
    if bias is None:
        return None
    if not depthwise:
        return np.concatenate([bias, np.zeros(zero_outputs, np.int64)])
    if len(bias) != np.count_nonzero(read):
        return bias
    spread = np.zeros(len(read), np.int64)
    spread[read] = bias
    return spread


def copying_weights(
    channels: int, copied: tuple[int, int], zero_outputs: int, bits: int
) -> NDArray[np.int8]:
    """Return 1x1 kernels that copy channels, `copied` from a first one on a number of them.

    With `COPYING_SHIFT` the result is exactly the data, whatever the width.
    """
    first, count = copied
    kernels = np.zeros((count + zero_outputs, channels, 1, 1), np.int8)
    kernels[range(count), range(first, first + count)] = _ONE >> 8 - bits
    return kernels


COPYING_SHIFT = 1
"""Beside the shift that narrow weights need."""

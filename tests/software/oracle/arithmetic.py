"""Arithmetic of rows in Python: what the kernels in C compute, with sums of 64 bits."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
from numpy.typing import NDArray

from ai8xtools.software.graph import Convolution, Int64, Pool, PoolKind
from ai8xtools.synthesis.network import Combination

Bytes = NDArray[np.int8]


def sums_of_row(
    step: Convolution, rows: Sequence[Bytes | None], first: int, count: int, start: int = 0
) -> NDArray[np.int8] | NDArray[np.int32]:
    """Return results before pooling, [column, filter], of `count` columns from column `first` on.

    `rows` are the bytes of those under the kernel from input column `start` on; None: zeros.
    """
    total = np.tile(step.start, (count, 1))
    weights = step.weights.astype(np.int64)
    for number, data in enumerate(rows):
        if data is None:
            continue
        pixels = data.astype(np.int64).reshape(-1, step.channels)
        wide = _spread(step, pixels, first, count, start)
        for tap in range(step.kernel[1]):
            some = wide[tap * step.dilation :: step.stride[1]][:count]
            total += _products(some, weights[:, :, number, tap], step)
    return finished(total, step)


def _spread(step: Convolution, row: Int64, first: int, count: int, start: int) -> Int64:
    """Return a row [column, channel] with zeros between its pixels and around them."""
    reach = (step.kernel[1] - 1) * step.dilation
    wide = np.zeros(((count - 1) * step.stride[1] + 1 + reach, row.shape[1]), np.int64)
    places = (np.arange(len(row)) + start) * step.spread[1] + step.pad[1] - first * step.stride[1]
    inside = (places >= 0) & (places < len(wide))
    wide[places[inside]] = row[inside]
    return wide


def _products(data: Int64, weights: Int64, step: Convolution) -> Int64:
    """Return what one tap adds: data [column, channel], weights [filter, channel of the group]."""
    grouped = data.reshape(len(data), step.groups, -1)
    filters = weights.reshape(step.groups, -1, weights.shape[1])
    found: Int64 = np.einsum("xgi,gfi->xgf", grouped, filters).reshape(len(data), -1)
    return found


def finished(total: Int64, step: Convolution) -> NDArray[np.int8] | NDArray[np.int32]:
    """Shift, limit and narrow sums."""
    if step.wide:
        if step.limited:
            total = np.abs(total) if step.absolute else total
            total = total.clip(step.low, 127)
        return total.astype(np.int32)
    total = total >> step.right if step.right >= 0 else total.clip(-128, 127) << -step.right
    total = np.abs(total) if step.absolute else total
    return total.clip(step.low, 127).astype(np.int8)


def mean(sums: Int64, pool: Pool) -> Int64:
    """Return the averages of sums over the window of a pooling."""
    count = pool.window[0] * pool.window[1]
    size = np.abs(sums)
    rounded = pool.kind is PoolKind.ROUNDED
    size = (2 * size + count) // (2 * count) if rounded else size // count
    found: Int64 = (np.sign(sums) * size).clip(-128, 127)
    return found


def joined(join: Combination, rows: Sequence[Bytes]) -> Int64:
    """Return operands combined from left to right and clipped."""
    wide = [row.astype(np.int64) for row in rows]
    function = {
        Combination.ADD: np.add,
        Combination.SUB: np.subtract,
        Combination.OR: np.bitwise_or,
        Combination.XOR: np.bitwise_xor,
    }[join]
    total: Int64 = wide[0]
    for row in wide[1:]:
        total = function(total, row)
    limited: Int64 = total.clip(-128, 127)
    return limited

"""Maximum and average pooling, and decimation.

Source: docs/hardware/arithmetic.md, "Pooling".
"""

from __future__ import annotations

from collections.abc import Callable

import numpy as np

from ai8xtools.synthesis.network import Pooling, Size, Tensor


def pool(data: Tensor, pooling: Pooling, size: Size, *, rounding: bool) -> Tensor:
    """Pool `data` [channel, row, column] to `size` (rows, columns).

    Without a window every stride-th value is kept. The average is truncated toward zero, or with
    `rounding` rounded to nearest with halves away from zero.
    """
    if not pooling.active:
        return _decimate(data, pooling.stride, (0, 0), size)
    if not pooling.average:
        return window(data, pooling, size, np.maximum)
    total = window(data, pooling, size, np.add)
    count = pooling.window[0] * pooling.window[1]
    # 256 values of 8 bits sum to at most 2^15: int64 is exact.
    magnitude = np.abs(total)
    quotient = (2 * magnitude + count) // (2 * count) if rounding else magnitude // count
    averaged: Tensor = np.sign(total) * quotient
    return averaged.clip(-128, 127)


def _decimate(data: Tensor, stride: Size, start: Size, size: Size) -> Tensor:
    rows = slice(start[0], start[0] + (size[0] - 1) * stride[0] + 1, stride[0])
    columns = slice(start[1], start[1] + (size[1] - 1) * stride[1] + 1, stride[1])
    return data[:, rows, columns]


def window(
    data: Tensor, pooling: Pooling, size: Size, combine: Callable[[Tensor, Tensor], Tensor]
) -> Tensor:
    """Combine the taps of each window of `data` [channel, row, column, ...], along columns first
    and then along rows."""
    rows = data.shape[1]
    narrow = _decimate(data, (1, pooling.stride[1]), (0, 0), (rows, size[1]))
    for tap in range(1, pooling.window[1]):
        start = (0, tap * pooling.dilation[1])
        part = _decimate(data, (1, pooling.stride[1]), start, (rows, size[1]))
        narrow = combine(narrow, part)
    result = _decimate(narrow, (pooling.stride[0], 1), (0, 0), size)
    for tap in range(1, pooling.window[0]):
        start = (tap * pooling.dilation[0], 0)
        result = combine(result, _decimate(narrow, (pooling.stride[0], 1), start, size))
    return result

"""Maximum and average pooling, and decimation.

Source: docs/hardware/arithmetic.md, "Pooling".
"""

from __future__ import annotations

from ai8xtools.integers.kernels import Windows, averages, maxima
from ai8xtools.synthesis.network import Pooling, Size, Tensor


def pool(data: Tensor, pooling: Pooling, size: Size, *, rounding: bool) -> Tensor:
    """Pool `data` [channel, row, column] to `size` (rows, columns).

    Without a window every stride-th value is kept. The average is truncated toward zero, or with
    `rounding` rounded to nearest with halves away from zero.
    """
    windows = windows_of(pooling, size)
    if pooling.active and pooling.average:
        return averages(data, windows, rounds=rounding).clip(-128, 127)
    return maxima(data, windows)


def windows_of(pooling: Pooling, size: Size) -> Windows:
    """Return the windows of pooling to `size` (rows, columns)."""
    return Windows(size, pooling.window, pooling.stride, dilation=pooling.dilation)

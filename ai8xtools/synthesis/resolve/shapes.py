"""Sizes: what pooling and the operator make of an image.

All sizes are (rows, columns).
Source: docs/hardware/execution.md, "Quantities of a layer"; docs/hardware/arithmetic.md, "Sums of
products" and "Pooling".
"""

from __future__ import annotations

from typing import assert_never

from ai8xtools.synthesis.network import Operator, Pooling, Size


def pooled_size(size: Size, pooling: Pooling) -> Size:
    """Return the size after pooling or decimation; incomplete windows at the edges are dropped."""
    rows, columns = (
        (length - (window - 1) * dilation - 1) // stride + 1
        for length, window, stride, dilation in zip(
            size, pooling.window, pooling.stride, pooling.dilation, strict=True
        )
    )
    return rows, columns


def output_size(
    size: Size,
    operator: Operator,
    kernel: Size,
    pad: Size,
    stride: Size,
    dilation: int,
    output_pad: int,
) -> Size:
    """Return the size after the operator, from the pooled size."""

    def transposed(axis: int) -> int:
        stretched = (size[axis] - 1) * stride[axis] - 2 * pad[axis]
        return stretched + dilation * (kernel[axis] - 1) + output_pad + 1

    def ordinary(axis: int) -> int:
        last = size[axis] + 2 * pad[axis] - dilation * (kernel[axis] - 1) - 1
        return last // stride[axis] + 1

    match operator:
        case Operator.NONE | Operator.CONV2D | Operator.LINEAR:
            return ordinary(0), ordinary(1)
        case Operator.CONV1D:
            return ordinary(0), 1
        case Operator.CONVTRANSPOSE2D:
            return transposed(0), transposed(1)
        case _:
            assert_never(operator)

"""Convolutions, element-wise combinations, scaling and activations, exact in integers.

Source: docs/hardware/arithmetic.md.
"""

from __future__ import annotations

from collections.abc import Sequence
from functools import reduce
from typing import assert_never

import numpy as np

from ai8xtools.integers.kernels import Windows, convolved, rounded_shift
from ai8xtools.synthesis.network import Activation, Combination, Layer, Operator, Tensor
from device.chip import BIAS_UNIT


def combine(operands: Sequence[Tensor], combination: Combination) -> Tensor:
    """Combine the operands from left to right in full width and clip once to 8 bits."""
    total: Tensor = reduce(_pairwise(combination), operands)
    return total.clip(-128, 127)


def _pairwise(combination: Combination) -> np.ufunc:
    """Return what makes one of two operands."""
    match combination:
        case Combination.ADD:
            return np.add
        case Combination.SUB:
            return np.subtract
        case Combination.OR:
            return np.bitwise_or
        case Combination.XOR:
            return np.bitwise_xor
        case _:
            assert_never(combination)


def accumulate(data: Tensor, layer: Layer) -> Tensor:
    """Return the layer's sums [out channel, row, column] without bias.

    `data` is [channel, row, column], already pooled and flattened.
    """
    weights, taps = layer.weights, (layer.dilation, layer.dilation)
    if weights is None:  # bypassed: every kernel is one
        shape = (layer.out_channels, layer.flat_channels // layer.groups, *layer.kernel)
        weights = np.ones(shape, np.int8)
    kernel = (int(weights.shape[2]), int(weights.shape[3]))
    match layer.operator:
        case Operator.CONV1D | Operator.CONV2D | Operator.LINEAR:
            windows = Windows.covering(data.shape, kernel, layer.stride, layer.pad, taps)
        case Operator.CONVTRANSPOSE2D:
            rows, columns = (
                layer.dilation * (k - 1) - p for k, p in zip(kernel, layer.pad, strict=True)
            )
            windows = Windows.covering(
                data.shape, kernel, (1, 1), (rows, columns), taps, layer.stride,
                (layer.output_pad,) * 2,
            )  # fmt: skip
        case Operator.NONE:
            raise ValueError(f"{layer} passes data through, there is nothing to add up")
        case _:
            assert_never(layer.operator)
    sums: Tensor = convolved(data[None], weights, windows, layer.groups)[0]
    return sums


def scale(sums: Tensor, layer: Layer) -> Tensor:
    """Shift the sums and round half up; those of a 32-bit layer stay."""
    if layer.output_width == 32:
        return sums
    right = 7 - layer.shift
    return rounded_shift(sums, right) if right > 0 else sums << -right


def clip(scaled: Tensor, layer: Layer) -> Tensor:
    """Clip to 8 bits; the sums of a 32-bit layer stay."""
    return scaled.clip(-128, 127) if layer.output_width == 8 else scaled


def activate(values: Tensor, layer: Layer) -> Tensor:
    """Apply the activation; it limits 32-bit values to 0 to 127 too."""
    match layer.activation:
        case None:
            return values
        case Activation.RELU:
            return values.clip(0, 127)
        case Activation.ABS:
            return np.abs(values).clip(0, 127)
        case _:
            assert_never(layer.activation)


def add_bias(sums: Tensor, layer: Layer) -> Tensor:
    """Add the bias in its unit."""
    if layer.bias is None:
        return sums
    return sums + BIAS_UNIT * layer.bias[:, None, None]

"""Convolutions, element-wise combinations, scaling and activations, exact in integers.

Source: docs/hardware/arithmetic.md.
"""

from __future__ import annotations

from collections.abc import Sequence
from functools import reduce
from typing import Any, assert_never

import numpy as np
from numpy.typing import NDArray

from ai8xtools.synthesis.network import Activation, Combination, Layer, Operator, Size, Tensor
from device.chip import BIAS_UNIT

_FLOAT32_EXACT = 1 << 24
_DATA_MAGNITUDE = 128


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


def accumulate(data: Tensor, layer: Layer, magnitude: int = _DATA_MAGNITUDE) -> Tensor:
    """Return the layer's sums [out channel, row, column] without bias.

    `data` is [channel, row, column], already pooled and flattened; no value exceeds `magnitude`,
    which is that of 8 bits.
    """
    weights, taps = layer.weights, layer.dilation
    if weights is None:  # bypassed: every kernel is one
        shape = (layer.out_channels, layer.flat_channels // layer.groups, *layer.kernel)
        weights = np.ones(shape, np.int8)
    match layer.operator:
        case Operator.CONV1D | Operator.CONV2D | Operator.LINEAR:
            padded = np.pad(data, ((0, 0), *((border, border) for border in layer.pad)))
            return _convolve(padded, weights, layer.stride, taps, layer.groups, magnitude)
        case Operator.CONVTRANSPOSE2D:
            stretched = _stretch(data, layer)
            return _convolve(stretched, weights, (1, 1), taps, layer.groups, magnitude)
        case Operator.NONE:
            raise ValueError(f"{layer} passes data through, there is nothing to add up")
        case _:
            assert_never(layer.operator)


def _stretch(data: Tensor, layer: Layer) -> Tensor:
    """Spread the image with zeros between the pixels and pad it, as a transposed one needs."""
    channels, rows, columns = data.shape
    reach = [layer.dilation * (k - 1) for k in layer.kernel]
    before = [r - p for r, p in zip(reach, layer.pad, strict=True)]
    stretched = [(n - 1) * s + 1 for n, s in zip((rows, columns), layer.stride, strict=True)]
    wide = np.zeros((channels, *stretched), data.dtype)
    wide[:, :: layer.stride[0], :: layer.stride[1]] = data
    added = [(max(b, 0), max(b + layer.output_pad, 0)) for b in before]
    padded = np.pad(wide, ((0, 0), *added))
    row, column = (max(-b, 0) for b in before)
    height, width = (n + 2 * b + layer.output_pad for n, b in zip(stretched, before, strict=True))
    return padded[:, row : row + height, column : column + width]


def _convolve(
    data: Tensor,
    weights: NDArray[np.int8],
    stride: Size,
    dilation: int,
    groups: int,
    magnitude: int,
) -> Tensor:
    """Correlate `data` with `weights` [out, in/groups, rows, columns]."""
    out, ins, kernel_rows, kernel_columns = weights.shape
    down, across = stride
    height = data.shape[1] - dilation * (kernel_rows - 1)
    width = data.shape[2] - dilation * (kernel_columns - 1)
    rows, columns = -(-height // down), -(-width // across)
    # A sum of products stays below the largest |weight| sum times the largest |value|; every
    # partial sum too, whatever the order. Within 2^24 (2^53) float32 (float64) holds it exactly;
    # more would take more weights than any memory has.
    bound = int(np.abs(weights.astype(np.int64)).sum(axis=(1, 2, 3)).max()) * magnitude
    kind: type[np.float32] | type[np.float64]
    kind = np.float32 if bound <= _FLOAT32_EXACT else np.float64
    image: NDArray[Any] = data.astype(kind)
    kernels: NDArray[Any] = weights.astype(kind)
    result = np.empty((out, rows * columns), kind)
    per_group = out // groups
    for group in range(groups):
        mine = slice(group * per_group, (group + 1) * per_group)
        part = image[group * ins : (group + 1) * ins]
        total = np.zeros((per_group, rows * columns), kind)
        for i in range(kernel_rows):
            for j in range(kernel_columns):
                top, left = i * dilation, j * dilation
                tap = part[:, top : top + height : down, left : left + width : across]
                total += kernels[mine, :, i, j] @ tap.reshape(ins, -1)
        result[mine] = total
    return result.astype(np.int64).reshape(out, rows, columns)


def scale(sums: Tensor, layer: Layer) -> Tensor:
    """Shift the sums and round half up; those of a 32-bit layer stay."""
    if layer.output_width == 32:
        return sums
    right = 7 - layer.shift
    return (sums + (1 << right - 1)) >> right if right > 0 else sums << -right


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

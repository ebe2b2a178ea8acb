"""The arithmetic of a layer on whole images, exact.

Values are int32 unless said otherwise: activations have 8 bits, sums of at most 1024 channels and 9
taps stay below 2^28.
Source: docs/hardware/arithmetic.md.
"""

from __future__ import annotations

from typing import Any, assert_never

import numpy as np
from numpy.typing import NDArray

from emulator.decode.config import (
    ActivationFunction,
    ElementwiseOperation,
    Input,
    LayerConfig,
    Output,
)

Values = NDArray[np.int32]
Floats = NDArray[np.floating[Any]]
Sums = NDArray[np.int64]

_PRODUCT_LIMIT = 2**14  # |a·b| <= 2^14 for 8-bit a and b
_FLOAT32_EXACT = 2**24  # integers up to here are exact in float32


def prepare(operands: Values, config: LayerConfig, *, rounding: bool) -> Values:
    """Pool and combine the operands [operand, channel, row, column] to one image.

    `rounding`: average pooling rounds to nearest; Conv1d layers ignore it.
    """
    inputs = config.input
    rounding = rounding and not config.conv1d
    if inputs.operands == 1:
        return _pooled(operands[0], inputs, rounding)
    if inputs.pool_first:
        return _combined(_pooled(operands, inputs, rounding), inputs.operation)
    return _pooled(_combined(operands, inputs.operation), inputs, rounding)


def convolve(image: Values, kernels: Sums, config: LayerConfig) -> Sums:
    """Sum over channels and taps.

    `image` [channel, row, column]; `kernels` [output, channel, row, column], or for a depth-wise
    layer [channel, row, column]. Returns int64 [output, row, column].
    """
    if config.transposed:
        image = _stretched(image)
    rows, columns = config.output_size
    pad = config.input.pad
    padded = np.pad(image, ((0, 0), (pad[0], pad[0]), (pad[1], pad[1])))
    if not config.kind.sums_channels:
        sums = np.zeros((len(image), rows, columns), np.int64)
        for i, j in np.ndindex(kernels.shape[-2:]):
            sums += padded[:, i : i + rows, j : j + columns] * kernels[:, i, j, None, None]
        return sums
    # Every partial sum is an integer below terms·2^14, exact in the type chosen here
    terms = int(np.prod(kernels.shape[1:]))
    kind = np.dtype(np.float32 if terms * _PRODUCT_LIMIT <= _FLOAT32_EXACT else np.float64)
    values: Floats = padded.astype(kind)
    factors: Floats = kernels.astype(kind)
    result: Floats = np.zeros((len(kernels), rows * columns), kind)
    for i, j in np.ndindex(kernels.shape[-2:]):
        window = values[:, i : i + rows, j : j + columns].reshape(len(image), -1)
        result += factors[:, :, i, j] @ window
    return result.astype(np.int64).reshape(len(kernels), rows, columns)


def finish(sums: Sums, output: Output) -> Sums:
    """Scale, round, clip and activate; 32-bit output is neither scaled nor clipped."""
    if not output.wide:
        if output.shift <= 6:
            sums = (sums + (1 << 6 - output.shift)) >> 7 - output.shift
        else:
            sums = sums << output.shift - 7
        sums = np.clip(sums, -128, 127)
    match output.activation:
        case ActivationFunction.NONE:
            return sums
        case ActivationFunction.RELU:
            return np.clip(sums, 0, 127)
        case ActivationFunction.ABS:
            return np.minimum(np.abs(sums), 127)
        case _:
            assert_never(output.activation)


def _combined(operands: Values, operation: ElementwiseOperation) -> Values:
    """Combine from the first operand to the last; only the end result is clipped."""
    result: Values = operands[0]
    for operand in operands[1:]:
        result = _combination(result, operand, operation)
    return np.clip(result, -128, 127).astype(np.int32)


def _combination(first: Values, second: Values, operation: ElementwiseOperation) -> Values:
    match operation:
        case ElementwiseOperation.SUB:
            return first - second
        case ElementwiseOperation.ADD:
            return first + second
        case ElementwiseOperation.OR:
            return np.bitwise_or(first, second)
        case ElementwiseOperation.XOR:
            return np.bitwise_xor(first, second)
        case _:
            assert_never(operation)


def _pooled(image: Values, inputs: Input, rounding: bool) -> Values:
    """Pool or sub-sample the last two axes."""
    rows, columns = inputs.pooled
    step = inputs.stride

    def window(i: int, j: int) -> Values:
        top, left = i * inputs.pool_dilation[0], j * inputs.pool_dilation[1]
        return image[
            ...,
            top : top + (rows - 1) * step + 1 : step,
            left : left + (columns - 1) * step + 1 : step,
        ]

    if not inputs.pooling:
        return window(0, 0)
    windows = [window(i, j) for i, j in np.ndindex(inputs.pool)]
    result: Values
    if inputs.max_pool:
        result = np.maximum.reduce(windows)
        return result
    sums: Values = np.add.reduce(windows)
    size = len(windows)
    # Away from zero at halves if rounding, else toward zero
    magnitude = (2 * np.abs(sums) + size) // (2 * size) if rounding else np.abs(sums) // size
    result = np.sign(sums) * magnitude
    return result


def _stretched(image: Values) -> Values:
    """Place the values at even positions of an image of twice the size."""
    channels, rows, columns = image.shape
    result = np.zeros((channels, 2 * rows, 2 * columns), image.dtype)
    result[:, ::2, ::2] = image
    return result

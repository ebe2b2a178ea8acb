"""The arithmetic of a layer on whole images, exact, for any number of inputs at once.

The last axis of every array counts the inputs. Activations have 8 bits and are int32; sums are
floats that hold integers, in a type in which none of them is rounded (`exact_type`).
Source: docs/hardware/arithmetic.md.
"""

from __future__ import annotations

from typing import Any, assert_never

import numpy as np
from numpy.typing import NDArray

from ai8xtools.emulator.decode.config import (
    ActivationFunction,
    ElementwiseOperation,
    Input,
    LayerConfig,
    Output,
)
from ai8xtools.values import frozen

Values = NDArray[np.signedinteger[Any]]
Integers = NDArray[np.int64]
Floats = NDArray[np.floating[Any]]

_LARGEST_VALUE = 2**7  # of an activation, by magnitude
_FLOAT32_EXACT = 2**24  # integers up to here are exact in float32, in float64 up to 2^53
SHIFT_UNIT = 7
"""An output without shift is the sum divided by 2 to the power of this."""
_BLOCK_BYTES = 2**25  # of values that are laid out for one multiplication of matrices


@frozen
class LayerParameters:
    """Kernels and biases of a layer, in a type in which everything is exact.

    `kernels` [output, channel, row, column], of a depth-wise layer [channel, row, column]; `bias`
    [output] in units of the sums.
    """

    kernels: Floats
    bias: Floats


def exact_type(
    magnitudes: Integers, bias: Integers, output: Output
) -> type[np.float32] | type[np.float64]:
    """Return a type in which a layer's sums are exact, whatever the order of the additions.

    `magnitudes` [output] are the sums of the kernels' magnitudes, `bias` [output] counts in units
    of the sums. An activation is at most 2^7 by magnitude, so every partial sum is at most 2^7
    times the kernel's sum of magnitudes; bias, and the half that rounds, are added. The kernel
    memory has less than 2^22 bytes, so that all is below 2^53.
    """
    largest = _LARGEST_VALUE * int(magnitudes.max(initial=0)) + int(np.abs(bias).max(initial=0))
    largest += 2 ** max(SHIFT_UNIT - 1 - output.shift, 0)
    return np.float32 if largest <= _FLOAT32_EXACT else np.float64


def operate(image: Values, config: LayerConfig, parameters: LayerParameters | None) -> Floats:
    """Return what a layer writes, integers [output, row, column, input].

    `image` [channel, row, column, input] is pooled; `parameters` is None for a layer that passes
    its input through.
    """
    if parameters is None:
        return image.astype(np.float32)
    sums = convolve(image, parameters.kernels, config)
    sums += parameters.bias[:, None, None, None]
    return finish(sums, config.output)


def prepare(operands: Values, config: LayerConfig, *, rounding: bool) -> Values:
    """Pool and combine operands [operand, channel, row, column, input] to one image each.

    `rounding`: average pooling rounds to nearest; Conv1d layers ignore it.
    """
    inputs = config.input
    rounding = rounding and not config.conv1d
    if inputs.operands == 1:
        return _pooled(operands[0], inputs, rounding)
    if inputs.pool_first:
        return _combined(_pooled(operands, inputs, rounding), inputs.operation)
    return _pooled(_combined(operands, inputs.operation), inputs, rounding)


def convolve(image: Values, kernels: Floats, config: LayerConfig) -> Floats:
    """Sum over channels and taps.

    `image` [channel, row, column, input]; `kernels` [output, channel, row, column], or for a
    depth-wise layer [channel, row, column], in a type in which all is exact. Returns
    [output, row, column, input] of this type.
    """
    values: Floats = padded(image, config).astype(kernels.dtype)
    if config.kind.sums_channels:
        return _summed(values, kernels, config.output_size)
    rows, columns = config.output_size
    sums: Floats = np.zeros((len(image), rows, columns, image.shape[-1]), kernels.dtype)
    for i, j in np.ndindex(kernels.shape[-2:]):
        sums += values[:, i : i + rows, j : j + columns] * kernels[:, i, j, None, None, None]
    return sums


def padded(image: Values, config: LayerConfig) -> Values:
    """Return the image on which the kernels lie: stretched if transposed, with its padding."""
    if config.transposed:
        image = _stretched(image)
    rows, columns = config.input.pad
    return np.asarray(np.pad(image, ((0, 0), (rows, rows), (columns, columns), (0, 0))))


def _summed(values: Floats, kernels: Floats, size: tuple[int, int]) -> Floats:
    """Multiply matrices of kernels and of the windows below them, some rows at a time."""
    rows, columns = size
    channels, count = len(values), values.shape[-1]
    taps = kernels.shape[-2:]
    factors = kernels.reshape(len(kernels), -1)
    result: Floats = np.empty((len(kernels), rows, columns, count), kernels.dtype)
    row_bytes = max(1, factors.shape[1] * columns * count * kernels.itemsize)
    step = max(1, _BLOCK_BYTES // row_bytes)
    for first in range(0, rows, step):
        some = min(step, rows - first)
        windows: Floats = np.empty((channels, *taps, some, columns, count), kernels.dtype)
        for i, j in np.ndindex(*taps):
            windows[:, i, j] = values[:, first + i : first + i + some, j : j + columns]
        product = factors @ windows.reshape(factors.shape[1], -1)
        result[:, first : first + some] = product.reshape(-1, some, columns, count)
    return result


def finish(sums: Floats, output: Output) -> Floats:
    """Scale, round, clip and activate; 32-bit output is neither scaled nor clipped.

    Divisions are by powers of two, so that they are exact in floating point as well.
    """
    if not output.wide:
        bits = SHIFT_UNIT - output.shift
        half = 2.0 ** (bits - 1) if bits > 0 else 0.0
        sums = np.floor((sums + sums.dtype.type(half)) * sums.dtype.type(2.0**-bits))
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


def pooling_places(inputs: Input) -> list[tuple[Any, ...]]:
    """Return which pixels [..., row, column, input] stand at each place of the windows."""
    step = inputs.stride
    corners = np.ndindex(inputs.pool) if inputs.pooling else [(0, 0)]
    starts = [(i * inputs.pool_dilation[0], j * inputs.pool_dilation[1]) for i, j in corners]
    rows, columns = ((count - 1) * step + 1 for count in inputs.pooled)
    return [
        (..., slice(top, top + rows, step), slice(left, left + columns, step), slice(None))
        for top, left in starts
    ]


def _pooled(image: Values, inputs: Input, rounding: bool) -> Values:
    """Pool or sub-sample rows and columns, the axes before the last."""
    windows: list[Values] = [image[place] for place in pooling_places(inputs)]
    if not inputs.pooling:
        return windows[0]
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
    channels, rows, columns, count = image.shape
    result = np.zeros((channels, 2 * rows, 2 * columns, count), image.dtype)
    result[:, ::2, ::2] = image
    return result

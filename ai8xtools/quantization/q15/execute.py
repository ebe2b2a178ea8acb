"""A network in integers, exactly as its C computes: sums of 32 bits, shifts, saturation.

Sums are formed with float64, whose integers are exact up to 2^53; `checked_size` proves that.
Source: docs/q15.md, "Arithmetic".
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import assert_never

import numpy as np
from numpy.lib.stride_tricks import sliding_window_view

from ai8xtools.quantization.formats import Float64s, Int64s, limits, to_fixed
from ai8xtools.quantization.q15.formats import QuantizedLayer
from ai8xtools.quantization.q15.graph import (
    Add,
    Clip,
    Concat,
    Constant,
    Enlarge,
    Flatten,
    Gather,
    Multiply,
    Pair,
    Pool,
    Table,
    Weighted,
)
from ai8xtools.quantization.q15.network import QuantizedNetwork

_EXACT = 1 << 53
_SUM = 1 << 31
_CHUNK_VALUES = 1 << 22


def quantize_input(network: QuantizedNetwork, samples: Float64s) -> Int64s:
    """Return inputs [N, C, H, W] as integers [N, H, W, C]."""
    return to_fixed(samples.transpose(0, 2, 3, 1), network.fractions[0], network.bits)


def execute(
    network: QuantizedNetwork,
    samples: Int64s,
    seen: Callable[[Weighted, Int64s], None] | None = None,
) -> list[Int64s]:
    """Return all maps [N, H, W, C] for inputs [N, H, W, C], by their numbers.

    Maps that no step makes are empty. `seen` is called with the sums of each weighted step before
    they wrap around, [N, H, W, C].
    """
    maps: list[Int64s] = [np.zeros(0, np.int64)] * len(network.graph.shapes)
    maps[0] = samples
    for step in network.graph.steps:
        inputs = [maps[source] for source in step.sources]
        match step:
            case Weighted():
                layer = network.layers[step.target]
                sums = weighted_sums(step, layer, maps[step.source])
                if seen is not None:
                    seen(step, sums)
                result = finish(sums, layer.formats.out_rshift, network.bits)
            case Pool():
                result = pooled(step, maps[step.source])
            case Clip():
                result = np.clip(maps[step.source], *network.limits_of(step))
            case Add():
                result = _added(inputs, network.bits)
            case Enlarge():
                rows, columns = step.factor
                result = maps[step.source].repeat(rows, axis=1).repeat(columns, axis=2)
            case Gather():
                result = maps[step.source][:, step.rows][:, :, step.columns]
            case Flatten():
                axes = (0, *(3 if axis == 0 else axis for axis in step.order))
                result = maps[step.source].transpose(axes).reshape(len(samples), 1, 1, -1)
            case Concat():
                result = np.concatenate(inputs, axis=3)
            case Table():
                result = looked_up(network.arrays[step.target], maps[step.source], network.bits)
            case Multiply():
                shift = network.shift_of(step)
                products = inputs[0] * inputs[1] + ((1 << shift) >> 1)
                result = np.clip(products >> shift, *limits(network.bits))
            case Constant():
                values = network.arrays[step.target]
                result = np.broadcast_to(values, (len(samples), *values.shape))
            case _:
                assert_never(step)
        maps[step.target] = result
    return maps


def weighted_sums(step: Weighted, layer: QuantizedLayer, data: Int64s) -> Int64s:
    """Return the sums of a weighted step, bias and rounding included, before they wrap around."""
    formats = layer.formats
    start = (layer.bias << formats.bias_lshift) + ((1 << formats.out_rshift) >> 1)
    if step.linear:
        matrix = layer.weights.reshape(len(layer.weights), -1)
        checked_size(matrix.shape[1])
        flat = data.reshape(len(data), matrix.shape[1]).astype(np.float64) @ matrix.T.astype(
            np.float64
        )
        return flat.astype(np.int64)[:, None, None] + start
    data = _padded(_spread(data, step), step.padding, 0)
    windows = _windows(data, step.kernel, step.stride)
    if step.depthwise:
        kernels = layer.weights[..., 0]  # [channel, row, column]
        products: Int64s = np.einsum("nyxcij,cij->nyxc", windows, kernels)
        return products + start
    channels, filters = step.weights.shape[1], len(step.weights) // step.groups
    groups = [
        _convolved(windows[:, :, :, one * channels :][:, :, :, :channels],
                   layer.weights[one * filters :][:filters])
        for one in range(step.groups)
    ]  # fmt: skip
    return np.concatenate(groups, axis=3) + start


def _spread(data: Int64s, step: Weighted) -> Int64s:
    """Return maps with the zeros of a transposed convolution between and behind their pixels."""
    if step.spread == (1, 1) and step.extra == (0, 0):
        return data
    count, rows, columns, channels = data.shape
    size = ((n - 1) * s + 1 + e
            for n, s, e in zip((rows, columns), step.spread, step.extra, strict=True))  # fmt: skip
    wide = np.zeros((count, *size, channels), np.int64)
    wide[:, :: step.spread[0], :: step.spread[1]][:, :rows, :columns] = data
    return wide


def checked_size(products: int) -> None:
    """Raise ValueError if the sum of so many products may leave the integers of float64."""
    if products << MAX_PRODUCT_BITS >= _EXACT:
        raise ValueError(f"a sum of {products} products is not exact")


MAX_PRODUCT_BITS = 30


def _convolved(windows: Int64s, weights: Int64s) -> Int64s:
    """Multiply windows [N, H, W, C, rows, columns] by weights [O, rows, columns, C]."""
    count, height, width = windows.shape[:3]
    matrix = weights.transpose(3, 1, 2, 0).reshape(-1, len(weights)).astype(np.float64)
    checked_size(len(matrix))
    per_image = max(height * width * len(matrix), 1)
    step = max(_CHUNK_VALUES // per_image, 1)
    parts = [
        windows[first : first + step].astype(np.float64).reshape(-1, len(matrix)) @ matrix
        for first in range(0, count, step)
    ]
    products = np.concatenate(parts).astype(np.int64)
    return products.reshape(count, height, width, len(weights))


def wrapped(sums: Int64s) -> Int64s:
    """Return sums as 32 bits hold them."""
    results: Int64s = (sums + _SUM) % (2 * _SUM) - _SUM
    return results


def finish(sums: Int64s, out_rshift: int, bits: int) -> Int64s:
    """Return the results of sums: wrapped to 32 bits, shifted, saturated."""
    results: Int64s = np.clip(wrapped(sums) >> out_rshift, *limits(bits))
    return results


def looked_up(table: Int64s, data: Int64s, bits: int) -> Int64s:
    """Return what a table makes of data: straight lines between its points of 16 bits."""
    if bits == 8:
        return table[data + 128]
    shift = 16 - (len(table) - 1).bit_length() + 1
    at, rest = (data + 32768) >> shift, data & ((1 << shift) - 1)
    steps = (table[at + 1] - table[at]) * rest + (1 << (shift - 1))
    results: Int64s = table[at] + (steps >> shift)
    return results


def pooled(step: Pool, data: Int64s) -> Int64s:
    """Return pooled maps; averages are truncated toward zero and leave the border out."""
    lowest = 0 if step.average else -(1 << 62)
    _, rows, columns, channels = data.shape
    ends = [max((m - 1) * s + w - n - p, 0) for m, s, w, n, p in zip(
        step.size((channels, rows, columns)), step.stride, step.window, (rows, columns),
        step.padding, strict=True)]  # fmt: skip
    windows = _windows(_padded(data, step.padding, lowest, ends), step.window, step.stride)
    if not step.average:
        largest: Int64s = windows.max(axis=(4, 5))
        return largest
    ones = np.ones((1, *data.shape[1:3], 1), np.int64)
    counts = _windows(_padded(ones, step.padding, 0, ends), step.window, step.stride).sum((4, 5))
    sums = windows.sum(axis=(4, 5))
    means: Int64s = np.sign(sums) * (np.abs(sums) // counts)
    return means


def _added(operands: Sequence[Int64s], bits: int) -> Int64s:
    """Return a sum that saturates after each operand."""
    total = operands[0]
    for operand in operands[1:]:
        total = np.clip(total + operand, *limits(bits))
    return total


def _padded(data: Int64s, padding: Pair, value: int, ends: Sequence[int] | None = None) -> Int64s:
    """Return maps with a border, of other widths at the `ends` of rows and columns if stated."""
    border = ((0, 0), *zip(padding, ends or padding, strict=True), (0, 0))
    if not any(map(any, border)):
        return data
    return np.pad(data, border, constant_values=value)


def _windows(data: Int64s, size: Pair, stride: Pair) -> Int64s:
    """Return the windows of maps [N, H, W, C] as [N, rows, columns, C, size]."""
    windows: Int64s = sliding_window_view(data, size, axis=(1, 2))
    return windows[:, :: stride[0], :: stride[1]]

"""Sums of products of convolutions and fully connected layers, with groups, on numpy arrays."""

from __future__ import annotations

from typing import Any, TypeAlias

import numpy as np
from numpy.typing import NDArray

from ai8xtools.software.container.records import LayerRecord, Tensor

Int64: TypeAlias = NDArray[np.int64]
_Values: TypeAlias = NDArray[Any]


def sums_of(layer: LayerRecord, data: _Values, weights: _Values, output: Tensor) -> _Values:
    """Return the sums [row, column, filter], of the type of the arguments.

    `data` is [row, column, channel], `weights` [filter, row, column, channel of the group]. The
    caller has made sure that no sum leaves the type.
    """
    assert layer.sums is not None
    if layer.sums.full:
        return (weights.reshape(len(weights), -1) @ data.reshape(-1)).reshape(output.shape)
    stride, apart = layer.stride, (1, 1)
    if layer.sums.transposed:
        stride, apart = apart, stride
    wide = _canvas(layer, data, output, stride, apart)
    total = np.zeros((output.rows, output.columns, output.channels), data.dtype)
    for row in range(layer.kernel_rows):
        for column in range(layer.kernel_columns):
            top, left = row * layer.dilation_rows, column * layer.dilation_columns
            taps = wide[top :: stride[0], left :: stride[1]][: output.rows, : output.columns]
            total += _products(taps, weights[:, row, column], layer.groups)
    return total


def _canvas(
    layer: LayerRecord,
    data: _Values,
    output: Tensor,
    stride: tuple[int, int],
    apart: tuple[int, int],
) -> _Values:
    """Return the input within zeros, as far as windows reach, its pixels so far apart."""
    size = [
        (count - 1) * step + (kernel - 1) * dilation + 1
        for count, step, kernel, dilation in zip(
            (output.rows, output.columns), stride, layer.kernel, layer.dilation, strict=True
        )
    ]
    wide = np.zeros((*size, data.shape[2]), data.dtype)
    rows = np.arange(data.shape[0]) * apart[0] + layer.pad_rows
    columns = np.arange(data.shape[1]) * apart[1] + layer.pad_columns
    inside = rows < size[0], columns < size[1]
    wide[np.ix_(rows[inside[0]], columns[inside[1]])] = data[np.ix_(*inside)]
    return wide


def _products(taps: _Values, weights: _Values, groups: int) -> _Values:
    """Return the products of a tap: taps [row, column, channel], weights [filter, channel]."""
    rows, columns, _ = taps.shape
    if groups == 1:
        return (taps.reshape(rows * columns, -1) @ weights.T).reshape(rows, columns, -1)
    parts = taps.reshape(rows * columns, groups, -1)
    filters = weights.reshape(groups, -1, weights.shape[1])
    added: _Values = np.einsum("pgc,gfc->pgf", parts, filters).reshape(rows, columns, -1)
    return added

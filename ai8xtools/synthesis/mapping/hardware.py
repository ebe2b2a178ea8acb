"""What the hardware runs in place of an operator that it does not have.

Spread kernels of one dimension become longer kernels or two-dimensional ones, transposed
convolutions ordinary ones with another padding. None of this changes the numbers.
Source: docs/hardware/execution.md, "Substitutions".
"""

from __future__ import annotations

from dataclasses import replace
from typing import assert_never

import numpy as np
from numpy.typing import NDArray

from ai8xtools.synthesis.network import MAX_TAPS, Layer, Operator, Size
from ai8xtools.values import frozen
from device.channels import passes


@frozen
class Hardware:
    """The layer as the hardware runs it; differs from the description where it is emulated.

    `weights` is int8 [output channel, input channel of the group, row, column], None without.
    `surplus_words` are written behind, `leading_bytes` in front of the valid output.
    """

    operator: Operator
    kernel: Size
    pad: Size
    in_dim: Size
    pooled_dim: Size
    out_dim: Size
    weights: NDArray[np.int8] | None
    surplus_words: int = 0
    leading_bytes: int = 0


def widened(layer: Layer) -> Layer:
    """Turn 1x1 kernels into 3x3 kernels with the weight in the centre: streaming needs rows."""
    wide = None
    if layer.weights is not None:
        wide = np.zeros((*layer.weights.shape[:2], 3, 3), np.int8)
        wide[:, :, 1, 1] = layer.weights[:, :, 0, 0]
    rows, columns = layer.pad
    return replace(layer, kernel=(3, 3), pad=(rows + 1, columns + 1), weights=wide)


def calcx4_order(weights: NDArray[np.int8]) -> NDArray[np.int8]:
    """Sort outputs 0, 4, 8, …, 1, 5, 9, …: four of them are calculated at a time."""
    return np.concatenate([weights[first::4] for first in range(4)])


def quad_order(weights: NDArray[np.int8], width: int) -> NDArray[np.int8]:
    """Sort outputs so that the bytes of `width`-bit weights rotate over four groups."""
    per_byte = 8 // width
    if per_byte == 1 or len(weights) % (4 * per_byte):
        return weights
    rest = weights.shape[1:]
    return weights.reshape(-1, per_byte, 4, *rest).swapaxes(1, 2).reshape(-1, *rest)


def hardware_for(layer: Layer, weights: NDArray[np.int8] | None) -> Hardware:
    """Return the operator, sizes and weights for the registers and the kernel memory.

    `weights` are the layer's in the order in which its outputs are stored.
    """
    operator, kernel, pad, dilation = layer.operator, layer.kernel, layer.pad, layer.dilation
    dims = (layer.in_dim, layer.pooled_dim, layer.out_dim)
    match operator:
        case Operator.CONVTRANSPOSE2D:
            rows, columns = (dilation * (k - 1) - p for k, p in zip(kernel, pad, strict=True))
            return Hardware(operator, kernel, (rows, columns), *dims, weights)
        case Operator.CONV1D:
            if dilation > 1 and kernel[0] > 1:
                if (kernel[0] - 1) * dilation < MAX_TAPS:
                    taps = (kernel[0] - 1) * dilation + 1
                    spread = _stretch(weights, taps, dilation)
                    return Hardware(operator, (taps, 1), pad, *dims, spread)
                if kernel[0] <= 3:
                    return _as_two_dimensional(layer, weights)
        case Operator.NONE | Operator.CONV2D | Operator.LINEAR:
            pass  # as it is
        case _:
            assert_never(operator)
    return Hardware(operator, kernel, pad, *dims, weights)


def _stretch(weights: NDArray[np.int8] | None, taps: int, dilation: int) -> NDArray[np.int8] | None:
    """Put zeros between the taps of a one-dimensional kernel."""
    if weights is None:
        return None
    longer = np.zeros((*weights.shape[:2], taps, 1), np.int8)
    longer[:, :, ::dilation] = weights
    return longer


def _as_two_dimensional(layer: Layer, weights: NDArray[np.int8] | None) -> Hardware:
    """Fold the samples into rows of `dilation` columns: taps then stand below each other.

    Rows of zeros around the image make the result longer than the valid output, at both ends for
    three taps.
    """
    taps, dilation = layer.kernel[0], layer.dilation
    size = (-(-layer.in_dim[0] // dilation), dilation)
    square = None
    if weights is not None:
        square = np.zeros((*weights.shape[:2], 3, 3), np.int8)
        square[:, :, 3 - taps :, 1] = weights[..., 0]
    return Hardware(
        Operator.CONV2D,
        (3, 3),
        (1, 1),
        size,
        size,
        size,
        square,
        surplus_words=size[0] * size[1] - layer.out_dim[0],
        leading_bytes=4 * dilation * passes(layer.out_channels) if taps == 3 else 0,
    )

"""Multiplications that the network needs, for `--debug`."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from ai8xtools.synthesis.mapping import MappedLayer


def needed_products(layer: MappedLayer) -> int:
    """Count the products of a weight and a value that a layer cannot leave out.

    Not counted: padding, the zeros that a transposed convolution puts between the pixels, taps
    that are zero in every kernel (1x1 kernels that run as 3x3), and kernels of ones (`bypass`).
    """
    if layer.weights is None:
        return 0
    rows, columns = (_reached(layer, axis) for axis in (0, 1))
    used = layer.weights.any(axis=(0, 1))
    out, ins, *_ = layer.weights.shape
    hits = int((np.outer(rows, columns) * used).sum())
    return hits * int(out * ins)


def _reached(layer: MappedLayer, axis: int) -> NDArray[np.int64]:
    """Return for each tap along an axis how many outputs it finds a pixel for."""
    count = 1 if layer.flatten else layer.pooled_dim[axis]
    taps = layer.dilation * np.arange(layer.kernel[axis])[:, None]
    steps, before = 1, layer.pad[axis]
    if layer.operator.transposed:
        steps, before = layer.stride[axis], int(taps[-1, 0]) - layer.pad[axis]
    position = np.arange(layer.out_dim[axis]) + taps - before
    inside = (position >= 0) & (position < steps * count) & (position % steps == 0)
    hits: NDArray[np.int64] = inside.sum(axis=1)
    return hits

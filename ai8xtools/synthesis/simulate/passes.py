"""The sums of a layer as they grow, pass by pass.

Source: docs/hardware/execution.md, "Quantities of a layer"; docs/hardware/memory.md, "Flattened
layers".
"""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from ai8xtools.synthesis.network import Layer, Tensor
from ai8xtools.synthesis.simulate.operators import accumulate

Sums = NDArray[np.int32]


def pass_sums(value: Tensor, layer: Layer, share: int) -> Sums:
    """Return the accumulators after each input pass, without bias: [pass, out, row, column].

    `value` is what reaches the operator, `share` the channels of a pass. A flattened layer has a
    pass for each pixel and for each share of its channels, in this order. Sums stay below 2^29.
    Source: docs/hardware/arithmetic.md, "Where overflow is impossible".
    """
    parts = (_flat_parts if layer.flatten else _channel_parts)(value, layer, share)
    return parts.cumsum(axis=0, dtype=np.int32)


def _channel_parts(value: Tensor, layer: Layer, share: int) -> Sums:
    parts = []
    for first in range(0, layer.in_channels, share):
        some = np.zeros_like(value)
        some[first : first + share] = value[first : first + share]
        parts.append(accumulate(some, layer).astype(np.int32))
    return np.stack(parts)


def _flat_parts(value: Tensor, layer: Layer, share: int) -> Sums:
    count = -(-layer.in_channels // share)
    pixels = layer.pooled_dim[0] * layer.pooled_dim[1]
    padded = count * share
    weights = np.ones((layer.out_channels, value.size), np.int8)
    if layer.weights is not None:
        weights = layer.weights.reshape(weights.shape)
    products = np.zeros((layer.out_channels, padded, pixels), np.int32)
    shape = (layer.out_channels, layer.in_channels, pixels)
    products[:, : layer.in_channels] = (weights * value.reshape(-1)).reshape(shape)
    passes = products.reshape(layer.out_channels, count, share, pixels)
    parts: Sums = passes.sum(axis=2, dtype=np.int32).transpose(2, 1, 0)
    return parts.reshape(-1, layer.out_channels, 1, 1)

"""Packing of weights for the kernels with the DSP extension of Armv7E-M."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from ai8xtools.software.graph import Convolution
from ai8xtools.software.kernels.registry import Core, Kernel, Packed

QUAD = 4
OFFSET = 128
"""What weights are made greater by so that they are not negative."""


def _quads(conv: Convolution) -> int:
    inputs: int = conv.weights[0].size
    return -(-inputs // QUAD)


def _suits(conv: Convolution, core: Core) -> bool:
    return core.simd and conv.groups == 1 and not conv.transposed


def whole_filters(conv: Convolution, filters: int, inputs: int) -> NDArray[np.int8]:
    """Return weights int8 [filter, input], zeros up to a multiple of `filters` and to `inputs`."""
    flat = conv.weights.transpose(0, 2, 3, 1).reshape(conv.filters, -1)
    return np.pad(flat, ((0, -conv.filters % filters), (0, inputs - flat.shape[1])))


def whole_quads(conv: Convolution) -> NDArray[np.int8]:
    """Return weights int8 [filter, input], zeros up to pairs of filters, fours of inputs."""
    return whole_filters(conv, 2, QUAD * _quads(conv))


def in_pairs(weights: NDArray[np.int8], pairs: int) -> NDArray[np.uint8]:
    """Order weights [filter, input] by `pairs` pairs of filters, four inputs, pair, then inputs
    0, 2, 1, 3.

    The weights of both filters of a pair follow each other, those of the first 128 greater.
    """
    split = weights.reshape(-1, pairs, 2, weights.shape[1] // QUAD, 2, 2)
    # group, pair, filter of the pair, quad, half, odd -> group, quad, pair, odd, half, filter
    values = np.ascontiguousarray(split.transpose(0, 3, 1, 5, 4, 2)).view(np.uint8)
    values[..., 0] += OFFSET
    return values.reshape(-1)


def _scratch_bytes(conv: Convolution) -> int:
    quads = _quads(conv)
    patch = 0 if conv.channels % QUAD == 0 else QUAD * quads
    return 4 * QUAD * quads + patch


DSP = Kernel(
    "nn_conv_dsp",
    "conv_dsp.c",
    _suits,
    lambda conv: Packed(in_pairs(whole_quads(conv), 1)),
    _scratch_bytes,
    pixels=2,
    sets=frozenset({"dsp"}),
)

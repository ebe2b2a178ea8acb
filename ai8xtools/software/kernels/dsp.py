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


def pack_pairs(conv: Convolution, pairs: int) -> Packed:
    """Order weights by `pairs` pairs of filters, four inputs, pair, then inputs 0, 2, 1, 3.

    The weights of both filters of a pair follow each other, those of the first 128 greater.
    """
    quads = _quads(conv)
    whole = whole_filters(conv, 2 * pairs, QUAD * quads).reshape(-1, pairs, 2, quads, 2, 2)
    # group, pair, filter of the pair, quad, half, odd -> group, quad, pair, odd, half, filter
    values = np.ascontiguousarray(whole.transpose(0, 3, 1, 5, 4, 2)).view(np.uint8)
    values[..., 0] += OFFSET
    return Packed(values.reshape(-1))


def _scratch_bytes(conv: Convolution) -> int:
    quads = _quads(conv)
    patch = 0 if conv.channels % QUAD == 0 else QUAD * quads
    return 4 * QUAD * quads + patch


DSP = Kernel(
    "nn_conv_dsp",
    "conv_dsp.c",
    _suits,
    lambda conv: pack_pairs(conv, 1),
    _scratch_bytes,
    pixels=2,
    sets=frozenset({"dsp"}),
)

"""Packing of weights for the kernels with the DSP extension of Armv7E-M."""

from __future__ import annotations

import numpy as np

from ai8xtools.software.graph import Convolution
from ai8xtools.software.kernels.registry import Core, Kernel, Packed

_QUAD = 4


def _quads(conv: Convolution) -> int:
    rows, columns = conv.kernel
    return -(-conv.channels * rows * columns // _QUAD)


def _suits(conv: Convolution, core: Core) -> bool:
    return core.simd and conv.groups == 1 and not conv.transposed


def _pack(conv: Convolution) -> Packed:
    """Order weights by pair of filters, four inputs, filter of the pair, input."""
    quads, pairs = _quads(conv), -(-conv.filters // 2)
    padded = np.zeros((2 * pairs, _QUAD * quads), np.int8)
    flat = conv.weights.transpose(0, 2, 3, 1).reshape(conv.filters, -1)
    padded[: conv.filters, : flat.shape[1]] = flat
    return Packed(padded.reshape(pairs, 2, quads, _QUAD).transpose(0, 2, 1, 3).reshape(-1).copy())


def _scratch_bytes(conv: Convolution) -> int:
    quads = _quads(conv)
    patch = 0 if conv.channels % _QUAD == 0 else _QUAD * quads
    return 4 * _QUAD * quads + patch


DSP = Kernel(
    "nn_conv_dsp", "conv_dsp.c", _suits, _pack, _scratch_bytes, pixels=2, sets=frozenset({"dsp"})
)

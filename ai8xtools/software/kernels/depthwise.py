"""Packing of weights for the kernel of depthwise convolutions."""

from __future__ import annotations

import numpy as np

from ai8xtools.software.graph import Convolution
from ai8xtools.software.kernels.registry import Core, Kernel, Packed


def _suits(conv: Convolution, _core: Core) -> bool:
    return conv.depthwise and not conv.transposed


def _pack(conv: Convolution) -> Packed:
    """Order weights by four channels, kernel row, kernel column, channel; zeros fill the end."""
    taps = conv.weights.reshape(conv.filters, -1)
    whole = np.pad(taps, ((0, -conv.filters % 4), (0, 0)))
    return Packed(whole.reshape(-1, 4, taps.shape[1]).transpose(0, 2, 1).reshape(-1))


def _scratch_bytes(conv: Convolution) -> int:
    """Two pointers for each place of the kernel, of 8 bytes on the desk."""
    return 16 * conv.kernel[0] * conv.kernel[1]


DEPTHWISE = Kernel("nn_depthwise", "depthwise.c", _suits, _pack, _scratch_bytes)

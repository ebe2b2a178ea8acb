"""Packing of weights for the kernel that adds up data in buckets instead of multiplying.

Source: docs/software.md, "Kernels".
"""

from __future__ import annotations

import numpy as np

from ai8xtools.software.graph import Convolution
from ai8xtools.software.kernels.registry import Core, Kernel, Packed, portable_order

_NIBBLE = range(-8, 8)


def _suits(conv: Convolution, core: Core) -> bool:
    return not core.multiplier and conv.groups == 1 and not conv.transposed


def _pack(conv: Convolution) -> Packed:
    """Order weights by filter, kernel row, kernel column, channel; count their nibbles."""
    narrow = conv.weights.min() in _NIBBLE and conv.weights.max() in _NIBBLE
    return Packed(portable_order(conv).values.view(np.uint8), 1 if narrow else 2)


def _scratch_bytes(conv: Convolution) -> int:
    return 4 * conv.channels * conv.kernel[0] * conv.kernel[1]


BUCKETS = Kernel(
    "nn_conv_nomul",
    "conv_nomul.c",
    _suits,
    _pack,
    _scratch_bytes,
    pixels=2,
    sets=frozenset({"nomul"}),
)

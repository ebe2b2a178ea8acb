"""Packing of weights for the kernels with Helium, the vectors of Armv8.1-M (MVE)."""

from __future__ import annotations

import numpy as np

from ai8xtools.software.graph import Convolution
from ai8xtools.software.kernels.lanes import input_bounds
from ai8xtools.software.kernels.pixel import patch_bytes
from ai8xtools.software.kernels.registry import Core, Kernel, Packed, portable_order

_FILTERS, _BLOCK = 4, 16
"""Filters, and channels of a depthwise convolution, that are computed at a time."""
_LANE = np.iinfo(np.int16)


def _suits(conv: Convolution, core: Core) -> bool:
    several = conv.filters >= _FILTERS and conv.groups == 1
    return core.helium and several and not conv.transposed


def _suits_depthwise(conv: Convolution, core: Core) -> bool:
    several = conv.filters >= _BLOCK and conv.depthwise and not conv.transposed
    usual = not conv.wide and not conv.absolute and conv.right >= 0
    return core.helium and several and usual


def _pack_depthwise(conv: Convolution) -> Packed:
    """Order weights by kernel row, kernel column, channel.

    `flush` is how many products of a channel, whichever they are, a sum of 16 bits can hold.
    """
    weights = conv.weights.reshape(conv.filters, -1).astype(np.int64)
    low, high = (
        side.reshape(-1, conv.filters).T for side in input_bounds(conv.input, weights.shape[1])
    )
    products = weights * low, weights * high
    most = np.sort(np.maximum(*products))[:, ::-1].cumsum(1)
    least = np.sort(np.minimum(*products)).cumsum(1)
    fit = (most <= _LANE.max) & (least >= _LANE.min)
    values = np.ascontiguousarray(conv.weights.reshape(conv.filters, -1).T).reshape(-1)
    return Packed(values, flush=int(fit.sum(1).min()))


MVE = Kernel(
    "nn_conv_mve", "conv_mve.c", _suits, portable_order, patch_bytes, sets=frozenset({"mve"}),
    helpers=("patch.c",),
)  # fmt: skip
DEPTHWISE_MVE = Kernel(
    "nn_depthwise_mve", "depthwise_mve.c", _suits_depthwise, _pack_depthwise,
    sets=frozenset({"mve"}),
)  # fmt: skip

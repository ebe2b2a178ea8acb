"""Packing of weights for kernels that compute one pixel: rows of a single column, linear layers.

There is no second pixel to share a word with, so filters do. Source: docs/software.md, "Kernels".
"""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from ai8xtools.software.graph import Convolution, Int64
from ai8xtools.software.kernels.dsp import OFFSET, QUAD, in_pairs, whole_filters, whole_quads
from ai8xtools.software.kernels.lanes import common_runs, input_bounds
from ai8xtools.software.kernels.registry import Core, Kernel, Packed


def _suits(conv: Convolution, core: Core) -> bool:
    single = conv.out_size[1] == 1 and conv.filters > QUAD // 2
    return core.multiplier and single and conv.groups == 1 and not conv.transposed


def _suits_dsp(conv: Convolution, core: Core) -> bool:
    return core.simd and _suits(conv, core)


def _pack(conv: Convolution) -> Packed:
    """Order weights by four filters: of each run its length and a word for each input, then 0.

    From the lowest byte, a word has the weights of the first filter, the third, the second and the
    fourth, each 128 greater.
    """
    inputs = conv.weights[0].size
    low, high = input_bounds(conv.input, conv.kernel[0] * conv.kernel[1])
    parts: list[NDArray[np.uint32]] = []
    for four in whole_filters(conv, QUAD, inputs).reshape(-1, QUAD, inputs):
        runs = common_runs(four, low, high)
        bytes_ = (four.astype(np.int64) + OFFSET).astype(np.uint32)
        words = bytes_[0] | bytes_[2] << 8 | bytes_[1] << 16 | bytes_[3] << 24
        begins = np.cumsum([0, *runs[:-1]])
        parts += [np.insert(words, begins, runs), np.zeros(1, np.uint32)]
    return Packed(np.concatenate(parts).astype(np.uint32))


def _pack_dsp(conv: Convolution) -> Packed:
    """Order weights by fours of filters, and by two if no more are left over."""
    whole = whole_quads(conv)
    groups = np.split(whole, range(QUAD, len(whole), QUAD))
    return Packed(np.concatenate([in_pairs(group, len(group) // 2) for group in groups]))


def _start_dsp(conv: Convolution) -> Int64:
    """Return what sums begin with, without what products of two neighboring weights of the second
    filter of a pair add to it, and with 256 times that for the first.
    """
    seconds = whole_quads(conv)[1::2].astype(np.int64)
    neighbors = (seconds[:, ::2] * seconds[:, 1::2]).sum(axis=1)
    both: Int64 = np.stack([256 * neighbors, -neighbors], axis=1).reshape(-1)
    start: Int64 = conv.start + both[: conv.filters]
    return start


def patch_bytes(conv: Convolution) -> int:
    """The patch under the kernel, which stands in the image already if it is a whole pixel."""
    in_place = conv.kernel == (1, 1) and conv.pad == (0, 0) and conv.channels % QUAD == 0
    return 0 if in_place else -(-conv.weights[0].size // QUAD) * QUAD


PIXEL = Kernel("nn_conv_pixel", "conv_pixel.c", _suits, _pack, patch_bytes, helpers=("patch.c",))
DSP_PIXEL = Kernel(
    "nn_conv_dsp_pixel", "conv_dsp_pixel.c", _suits_dsp, _pack_dsp,
    patch_bytes, sets=frozenset({"dsp"}), helpers=("patch.c",), start=_start_dsp,
)  # fmt: skip

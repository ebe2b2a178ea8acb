"""The table of all kernels, the fastest first, and the choice from it."""

from __future__ import annotations

from collections.abc import Sequence

from ai8xtools.software.graph import Convolution
from ai8xtools.software.kernels.depthwise import DEPTHWISE
from ai8xtools.software.kernels.dsp import DSP
from ai8xtools.software.kernels.lanes import LANES, SMALL_LANES
from ai8xtools.software.kernels.mve import DEPTHWISE_MVE, MVE
from ai8xtools.software.kernels.nomul import BUCKETS
from ai8xtools.software.kernels.pixel import DSP_PIXEL, PIXEL
from ai8xtools.software.kernels.registry import PORTABLE, Core, Kernel

_VECTORS = (MVE, DEPTHWISE_MVE)
_OTHERS: tuple[Kernel, ...] = (DEPTHWISE, DSP, SMALL_LANES, LANES, BUCKETS, PORTABLE)
IN_TILES = (*_VECTORS, *_OTHERS)
"""Kernels that compute any part of a layer."""
KERNELS = (*_VECTORS, DSP_PIXEL, PIXEL, *_OTHERS)


def choose(
    conv: Convolution,
    core: Core,
    sets: frozenset[str] | None = None,
    among: Sequence[Kernel] = KERNELS,
) -> Kernel:
    """Return the first kernel that can compute a convolution on a core.

    `sets` are those of --kernels; the portable kernels belong to all of them.
    """
    allowed = (k for k in among if sets is None or k.sets & sets or k is PORTABLE)
    return next(kernel for kernel in allowed if kernel.suits(conv, core))

"""The table of all kernels, the fastest first, and the choice from it."""

from __future__ import annotations

from collections.abc import Sequence

from software.graph import Convolution
from software.kernels.depthwise import DEPTHWISE
from software.kernels.dsp import DSP
from software.kernels.lanes import LANES, SMALL_LANES
from software.kernels.nomul import BUCKETS
from software.kernels.pixel import DSP_PIXEL, PIXEL
from software.kernels.registry import PORTABLE, Core, Kernel

IN_TILES: tuple[Kernel, ...] = (DEPTHWISE, DSP, SMALL_LANES, LANES, BUCKETS, PORTABLE)
"""Kernels that compute any part of a layer."""
KERNELS = (DEPTHWISE, DSP_PIXEL, PIXEL, *IN_TILES[1:])


def choose(
    conv: Convolution,
    core: Core,
    wanted: frozenset[str] | None = None,
    among: Sequence[Kernel] = KERNELS,
) -> Kernel:
    """Return the first kernel that can compute a convolution on a core.

    `wanted` are the sets of --kernels; the portable kernels belong to all of them.
    """
    allowed = (k for k in among if wanted is None or k.sets & wanted or k is PORTABLE)
    return next(kernel for kernel in allowed if kernel.suits(conv, core))

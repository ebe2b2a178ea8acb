"""Which kernel computes a convolution on a core: one row of the table for each kernel in C.

A kernel is a C function of the type `nn_kernel` (software/runtime/nn.h) in a file of its own. The
first row that suits is used, so fast kernels stand in front of general ones.
"""

from __future__ import annotations

from collections.abc import Callable

import numpy as np
from numpy.typing import NDArray

from ai8xtools.software.graph import Convolution, Int64
from ai8xtools.values import frozen


@frozen
class Core:
    """The features of a core that determine kernels.

    `simd`: it has the DSP instructions of Armv7E-M. `multiplier`: it multiplies in hardware.
    `helium`: it has the vectors of Armv8.1-M (MVE), of integers at least.
    """

    name: str
    simd: bool
    multiplier: bool
    helium: bool = False


@frozen
class Packed:
    """Weights in the order of a kernel: int8, uint8, int16, uint16 or uint32 [number].

    `flush` goes into the structure of the convolution; what it means is the kernel's. `runs` are
    those of the weights of all filters, if their lengths stand among the values.
    """

    values: NDArray[np.generic]
    flush: int = 0
    runs: int = 0


@frozen
class Kernel:
    """A kernel in C.

    `function` stands in `source`, a file of software/runtime. `suits` says whether it can compute a
    convolution on a core, `pack` orders the weights, `scratch_bytes` is the memory that it needs
    while it runs. `pixels`: it works on as many pixels of a row at a time; `sets` are those of
    --kernels that it belongs to. `helpers` are further files of software/runtime. `start` says what
    its sums begin with, modulo 2**32: that of the convolution for kernels of tiles.
    """

    function: str
    source: str
    suits: Callable[[Convolution, Core], bool]
    pack: Callable[[Convolution], Packed]
    scratch_bytes: Callable[[Convolution], int] = lambda _: 0
    pixels: int = 1
    sets: frozenset[str] = frozenset({"c"})
    helpers: tuple[str, ...] = ()
    start: Callable[[Convolution], Int64] = lambda conv: conv.start


def portable_order(conv: Convolution) -> Packed:
    """Order weights by filter, kernel row, kernel column and channel."""
    return Packed(np.ascontiguousarray(conv.weights.transpose(0, 2, 3, 1)).reshape(-1))


PORTABLE = Kernel("nn_conv_c", "conv_c.c", lambda _conv, _core: True, portable_order)

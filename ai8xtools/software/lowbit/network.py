"""A low-bit network: windows, convolutions or nothing in front of fully connected layers."""

from __future__ import annotations

from typing import Literal

import numpy as np
from numpy.typing import NDArray

from ai8xtools.quantization.lowbit import Encoding
from ai8xtools.values import frozen

IMAGE = 16
"""Rows and columns of the image that convolutions and windows work on."""
WINDOW = 8
"""Rows and columns of a window."""


@frozen
class Rule:
    """How the sums of a layer become the activations of the next one.

    `kind` is "shift", "max" (4 bits only) or "reciprocal" with factors of `bits` bits. `rounds`:
    half of the last place is added before it is dropped. `limit` is the greatest activation, 127 or
    15. The scale is that of the greatest sum of a token, or of `group` tokens in a row.
    """

    kind: Literal["shift", "max", "reciprocal"] = "shift"
    bits: int = 0
    rounds: bool = True
    limit: int = 127
    group: int = 1


@frozen
class Dense:
    """A fully connected layer without bias: packed codes, row after row.

    `identifier` numbers it in the header: `L<identifier>_weights`. `inputs` counts those that have
    codes, among them what fills the last word of a row.
    """

    identifier: int
    encoding: Encoding
    inputs: int
    outputs: int
    words: NDArray[np.unsignedinteger]


@frozen
class DepthwiseChain:
    """Three 3x3 convolutions of each channel by itself, on the image: int8 [channels, 3, 3].

    16x16, convolution 14x14, convolution 12x12, pooling 6x6, convolution 4x4, pooling 2x2. Sums
    below zero become zero, the others lose `shift` bits.
    """

    identifiers: tuple[int, int, int]
    kernels: tuple[NDArray[np.int8], NDArray[np.int8], NDArray[np.int8]]
    pools: tuple[int, int]
    shift: int = 4

    @property
    def channels(self) -> int:
        """Channels of every convolution."""
        return len(self.kernels[0])


@frozen
class Windows:
    """Windows of 8x8 pixels, `stride` apart, each through layers of its own or of all together.

    `layers` [layer][window]: one for each layer if they are shared.
    """

    stride: int
    layers: tuple[tuple[Dense, ...], ...]
    shared: bool

    @property
    def positions(self) -> tuple[tuple[int, int], ...]:
        """First row and column of each window."""
        steps = range(0, IMAGE - WINDOW + 1, self.stride)
        return tuple((row, column) for row in steps for column in steps)


@frozen
class LowBitNetwork:
    """What stands in front of the fully connected layers, these, and how sums become activations.

    With `fine` the levels of NF4 and NF2 are those for activations of four bits.
    """

    stem: DepthwiseChain | Windows | None
    layers: tuple[Dense, ...]
    rule: Rule
    window_rule: Rule
    fine: bool = False
    name: str = "model"

    @property
    def classes(self) -> int:
        """Number of outputs."""
        return self.layers[-1].outputs

    @property
    def inputs(self) -> int:
        """Number of input bytes."""
        return self.layers[0].inputs if self.stem is None else IMAGE * IMAGE

"""The content of an answer file.

Addresses are absolute bus addresses. Layers have the numbers of the hardware.
"""

from __future__ import annotations

from dataclasses import replace
from enum import Enum
from typing import assert_never

import numpy as np
from numpy.typing import NDArray

from ai8xtools.answer.hashes import BLOCK_WORDS, Hashes, line_hashes
from ai8xtools.values import frozen

Integers = NDArray[np.int64]

PHASES = (
    "cnn_enable",
    "cnn_init",
    "cnn_load_weights",
    "cnn_load_bias",
    "cnn_configure",
    "load_input",
    "cnn_start",
)
"""The functions of the generated C that write words, in the order of their calls."""


@frozen
class Registers:
    """Registers when the network starts: uint32 address and value, and the function's number.

    `phases` (uint8) counts the loader functions of the generated C, see `PHASES`.
    """

    addresses: NDArray[np.uint32]
    values: NDArray[np.uint32]
    phases: NDArray[np.uint8]


@frozen
class StoredBiases:
    """Bias memory: bytes (uint8) by their place (uint32: address of the word that holds one)."""

    addresses: NDArray[np.uint32]
    values: NDArray[np.uint8]


@frozen
class HashedWords:
    """Runs of words: uint32 address and count of each, and the hashes of their blocks.

    A run begins a block of its own. Kernels: the address is that of the first column, the count is
    in columns; in packed form the words are their bytes, big-endian, else four words per column.
    Input: words of data memory from the address on, or all words pushed into the FIFO there.
    """

    addresses: NDArray[np.uint32]
    counts: NDArray[np.uint32]
    hashes: Hashes


NO_WORDS = HashedWords(np.zeros(0, np.uint32), np.zeros(0, np.uint32), np.zeros(0, np.uint64))


class LayerForm(Enum):
    """How much of a layer's output the file contains."""

    FULL = "full"
    LINES = "lines"
    ROWS = "rows"
    CHANNELS = "channels"

    @property
    def kept(self) -> frozenset[str]:
        """The arrays that are kept: values, or hashes of rows (of channels), and of columns."""
        match self:
            case LayerForm.FULL:
                return frozenset({"values"})
            case LayerForm.LINES:
                return frozenset({"rows", "columns"})
            case LayerForm.ROWS | LayerForm.CHANNELS:
                return frozenset({"rows"})
            case _:
                assert_never(self)


@frozen
class LayerAnswer:
    """The output of a layer: shape (channels, rows, columns), and where it stands.

    `places` is int64 [channel, 3]: data memory instance (0 to 15), lane, word of the first pixel;
    the others follow every `step` words. 32-bit channels (`wide`) add the lane to the word.
    Of the values there is, by `form`: FULL `values` int64 [channel, row, column]; LINES `rows` and
    `columns`, uint32 hashes [channel, line] of the pixels as a grid `width` wide; ROWS these
    rows only; CHANNELS one hash per channel in `rows`.
    """

    number: int
    name: str
    shape: tuple[int, int, int]
    wide: bool
    is_output: bool
    step: int
    places: Integers
    form: LayerForm
    values: Integers | None = None
    rows: NDArray[np.uint32] | None = None
    columns: NDArray[np.uint32] | None = None

    @property
    def width(self) -> int:
        """Pixels in a line of the grid that is hashed."""
        return grid_width(self.shape)


@frozen
class Answer:
    """The words that a project writes before the network starts, and the outputs of its layers.

    `express` means that kernels are packed. `left_out` tells, for people, what cannot be known.
    Of a library beside which another network can be loaded there are its `symbol_prefix`, its
    `sample` (int8 [channel, row, column]) and the `flash_bytes` that it takes.
    """

    chip: str
    apb_base: int
    name: str
    express: bool
    registers: Registers
    biases: StoredBiases
    kernels: HashedWords
    inputs: HashedWords
    pushes: HashedWords
    layers: tuple[LayerAnswer, ...]
    left_out: tuple[str, ...] = ()
    symbol_prefix: str = ""
    sample: NDArray[np.int8] | None = None
    flash_bytes: int = 0

    def without_input(self) -> Answer:
        """Return the same, but for a program whose input may be any."""
        return replace(self, inputs=NO_WORDS, pushes=NO_WORDS)


def grid_width(shape: tuple[int, ...]) -> int:
    """Return the width of the grid in which the pixels of a channel are hashed.

    It is the width of the image; for a narrow image, the square root of its number of pixels.
    """
    _, rows, columns = shape
    if columns >= BLOCK_WORDS // 2 and rows >= BLOCK_WORDS // 2:
        return columns
    return max(1, int(np.ceil(np.sqrt(rows * columns))))


def as_grid(values: NDArray[np.integer], width: int) -> NDArray[np.int32]:
    """Return values [channel, row, column] as lines of `width` pixels, zeros at the end."""
    flat = values.reshape(len(values), -1)
    grid = np.zeros((len(flat), -(-flat.shape[1] // width) * width), np.int32)
    grid[:, : flat.shape[1]] = flat
    return grid.reshape(len(flat), -1, width)


def hashed_rows(values: NDArray[np.integer], width: int) -> NDArray[np.uint32]:
    """Return the hashes of the lines of each channel, [channel, line]."""
    return line_hashes(as_grid(values, width), 2)


def hashed_columns(values: NDArray[np.integer], width: int) -> NDArray[np.uint32]:
    """Return the hashes of the columns of each channel's grid, [channel, column]."""
    return line_hashes(as_grid(values, width), 1)


def hashed_channels(values: NDArray[np.integer]) -> NDArray[np.uint32]:
    """Return the hash of each channel, [channel, 1]."""
    return line_hashes(values.reshape(len(values), 1, -1), 2)

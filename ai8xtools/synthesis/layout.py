"""What is fixed about memory and processors, apart from what a network computes.

A description may fix all of it or none; None means: not fixed. `arrange` completes a layout.
Source: docs/hardware/memory.md; docs/network-description.md, "Global keys" and "Keys of a layer".
"""

from __future__ import annotations

import enum
from collections.abc import Mapping
from dataclasses import field
from typing import Literal, assert_never

from ai8xtools.synthesis.network import Size
from ai8xtools.values import frozen

LAYERS_WIDENED = 9
"""Only these first layers can stream or follow a streaming layer."""


class InputPort(enum.StrEnum):
    """How the sample reaches the first layer."""

    MEMORY = "memory"
    FIFO = "fifo"
    FAST_FIFO = "fast fifo"
    FAST_FIFO_QUAD = "fast fifo, all groups"

    @property
    def is_fifo(self) -> bool:
        """Whether words are pushed while the network runs."""
        match self:
            case InputPort.MEMORY:
                return False
            case InputPort.FIFO | InputPort.FAST_FIFO | InputPort.FAST_FIFO_QUAD:
                return True
            case _:
                assert_never(self)

    @property
    def is_fast(self) -> bool:
        """Whether the fast FIFO is used."""
        match self:
            case InputPort.FAST_FIFO | InputPort.FAST_FIFO_QUAD:
                return True
            case InputPort.MEMORY | InputPort.FIFO:
                return False
            case _:
                assert_never(self)

    @property
    def feeds_all_groups(self) -> bool:
        """Whether one word holds a pixel for the first processor of every group."""
        match self:
            case InputPort.FAST_FIFO_QUAD:
                return True
            case InputPort.MEMORY | InputPort.FIFO | InputPort.FAST_FIFO:
                return False
            case _:
                assert_never(self)


@frozen
class Progression:
    """Input words made from few: the first `words` repeat, each time `step` more, cut by `mask`."""

    words: int
    step: int
    mask: int


@frozen
class Delivery:
    """Data that `cnn_unload` copies instead of the output layers'."""

    processors: int
    channels: int
    dim: Size
    offset: int
    width: Literal[8, 32]
    write_gap: int


@frozen
class BufferLayout:
    """Where a rolling buffer stands: processors, and bytes from the start of a memory instance."""

    processors: int | None
    offset: int | None


@frozen(slots=False, kw_only=True)
class LayerLayout:
    """Where one layer reads and writes, and how the processors work on it; None: not fixed.

    Masks have a bit for each processor. Offsets are bytes from the start of a memory instance,
    gaps words between two of the data. `channels_first`: the input is CHW data, four pixels a word.
    `streaming`: rows are worked on as they arrive. `calcx4`, `read_ahead` and `tcalc` choose how
    sums are calculated. `bias_groups` may hold the bias, None means any. `snoop_layer` follows if a
    condition hits. `kernel_offset` is the first kernel column. `in_place`: the output may overwrite
    what the layer has read by then. `widened`: a 1x1 kernel is stored as 3x3, with zeros around it
    and more padding.
    """

    processors: int | None = None
    output_processors: int | None = None
    in_offset: int | None = None
    out_offset: int | None = None
    write_gap: int | None = None
    read_gap: int | None = None
    channels_first: bool | None = None
    streaming: bool | None = None
    calcx4: bool | None = None
    read_ahead: bool | None = None
    tcalc: bool | None = None
    bias_groups: tuple[int, ...] | None = None
    snoop_layer: int | None = None
    kernel_offset: int | None = None
    in_place: bool | None = None
    widened: bool | None = None


@frozen(slots=False, kw_only=True)
class Layout:
    """What is fixed about a network's layers (by index), its input and what it delivers.

    `input_parts` is the number of parts of rows in which the input is loaded, `progression` is how
    its words follow from the first ones. `allow_streaming` permits streaming from memory,
    `buffer_place` is where the rolling buffer stands. `deliveries` replace the output layers in
    `cnn_unload`; with `has_output_map` the description names the final output's processors apart.
    `reasons` are, by layer and key, why something was chosen. `snoop` holds the raw registers of
    conditional execution. `file_has_bias` also counts layers of the file that are not executed.
    """

    layers: Mapping[int, LayerLayout] = field(default_factory=dict)
    input_port: InputPort = InputPort.MEMORY
    input_parts: int = 1
    progression: Progression | None = None
    allow_streaming: bool = False
    buffer_place: BufferLayout | None = None
    deliveries: tuple[Delivery, ...] = ()
    has_output_map: bool = False
    snoop: tuple[int, ...] | None = None
    file_has_bias: bool = False
    reasons: Mapping[int, Mapping[str, str]] = field(default_factory=dict)

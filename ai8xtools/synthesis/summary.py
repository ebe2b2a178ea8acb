"""What comments, the log, reports and the debugging files say of a network.

`summarize` builds it, the modules of `emit` print it beside the `Program`, `report` draws it. No
word of the accelerator depends on it.
Source: docs/generated-project.md, "Files" and "The log"; docs/rtl.md.
"""

from __future__ import annotations

from dataclasses import field
from typing import TYPE_CHECKING

import numpy as np
from numpy.typing import NDArray

from ai8xtools.diagnostics import Place
from ai8xtools.values import frozen

if TYPE_CHECKING:
    from ai8xtools.synthesis.layer_data import LayerData


@frozen
class Operations:
    """Operation counts of a layer."""

    macc: int = 0
    comp: int = 0
    add: int = 0
    mul: int = 0
    bitwise: int = 0

    @property
    def total(self) -> int:
        """All operations together."""
        return self.macc + self.comp + self.add + self.mul + self.bitwise


@frozen
class LatencyTerms:
    """The estimate of a layer's cycles: quantities by name, and the summands.

    Each summand is (name, count, cycles): their products add up to the cycles of the layer,
    before the addition for streaming.
    """

    quantities: tuple[tuple[str, int], ...]
    summands: tuple[tuple[str, int, int], ...]

    @property
    def total(self) -> int:
        """Cycles of the layer."""
        return sum(count * cycles for _, count, cycles in self.summands)


@frozen
class LayerStatistics:
    """Cost of one layer; `cycles` is None where the chip's timing is not known."""

    index: int
    name: str | None
    operations: Operations
    cycles: int | None
    cycles_estimated: bool = False
    latency: LatencyTerms | None = None
    """How the cycles come about, where that was asked for."""
    products: int | None = None
    """Multiplications that cannot be left out, where they were counted."""
    place: Place = field(default_factory=Place)
    """Where the layer stands in the description."""
    estimate: int = 0
    """Cycles by the formula of chips whose timing is known, on the others too."""
    processors: int = 0
    """How many read."""


@frozen
class Statistics:
    """Cost of the network: operations, memory in bytes, cycles."""

    layers: tuple[LayerStatistics, ...]
    repeat: int
    weight_bytes: int
    weight_bytes_total: int
    bias_bytes: int
    bias_bytes_total: int
    startup_cycles: int


@frozen
class LayerLog:
    """What the verbose log says of one layer's data (all arrays int64, [channel, row, column])."""

    index: int
    title: str
    input: NDArray[np.int64]
    weights: NDArray[np.int64] | None
    bias: NDArray[np.int64] | None
    accumulator: NDArray[np.int64]
    output: NDArray[np.int64]
    unactivated: NDArray[np.int64] | None = None
    """The output before its activation, if it has one."""


@frozen
class Summary:
    """What is reported of a network and its simulation.

    `description` is the network in words, one line per layer, `input_text` the shape of its input;
    `configuration` lists (heading, rows of (name, value)) for the log; `kernel_map` is int16
    [processor, column] holding the layer that owns a column, or -1. `result` is what the
    simulation computed, int64 [channel, row, column].
    """

    description: tuple[str, ...]
    input_text: str
    statistics: Statistics
    configuration: tuple[tuple[str, tuple[tuple[str, str], ...]], ...]
    kernel_map: NDArray[np.int16]
    result: NDArray[np.int64]
    topology: str = ""
    """The executed layers in short, for the names of RTL simulation tests."""
    stream_ratio: float = 1.0
    """By how much streaming layers stretch the accesses to the FIFOs."""
    memory_log: tuple[str, ...] = ()
    """The data memory at each executed layer, one line each; for the verbose log."""
    layer_logs: tuple[LayerLog, ...] = ()
    """The data of the layers, for the verbose log."""
    layer_data: tuple[LayerData, ...] = ()
    """The data of the layers, for the files of the debugging options."""

    @property
    def last_layer(self) -> LayerStatistics:
        """The layer whose output is the result."""
        return self.statistics.layers[-1]

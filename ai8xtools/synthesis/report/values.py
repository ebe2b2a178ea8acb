"""The values of a report."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from ai8xtools.diagnostics import Diagnostic
from ai8xtools.synthesis.measured_energy import EnergyOptions
from ai8xtools.synthesis.memory import MemoryStep
from ai8xtools.values import frozen
from ai8xtools.values.accuracy import Measured
from ai8xtools.values.estimate import Estimate
from device import Chip
from device.energy import Energies


@frozen
class Usage:
    """Bytes (or other units) used out of a total."""

    used: int
    total: int

    @property
    def share(self) -> float:
        """Used part, 1 for all of it."""
        return self.used / self.total

    @property
    def fits(self) -> bool:
        """Whether there is enough."""
        return self.used <= self.total


@frozen
class Need:
    """What the network takes of one thing that the chip has: `title`, `use` and its `unit`."""

    title: str
    use: Usage
    unit: str = "bytes"


@frozen
class OutputRange:
    """The output of a layer for the sample: `values` [channel, row, column], int8 or int32.

    `limits` are the least and the greatest value that the output can hold; `at_limits` and `zeros`
    are shares of all values.
    """

    values: NDArray[np.int8] | NDArray[np.int32]
    low: int
    high: int
    limits: tuple[int, int]
    at_limits: float
    zeros: float


@frozen
class LayerCost:
    """The time of a layer: estimated cycles, multiplications in one of them, and on what most of
    the cycles are spent, in words."""

    cycles: int
    products_per_cycle: float
    reason: str


@frozen
class Part:
    """A part of what an inference takes: loading, a layer or unloading.

    `amount` is in milliseconds where it is time, in microjoules where it is energy.

    `layer` is its index, None for what the core does; `once` marks what happens only after
    power-up.
    """

    title: str
    amount: float
    layer: int | None = None
    once: bool = False


@frozen
class LayerRow:
    """One layer of the table. Shapes are (channels, rows, columns).

    `sources` are the layers it reads, -1 for the sample; `weight_bits` is negative for binary and 0
    without weights; `line` is that of the description. `cost` is None where it is not known,
    `share` the layer's part of all cycles, else of all operations. `placed` is False where kernels
    or bias found no room; `result` is None where the sample was not computed.
    """

    index: int
    name: str | None
    line: int | None
    executed: bool
    streaming: bool
    operator: str
    sources: tuple[int, ...]
    operands: int
    input: tuple[int, int, int]
    pooling: str
    output: tuple[int, int, int]
    output_width: int
    operations: int
    in_passes: int
    out_passes: int
    processors: int
    shift: int
    weight_bits: int
    weight_bytes: int
    cost: LayerCost | None
    share: float
    placed: bool
    result: OutputRange | None = None

    @property
    def cycles(self) -> int | None:
        """Estimated cycles."""
        return None if self.cost is None else self.cost.cycles


@frozen
class KernelArea:
    """Kernel columns of one layer in neighbouring processors; the ends are not included."""

    layer: int
    processor: int
    processor_end: int
    column: int
    column_end: int


@frozen
class InstanceUse:
    """The fullest moment of a data memory instance.

    `layer` is executed then (None: the instance is not used), `peak_bytes` are needed at once;
    `end` is the highest address that is ever used, plus one.
    """

    instance: int
    peak_bytes: int
    layer: int | None
    end: int


@frozen
class Report:
    """A network on a chip.

    `name`, `arch` and `command_line` are the user's; `cycles` and `clock_mhz` are None where they
    are not known. `layers` are in the order of the description, `memory` in that of execution.
    """

    name: str
    arch: str
    chip: Chip
    command_line: str
    tool: str
    operations: int
    products: int
    """Multiplications of an inference."""
    needs: tuple[Need, ...]
    """What is taken of every memory; flash and SRAM where the project is known."""
    cycles: int | None
    clock_mhz: float | None
    latency: Estimate | None
    """Time of an inference in milliseconds, where it is known."""
    energies: Energies | None
    energy: EnergyOptions
    """What an inference and loading take, where it is known, and what that was estimated from."""
    layers: tuple[LayerRow, ...]
    kernel_areas: tuple[KernelArea, ...]
    memory: tuple[MemoryStep, ...]
    instances: tuple[InstanceUse, ...]
    diagnostics: tuple[Diagnostic, ...]
    time_line: tuple[Part, ...] = ()
    """In the order of time; empty where the network was refused."""
    energy_parts: tuple[Part, ...] = ()
    reasons: tuple[tuple[int, str, str], ...] = ()
    """Layer, key (empty: the layer as a whole) and why it was chosen so."""
    accuracy: Measured | None = None
    """On the test samples, as training measured it."""

    @property
    def refused(self) -> bool:
        """Whether there is an error among the diagnostics."""
        return any(d.severity.is_error for d in self.diagnostics)

    @property
    def tightest(self) -> Need:
        """The need that leaves the least room."""
        return max(self.needs, key=lambda need: need.use.share)

    @property
    def slowest(self) -> LayerRow | None:
        """The layer with the largest share of the cycles, where they are known."""
        timed = [layer for layer in self.layers if layer.cost is not None]
        return max(timed, key=lambda layer: layer.share, default=None)

    @property
    def products_per_cycle(self) -> float | None:
        """Multiplications in a cycle, on average over an inference."""
        return None if not self.cycles else self.products / self.cycles

    @property
    def milliseconds(self) -> float | None:
        """Estimated time of an inference."""
        return None if self.latency is None else self.latency.value

"""The values of a report."""

from __future__ import annotations

from device import Chip
from diagnostics import Diagnostic, Severity
from synthesis.memory import MemoryStep
from values import frozen


@frozen
class Usage:
    """Bytes used out of a total."""

    used: int
    total: int

    @property
    def share(self) -> float:
        """Used part, 1 for all of it."""
        return self.used / self.total


@frozen
class LayerRow:
    """One layer of the table. Shapes are (channels, rows, columns).

    `sources` are the layers it reads, -1 for the sample; `weight_bits` is negative for binary and 0
    without weights; `line` is that of the description. `cycles` is None where it is not known,
    `share` the layer's part of all cycles, else of all operations. `placed` is False where kernels
    or bias found no room.
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
    cycles: int | None
    share: float
    placed: bool


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
    weights: Usage
    biases: Usage
    core: tuple[tuple[str, Usage], ...]
    """Flash and SRAM, where the project is known."""
    cycles: int | None
    clock_mhz: float | None
    layers: tuple[LayerRow, ...]
    kernel_areas: tuple[KernelArea, ...]
    memory: tuple[MemoryStep, ...]
    instances: tuple[InstanceUse, ...]
    diagnostics: tuple[Diagnostic, ...]
    reasons: tuple[tuple[int, str, str], ...] = ()
    """Layer, key (empty: the layer as a whole) and why it was chosen so."""

    @property
    def refused(self) -> bool:
        """Whether there is an error among the diagnostics."""
        return any(d.severity is Severity.ERROR for d in self.diagnostics)

    @property
    def fullest(self) -> Usage:
        """What the fullest data memory instance holds at once."""
        return Usage(max(use.peak_bytes for use in self.instances), self.chip.instance_bytes)

    @property
    def milliseconds(self) -> float | None:
        """Estimated time of an inference."""
        if self.cycles is None or self.clock_mhz is None:
            return None
        return self.cycles / (1000 * self.clock_mhz)

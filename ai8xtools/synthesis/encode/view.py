"""What the registers of one layer depend on.

Source: docs/hardware/execution.md, "Quantities of a layer".
"""

from __future__ import annotations

from collections.abc import Iterator
from functools import cached_property
from typing import assert_never

from ai8xtools.synthesis.encode.numbering import Numbering
from ai8xtools.synthesis.mapping import MappedLayer, MappedNetwork
from ai8xtools.synthesis.network import Operator
from ai8xtools.synthesis.place import BiasRange, KernelRange, Stream
from ai8xtools.values import frozen
from device import Chip
from device.chip import (
    KERNEL_COLUMN_BYTES,
    PROCESSORS_PER_INSTANCE,
)
from device.masks import group_slice

KERNEL_UNIT = 8
"""The kernel counters count bits of a weight: 8 for each kernel of 8-bit weights."""

Fields = dict[str, int]
Registers = Iterator[tuple[str, Fields]]


@frozen(slots=False)
class LayerView:
    """What the registers of one layer depend on."""

    layer: MappedLayer
    network: MappedNetwork
    kernels: KernelRange
    bias: BiasRange | None
    stream: Stream
    numbering: Numbering
    link_layer: bool

    @property
    def chip(self) -> Chip:
        """The chip of the network."""
        return self.network.chip

    @property
    def passthrough(self) -> bool:
        """Whether data passes without a convolution."""
        return not self.layer.hardware.operator.weighted

    @property
    def small_kernel(self) -> bool:
        """Whether the hardware runs a 1x1 kernel on two-dimensional data."""
        match self.layer.hardware.operator:
            case Operator.CONV2D | Operator.LINEAR:
                return self.layer.hardware.kernel == (1, 1)
            case Operator.NONE | Operator.CONV1D | Operator.CONVTRANSPOSE2D:
                return False
            case _:
                assert_never(self.layer.hardware.operator)

    @property
    def weight_unit(self) -> int:
        """Steps of the kernel counters for one kernel."""
        return KERNEL_UNIT if self.layer.bypass else abs(self.layer.weight_bits)

    @property
    def master(self) -> int:
        """The group that collects the sums."""
        return self.network.groups_used[0]

    @cached_property
    def passes_as_rows(self) -> bool:
        """Whether MAX78000 takes the passes of combined operands for more rows of one pass.

        It can combine two operands of two passes; for everything else this is the way.
        """
        layer = self.layer
        beyond = layer.operands * layer.in_passes != layer.operands + layer.in_passes
        several = layer.operands > 1 and layer.in_passes > 1
        return several and beyond and self.passthrough and self.chip.combines_passes_as_rows

    @cached_property
    def image(self) -> tuple[int, int]:
        """Rows and columns that the hardware counts through."""
        rows, columns = self.layer.hardware.in_dim
        if self.layer.flatten:
            return self.layer.pooling.window
        match self.layer.hardware.operator:
            case Operator.CONVTRANSPOSE2D:
                return 2 * rows, 2 * columns
            case Operator.NONE:
                return rows * (self.layer.in_passes if self.passes_as_rows else 1), columns
            case Operator.CONV1D | Operator.CONV2D | Operator.LINEAR:
                return rows, columns
            case _:
                assert_never(self.layer.hardware.operator)

    @cached_property
    def time_slots(self) -> int:
        """Time slots of a pixel less one, where channels are delivered one after the other."""
        layer = self.layer
        words = layer.output_words_per_value
        slices = (group_slice(layer.processors, g) for g in self.network.groups_used)
        counts = [s.bit_count() for s in slices if s]
        if self.passthrough:
            return max((n * words - 1) // PROCESSORS_PER_INSTANCE for n in counts)
        if layer.broadcast:
            return max(min(n, PROCESSORS_PER_INSTANCE) * words - 1 for n in counts)
        if layer.depthwise:
            return max((n * layer.output_width + 7) // 8 - 1 for n in counts)
        return 0

    @cached_property
    def local_output(self) -> bool:
        """Whether the outputs stay in the memories of their own group."""
        return self.network.keeps_outputs_local(self.layer)

    @cached_property
    def first_kernel(self) -> tuple[int, int]:
        """First kernel in counter steps, and the bytes before it in its first column."""
        rows, columns = self.layer.hardware.kernel
        kernel, remainder = divmod(KERNEL_COLUMN_BYTES * self.kernels.first, rows * columns)
        if self.layer.calcx4:
            kernel = _in_parts(kernel, self.chip)
        return kernel * KERNEL_UNIT, remainder


def _in_parts(kernel: int, chip: Chip) -> int:
    """Number of a kernel where all parts of the memory are read at a time."""
    further = kernel >= chip.kernel_columns
    place, part = divmod(kernel - further * chip.kernel_columns, chip.kernel_parts)
    return chip.kernel_column(part + further * chip.kernel_parts, place)

"""Kernel memory: which columns each layer gets, and the bytes in them.

Every processor owns columns of 9 bytes. A layer occupies the same columns in each processor it
uses; the j-th of them holds the kernels of input channels j, j + share, j + 2·share, …
Source: docs/hardware/memory.md, "Kernel memory".
"""

from __future__ import annotations

import contextlib

import numpy as np
from numpy.typing import NDArray

from ai8xtools.diagnostics import Diagnostic, Severity
from ai8xtools.synthesis.facts import NO_ROOM, UNSOUND
from ai8xtools.synthesis.mapping import MappedLayer, MappedNetwork
from ai8xtools.synthesis.options import PlaceOptions
from ai8xtools.synthesis.place.allocation import ColumnSearch, NoRoomError
from ai8xtools.synthesis.place.packing import Packed, pack_layer
from ai8xtools.values import frozen
from device import Chip
from device.channels import KERNEL_ALIGNMENT, kernel_columns
from device.chip import (
    GROUPS,
    KERNEL_COLUMN_BYTES,
    PROCESSORS,
    PROCESSORS_PER_GROUP,
)
from device.masks import bits, lowest_bit

_Targets = tuple[NDArray[np.int64], NDArray[np.int64]]
"""Processors and columns of the columns of a layer, both to be broadcast to [step, processor]."""


@frozen
class KernelRange:
    """One layer's columns and the number of its kernels, empty ones included.

    `first` and `length` count columns. All zero for layers without kernels.
    """

    first: int = 0
    length: int = 0
    count: int = 0


@frozen
class KernelMemory:
    """Contents of all kernel memories.

    `data` is uint8 [processor, column, byte]; `owner` int16 [processor, column] holds the layer
    that wrote a column, -1 where nothing was written.
    """

    data: NDArray[np.uint8]
    owner: NDArray[np.int16]

    @classmethod
    def empty(cls, chip: Chip) -> KernelMemory:
        """Return memory in which nothing is written."""
        columns = max(map(chip.kernel_capacity, range(PROCESSORS)))
        return cls(
            np.zeros((PROCESSORS, columns, KERNEL_COLUMN_BYTES), np.uint8),
            np.full((PROCESSORS, columns), -1, np.int16),
        )


def start_lane(layer: MappedLayer) -> int:
    """Return the byte lane of the first output; kernels of the lanes before it stay empty."""
    return lowest_bit(layer.output_processors) % 4


def kernel_counts(layer: MappedLayer) -> KernelRange:
    """Return how many columns and kernels a layer has, not yet placed.

    Source: docs/hardware/memory.md, "Kernel counts".
    """
    rows, columns = layer.hardware.kernel
    width = abs(layer.weight_bits)
    lane = start_lane(layer)
    in_passes = 1 if layer.flatten else layer.in_passes
    first = lowest_bit(layer.output_processors) - (lane if layer.out_passes > 1 else 0)
    slots = layer.output_processors.bit_length() - first
    if layer.depthwise:
        length = kernel_columns(in_passes, rows * columns, width)
        return KernelRange(0, length, in_passes * (lane + 1))
    stored = slots * layer.out_passes * in_passes
    count = stored + lane * layer.out_passes * in_passes
    if layer.flatten:
        row = layer.pooled_dim[0] * layer.pooled_dim[1] * layer.in_passes
        unused = layer.out_passes * layer.output_processors.bit_count() - layer.out_channels
        stored, count = (stored - unused) * row, (count - unused) * row
    return KernelRange(0, kernel_columns(stored, rows * columns, width), count)


def place_kernels(
    network: MappedNetwork, options: PlaceOptions, problems: list[Diagnostic]
) -> tuple[dict[int, KernelRange], KernelMemory]:
    """Stack the kernels of all layers; a layer that does not fit becomes a diagnostic."""
    placer = _Placer(network, options, problems)
    ranges = {layer.index: KernelRange() for layer in network.layers}
    stored: dict[tuple[object, ...], int] = {}
    everywhere = (1 << PROCESSORS) - 1
    first = [layer for layer in network.layers if layer.processors == everywhere]
    rest = [layer for layer in network.layers if layer.processors != everywhere]
    shared: dict[int, int] = {}
    for layer in network.layers:
        if options.deduplicate and layer.weights is not None:
            key = identity(layer), placer.in_all_groups(layer), layer.kernel_offset
            shared[layer.index] = stored.setdefault(key, layer.index)
    fixed = [layer for layer in network.layers if layer.kernel_offset is not None]
    anywhere = [layer for layer in (*first, *rest) if layer.kernel_offset is None]
    for layer in (*fixed, *anywhere):
        source = shared.get(layer.index, layer.index)
        if layer.weights is None or source != layer.index:
            continue
        placed = placer.place(layer)
        if placed is not None:
            ranges[layer.index] = placed
    for index, source in shared.items():
        ranges[index] = ranges[source]
    return ranges, placer.memory


def identity(layer: MappedLayer) -> tuple[object, ...]:
    """Return what two layers must have in common to share kernels: values and layout.

    The gaps between the outputs, and the lane they begin in, are part of the stored kernels. The
    pixels of a flattened layer stand in another order than channels.
    """
    weights = layer.hardware.weights
    assert weights is not None
    gaps = layer.output_processors >> lowest_bit(layer.output_processors) // 4 * 4
    layout = layer.processors, gaps, layer.in_channels, layer.flatten, layer.calcx4
    return weights.shape, weights.tobytes(), layer.weight_bits, *layout


class _Placer:
    """Places layer after layer.

    `used` is bool [processor, column] in the columns that are counted for a layer; where they are
    stored, in `memory`, can be elsewhere (four outputs at a time, one FIFO word for all groups).
    """

    def __init__(
        self, network: MappedNetwork, options: PlaceOptions, problems: list[Diagnostic]
    ) -> None:
        self.options = options
        self.network = network
        self.chip = network.chip
        self.problems = problems
        self.memory = KernelMemory.empty(network.chip)
        self.occupied = np.zeros(self.memory.owner.shape, np.bool_)
        for processor, columns in enumerate(options.occupied.columns):
            self.occupied[processor, list(bits(columns))] = True
        self.used = self.occupied.copy()

    def in_all_groups(self, layer: MappedLayer) -> bool:
        """Whether the kernels of one group's processors are spread over all groups."""
        quad = self.network.input_port.feeds_all_groups
        return quad and layer is self.network.first

    def _enters_calcx4(self, layer: MappedLayer) -> bool:
        """Whether this layer is the first of several that calculate four outputs at a time."""
        if not layer.calcx4 or layer.index == 0:
            return False
        before = [x for x in self.network.layers if x.index == layer.index - 1]
        return not (before and before[0].calcx4)

    def place(self, layer: MappedLayer) -> KernelRange | None:
        """Find room for one layer and write its bytes; None after a complaint."""
        counts = kernel_counts(layer)
        mask = layer.processors
        if self.in_all_groups(layer):
            mask = self.network.input_processors
            counts = KernelRange(0, -(-counts.length // GROUPS), -(-counts.count // GROUPS))
        processors = np.array(bits(mask))
        capacity = min(self._capacities(layer, mask))
        fixed = layer.kernel_offset
        first = self._find(layer, mask, counts.length) if fixed is None else fixed
        if fixed is not None and not self._is_free(layer, mask, fixed, counts.length):
            self._complain_of_place(layer, fixed, counts.length, capacity)
            return None
        if first is None:
            self._complain_of_size(layer, processors, counts.length, capacity)
            return None
        if self._enters_calcx4(layer):
            first *= GROUPS
        lane = start_lane(layer)
        packed = pack_layer(layer, lane, counts.length)
        steps = np.arange(packed.data.shape[1])[:, None]
        if self.in_all_groups(layer):
            targets = processors + PROCESSORS_PER_GROUP * (steps % GROUPS), first + steps // GROUPS
            stored = targets
        else:
            targets = processors, first + steps
            stored = processors, self._spread(layer, first, steps) if layer.calcx4 else targets[1]
        if self._collides(targets, capacity, packed) and not self.in_all_groups(layer):
            moved = self._find(layer, mask, len(steps))
            targets = processors, (first if moved is None else moved) + steps
            stored = processors, self._spread(layer, first, steps) if layer.calcx4 else targets[1]
            first = first if moved is None else moved
        beyond = np.max(stored[1]) >= self.chip.kernel_capacity(0)
        if self._collides(targets, capacity, packed) or beyond:
            self._complain_of_gaps(layer, first, int(targets[1][-1, -1]), capacity)
            return None
        self._write(layer, targets, stored, packed)
        length = packed.columns if layer.flatten else counts.length
        if self.options.old_kernel_loader and not layer.flatten:
            length = packed.columns - lane
        return KernelRange(first, length, counts.count)

    def _capacities(self, layer: MappedLayer, mask: int) -> list[int]:
        """Return the columns of each processor that a layer can use.

        Where four outputs are calculated at a time, their four parts do not reach into the larger
        memory of some processors.
        """
        capacities = [self.chip.kernel_capacity(p) for p in bits(mask)]
        return (
            [min(c, self.chip.kernel_columns) for c in capacities] if layer.calcx4 else capacities
        )

    def _is_free(self, layer: MappedLayer, mask: int, first: int, length: int) -> bool:
        """Whether a layer's kernels can begin at a given column."""
        part = self.chip.kernel_part_columns
        within = layer.depthwise and self.chip.kernel_parts > 1
        if first % KERNEL_ALIGNMENT or (within and (first + 1) // part != (first + length) // part):
            return False
        beyond = first + length > min(self._capacities(layer, mask))
        return not beyond and not self.used[list(bits(mask)), first : first + length].any()

    def _find(self, layer: MappedLayer, mask: int, length: int) -> int | None:
        """Return a free range's first column; None if there is none.

        Layers that only use processors with the larger memory are stacked from its end.
        """
        chip = self.chip
        capacities = self._capacities(layer, mask)
        within_part = layer.depthwise and chip.kernel_parts > 1
        used = self.used[list(bits(mask))]
        search = ColumnSearch(chip, used, capacities, length, within_part)
        if min(capacities) > chip.kernel_columns:
            with contextlib.suppress(NoRoomError):
                return search.downward()
        try:
            return search.upward(self.options.weight_start)
        except NoRoomError:
            return None

    def _spread(
        self, layer: MappedLayer, first: int, steps: NDArray[np.int64]
    ) -> NDArray[np.int64]:
        """Distribute columns over the parts of a processor's memory.

        Four outputs are calculated at a time, each from a part of its own.
        """
        rows, columns = layer.hardware.kernel
        kernels = layer.in_passes * layer.out_channels
        stored = kernels * KERNEL_COLUMN_BYTES * abs(layer.weight_bits) // (rows * columns * 8)
        part, within = np.divmod(steps, max(-(-stored // self.chip.kernel_parts), 1))
        places: NDArray[np.int64] = within + first // self.chip.kernel_parts
        return part * self.chip.kernel_part_columns + places

    def _collides(self, targets: _Targets, capacity: int, packed: Packed) -> bool:
        """Whether columns are beyond the memory or belong to another layer."""
        processors, columns = np.broadcast_arrays(*targets)
        if columns.max() >= capacity:
            return True
        return bool((self.used[processors, columns] & packed.written.T).any())

    def _write(
        self, layer: MappedLayer, targets: _Targets, stored: _Targets, packed: Packed
    ) -> None:
        """Take the written columns and store their bytes."""
        written = packed.written.T
        processors, columns = np.broadcast_arrays(*targets)
        self.used[processors[written], columns[written]] = True
        processors, columns = np.broadcast_arrays(*stored)
        where = processors[written], columns[written]
        others = set(self.memory.owner[where].tolist()) - {-1}
        if others:
            self._complain_of_overwriting(layer, min(others))
        if self.occupied[where].any():
            self._complain_of_neighbours(layer)
        self.memory.data[where] = packed.data.swapaxes(0, 1)[written]
        self.memory.owner[where] = layer.index

    def _complain_of_size(
        self, layer: MappedLayer, processors: NDArray[np.int64], length: int, capacity: int
    ) -> None:
        """A layer's kernels are in the same columns of all its processors' memories."""
        free = int((~self.used[processors, :capacity].any(axis=0)).sum())
        self.problems.append(
            layer.diagnostic(
                "E401",
                f"the kernels need {length} columns in a row in {len(processors)} "
                f"processors, {free} of {capacity} are free{self.options.occupied.beside}",
                ("processors", "quantization"),
                "Use fewer channels, narrower weights ('quantization') or processors "
                f"that other layers do not use.{self.options.occupied.remedy}",
                effects=NO_ROOM,
            )
        )

    def _complain_of_place(
        self, layer: MappedLayer, first: int, length: int, capacity: int
    ) -> None:
        """Kernels begin at a multiple of four columns, in columns that no other layer uses."""
        self.problems.append(
            layer.diagnostic(
                "E442",
                f"'kernel_offset' is {first}, the kernels take columns {first} to "
                f"{first + length - 1} of {capacity}; they must begin at a multiple of "
                f"{KERNEL_ALIGNMENT} and be free in all processors of the layer",
                "kernel_offset",
                "Use another column, or remove 'kernel_offset' from all layers.",
                effects=NO_ROOM,
            )
        )

    def _complain_of_overwriting(self, layer: MappedLayer, other: int) -> None:
        """Where layers with four outputs at a time begin, the vendor's tool counts columns in two
        ways.
        """
        self.problems.append(
            layer.diagnostic(
                "W410",
                f"the kernels overwrite those of {self.network.layer(other)}; the chip is not "
                "expected to compute the known answer",
                ("calcx4", "op"),
                "Use 'calcx4' in all layers or in none.",
                Severity.WARNING,
                UNSOUND,
            )
        )

    def _complain_of_neighbours(self, layer: MappedLayer) -> None:
        """Two networks that are in the accelerator together have the same kernel columns or biases.
        Columns of layers with 'calcx4' are counted in another order than they are stored.
        """
        self.problems.append(
            layer.diagnostic(
                "E443",
                "the kernels would be stored in columns of "
                f"{' or '.join(self.options.occupied.names)}",
                ("calcx4", "op"),
                f"Do not use 'calcx4'.{self.options.occupied.remedy}",
                effects=NO_ROOM,
            )
        )

    def _complain_of_gaps(self, layer: MappedLayer, first: int, last: int, capacity: int) -> None:
        """Outputs that skip processors store their kernels with gaps, and all of them must fit."""
        self.problems.append(
            layer.diagnostic(
                "E402",
                f"kernels with unused processors between the outputs do not fit columns "
                f"{first} to {last} of {capacity}",
                ("output_processors", "processors"),
                "Use output processors without gaps that begin at a multiple of 4.",
                effects=NO_ROOM,
            )
        )

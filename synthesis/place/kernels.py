"""Kernel memory: which columns each layer gets, and the bytes in them.

Every processor owns columns of 9 bytes. A layer occupies the same columns in each processor it
uses; the j-th of them holds the kernels of input channels j, j + share, j + 2·share, …
Source: spec/memory.md section 1.
"""

from __future__ import annotations

import contextlib
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from device import Chip
from device.chip import KERNEL_COLUMN_BYTES, PROCESSORS
from diagnostics import Diagnostic
from synthesis.network import Layer, Network, bits, lowest_bit
from synthesis.place.allocation import ColumnSearch, NoRoomError
from synthesis.place.packing import pack_layer


@dataclass(frozen=True, slots=True)
class KernelRange:
    """One layer's columns and kernel counts.

    `first` and `length` count columns; `count` and `outputs` are the kernel counts that the
    registers need (spec: kcount, kochan). All zero for layers without kernels.
    """

    first: int = 0
    length: int = 0
    count: int = 0
    outputs: int = 0


@dataclass(frozen=True)
class KernelMemory:
    """Contents of all kernel memories.

    `data` is uint8 [processor, column, byte]; `owner` int16 [processor, column] holds the layer
    that wrote a column, -1 where nothing was written.
    """

    data: NDArray[np.uint8]
    owner: NDArray[np.int16]

    @staticmethod
    def empty(chip: Chip) -> KernelMemory:
        """Return memory in which nothing is written."""
        columns = max(map(chip.kernel_capacity, range(PROCESSORS)))
        return KernelMemory(
            np.zeros((PROCESSORS, columns, KERNEL_COLUMN_BYTES), np.uint8),
            np.full((PROCESSORS, columns), -1, np.int16),
        )


def start_lane(layer: Layer) -> int:
    """Return the byte lane of the first output; kernels of the lanes before it stay empty."""
    return lowest_bit(layer.output_processors) % 4


def kernel_counts(layer: Layer) -> KernelRange:
    """Return a layer's column and kernel counts, not yet placed (spec/memory.md 1.3)."""
    rows, columns = layer.hardware.kernel
    width = abs(layer.weight_bits)
    lane = start_lane(layer)
    in_passes = 1 if layer.flatten else layer.in_passes
    first = lowest_bit(layer.output_processors) - (lane if layer.out_passes > 1 else 0)
    slots = layer.output_processors.bit_length() - first
    if layer.depthwise:
        length = _columns(in_passes, rows * columns, width)
        extra = lane * in_passes
        return KernelRange(0, length, in_passes + extra, slots * in_passes + extra)
    stored = slots * layer.out_passes * in_passes
    count = stored + lane * layer.out_passes * in_passes
    if layer.flatten:
        row = layer.pooled_dim[0] * layer.pooled_dim[1] * layer.in_passes
        unused = layer.out_passes * layer.output_processors.bit_count() - layer.out_channels
        stored, count = (stored - unused) * row, (count - unused) * row
    return KernelRange(0, _columns(stored, rows * columns, width), count, count)


def _columns(kernels: int, taps: int, width: int) -> int:
    """Return the columns that `kernels` kernels of `taps` weights of `width` bits take."""
    per_byte = 8 // width
    remainder = kernels % per_byte * taps * (per_byte - 1)
    return -(-(kernels * taps * width + remainder) // (8 * KERNEL_COLUMN_BYTES))


def place_kernels(
    network: Network, weight_start: int, deduplicate: bool, problems: list[Diagnostic]
) -> tuple[dict[int, KernelRange], KernelMemory]:
    """Stack the kernels of all layers; a layer that does not fit becomes a diagnostic."""
    memory = KernelMemory.empty(network.chip)
    ranges = {layer.index: KernelRange() for layer in network.layers}
    stored: dict[tuple[object, ...], int] = {}
    everywhere = (1 << PROCESSORS) - 1
    first = [layer for layer in network.layers if layer.processors == everywhere]
    rest = [layer for layer in network.layers if layer.processors != everywhere]
    shared: dict[int, int] = {}
    for layer in network.layers:
        if deduplicate and layer.weights is not None:
            key = _identity(layer)
            shared[layer.index] = stored.setdefault(key, layer.index)
    for layer in (*first, *rest):
        source = shared.get(layer.index, layer.index)
        if layer.weights is None or source != layer.index:
            continue
        placed = _place_layer(layer, network.chip, weight_start, memory, problems)
        if placed is not None:
            ranges[layer.index] = placed
    for index, source in shared.items():
        ranges[index] = ranges[source]
    return ranges, memory


def _identity(layer: Layer) -> tuple[object, ...]:
    """What two layers must have in common to share kernels."""
    weights = layer.hardware.weights
    assert weights is not None
    return weights.shape, weights.tobytes(), layer.weight_bits, layer.processors


def _find(
    layer: Layer, chip: Chip, used: NDArray[np.bool_], length: int, weight_start: int
) -> int | None:
    """Return a free range's first column; None if there is none.

    Layers that only use processors with the larger memory are stacked from its end.
    """
    capacities = [chip.kernel_capacity(p) for p in bits(layer.processors)]
    within_part = layer.depthwise and chip.kernel_columns_first > chip.kernel_columns
    search = ColumnSearch(chip, used, capacities, length, within_part)
    large = min(capacities) > chip.kernel_columns
    if large and not (layer.depthwise and length > chip.kernel_columns_first - chip.kernel_columns):
        with contextlib.suppress(NoRoomError):
            return search.downward()
    try:
        return search.upward(weight_start)
    except NoRoomError:
        return None


def _place_layer(
    layer: Layer, chip: Chip, weight_start: int, memory: KernelMemory, problems: list[Diagnostic]
) -> KernelRange | None:
    """Find room for one layer and write its bytes; None after a complaint."""
    counts = kernel_counts(layer)
    processors = np.array(bits(layer.processors))
    capacity = min(map(chip.kernel_capacity, bits(layer.processors)))
    used: NDArray[np.bool_] = memory.owner[processors] >= 0
    first = _find(layer, chip, used, counts.length, weight_start)
    if first is None:
        free = int((~used[:, :capacity].any(axis=0)).sum())
        problems.append(
            layer.diagnostic(
                "E401",
                f"the kernels need {counts.length} columns in a row in {len(processors)} "
                f"processors, {free} of {capacity} are free",
                ("processors", "quantization"),
                "Use fewer channels, narrower weights ('quantization') or processors "
                "that other layers do not use.",
            )
        )
        return None
    packed = pack_layer(layer, start_lane(layer), counts.length)
    columns = first + np.arange(packed.data.shape[1])
    if columns[-1] >= capacity or (memory.owner[processors][:, columns][packed.written] >= 0).any():
        problems.append(
            layer.diagnostic(
                "E402",
                f"kernels with unused processors between the outputs do not fit columns "
                f"{first} to {columns[-1]} of {capacity}",
                ("output_processors", "processors"),
                "Use output processors without gaps that begin at a multiple of 4.",
            )
        )
        return None
    chosen = np.ix_(processors, columns)
    memory.data[chosen] = np.where(packed.written[..., None], packed.data, memory.data[chosen])
    memory.owner[chosen] = np.where(packed.written, layer.index, memory.owner[chosen])
    length = packed.columns if layer.flatten else counts.length
    return KernelRange(first, length, counts.count, counts.outputs)

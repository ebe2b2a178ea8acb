"""Bias memory: one byte per output channel, in one group's memory for an ordinary layer.

Source: docs/hardware/memory.md, "Bias memory".
"""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from ai8xtools.diagnostics import Diagnostic
from ai8xtools.synthesis.facts import NO_ROOM
from ai8xtools.synthesis.mapping import MappedLayer, MappedNetwork
from ai8xtools.synthesis.options import Occupied, PlaceOptions
from ai8xtools.synthesis.place.kernels import start_lane
from ai8xtools.values import frozen
from device.chip import GROUPS, PROCESSORS_PER_GROUP, PROCESSORS_PER_INSTANCE
from device.masks import bits, group_slice, lowest_bit


@frozen
class BiasRange:
    """Where a layer's bias begins in each group that adds it (byte offsets; None: it does not).

    An ordinary layer's bias is added in one group; a depth-wise layer adds its channels' biases
    in the groups that hold the channels.
    """

    offsets: tuple[int | None, ...]

    @property
    def group(self) -> int | None:
        """The group of an ordinary layer, None if several groups add a bias."""
        groups = [g for g, offset in enumerate(self.offsets) if offset is not None]
        return groups[0] if len(groups) == 1 else None


def place_biases(
    network: MappedNetwork, options: PlaceOptions, problems: list[Diagnostic]
) -> tuple[dict[int, BiasRange], tuple[NDArray[np.uint8], ...]]:
    """Place the biases of all layers; one that does not fit becomes a diagnostic.

    Depth-wise biases go first, where their channels are. Each other one goes to the permitted
    group with the least in it: layers bound to one group first, then long ones. Equal biases share
    a place.
    """
    memory = _BiasMemory(network, options.occupied, problems)
    ranges: dict[int, BiasRange] = {}
    owners: dict[tuple[object, ...], int] = {}
    same: dict[int, int] = {}
    waiting: list[MappedLayer] = []
    for layer in network.layers:
        if layer.bias is None:
            continue
        key = _identity(layer, network)
        source = owners.setdefault(key, layer.index) if options.deduplicate else layer.index
        if source != layer.index:
            same[layer.index] = source
        elif network.input_port.feeds_all_groups and layer is network.first:
            ranges[layer.index] = memory.add_in_turn(layer)
        elif layer.depthwise:
            ranges[layer.index] = memory.add_by_channel(layer)
        else:
            waiting.append(layer)
    for layer in sorted(waiting, key=lambda x: _priority(x, network)):
        placed = memory.add_in_one_group(layer, layer.bias_groups or network.groups_used)
        if placed is not None:
            ranges[layer.index] = placed
    for index, source in same.items():
        if source in ranges:
            ranges[index] = ranges[source]
    return ranges, memory.images()


def _priority(layer: MappedLayer, network: MappedNetwork) -> int:
    """Sort key: smaller is placed earlier; equal keys keep the layers' order."""
    if layer.flatten and network.chip.places_flatten_bias_first:
        return -1
    if len(layer.bias_groups or network.groups_used) == 1:
        return 0
    return network.chip.bias_bytes - layer.out_channels - _lead(layer, network)


def _identity(layer: MappedLayer, network: MappedNetwork) -> tuple[object, ...]:
    """Return what two layers must have in common to share bias bytes: values and layout."""
    assert layer.bias is not None
    values = layer.bias.tobytes()
    if network.input_port.feeds_all_groups and layer is network.first:
        return values, "in turn"
    if layer.depthwise:
        return values, "by channel", layer.processors, layer.broadcast
    return values, "in one group", _lead(layer, network), layer.calcx4


def _lead(layer: MappedLayer, network: MappedNetwork) -> int:
    """Unused bytes in front of an ordinary layer's bias.

    One for each unused lane; the first layer of MAX78000 skips another one when it streams.
    """
    skipped = layer.streaming and layer.index == 0 and network.chip.skips_stream_bias
    return start_lane(layer) * layer.out_passes + skipped


class _BiasMemory:
    """The bytes of every group so far, behind those that are occupied."""

    def __init__(
        self, network: MappedNetwork, occupied: Occupied, problems: list[Diagnostic]
    ) -> None:
        self.network = network
        self.capacity = network.chip.bias_bytes
        self.problems = problems
        self.occupied = occupied
        self.groups: list[list[int]] = [[0] * count for count in occupied.biases]

    def images(self) -> tuple[NDArray[np.uint8], ...]:
        """Return the bytes to load, group by group."""
        own = (g[first:] for g, first in zip(self.groups, self.occupied.biases, strict=True))
        return tuple(np.array(group, np.int64).astype(np.uint8) for group in own)

    def _full(self, layer: MappedLayer, group: int, length: int) -> bool:
        """Whether `length` bytes do not fit a group; note a complaint if so."""
        left = self.capacity - len(self.groups[group])
        if length <= left:
            return False
        self.problems.append(self._complaint(layer, group, length, left))
        return True

    def _complaint(self, layer: MappedLayer, group: int, length: int, left: int) -> Diagnostic:
        """Each group has a bias memory; the whole bias of a layer is in one of them."""
        return layer.diagnostic(
            "E403",
            f"the bias needs {length} bytes, group {group} has {left} of {self.capacity} left"
            f"{self.occupied.beside}",
            ("bias_group", "op"),
            "Remove the bias of large layers (--no-bias) or permit more groups."
            f"{self.occupied.remedy}",
            effects=NO_ROOM,
        )

    def add_in_one_group(self, layer: MappedLayer, permitted: tuple[int, ...]) -> BiasRange | None:
        """Append an ordinary layer's bias to the permitted group with the least in it."""
        assert layer.bias is not None
        if layer.calcx4:
            for g in permitted:
                self._align(g)
        group = min(permitted, key=lambda g: len(self.groups[g]))
        lead = _lead(layer, self.network)
        if self._full(layer, group, lead + layer.out_channels):
            return None
        offset = len(self.groups[group])
        self.groups[group] += [0] * lead + layer.bias.tolist()
        return BiasRange(tuple(offset if g == group else None for g in range(GROUPS)))

    def _align(self, group: int) -> None:
        """Begin at a multiple of four bytes."""
        self.groups[group] += [0] * (-len(self.groups[group]) % PROCESSORS_PER_INSTANCE)

    def add_in_turn(self, layer: MappedLayer) -> BiasRange:
        """Append the bias of a layer that works in all groups, one output to each in turn."""
        assert layer.bias is not None
        offsets = tuple(len(group) for group in self.groups)
        for i, value in enumerate(layer.bias.tolist()):
            self.groups[i % GROUPS].append(value)
        for group in range(GROUPS):
            self._full(layer, group, 0)
        return BiasRange(offsets)

    def add_by_channel(self, layer: MappedLayer) -> BiasRange:
        """Append a depth-wise layer's biases to the groups of their channels.

        Unused processors in between get a byte as well; in broadcast form the lanes of four
        instances take turns.
        """
        assert layer.bias is not None
        used = [g for g in range(GROUPS) if group_slice(layer.processors, g)]
        mask = layer.processors
        if layer.broadcast:
            for g in used:
                self._align(g)
        else:
            low = PROCESSORS_PER_GROUP * used[0]
            moved = group_slice(mask, used[0])
            mask = mask & ~(0xFFFF << low) | moved >> lowest_bit(moved) << low
        offsets = tuple(len(self.groups[g]) if g in used else None for g in range(GROUPS))
        first, last = lowest_bit(mask), mask.bit_length() - 1
        if layer.broadcast:
            last |= PROCESSORS_PER_GROUP - 1
        if layer.broadcast or len(used) > 1:
            first = 0
        self._append(layer, mask, first, last)
        for g in used:
            self._full(layer, g, 0)
        return BiasRange(offsets)

    def _append(self, layer: MappedLayer, mask: int, first: int, last: int) -> None:
        assert layer.bias is not None
        rank = {processor: i for i, processor in enumerate(bits(mask))}
        group = None
        for output_pass in range(layer.out_passes):
            for processor in range(first, last + 1):
                source = _interleaved(processor) if layer.broadcast else processor
                channel = output_pass * layer.out_share + rank.get(source, layer.out_channels)
                exists = source in rank and channel < layer.out_channels
                image = self.groups[processor // PROCESSORS_PER_GROUP]
                if processor // PROCESSORS_PER_GROUP != group:
                    group, end = processor // PROCESSORS_PER_GROUP, len(image)
                image.append(int(layer.bias[channel]) if exists else 0)
                end = len(image) if exists else end
        del image[end:]


def _interleaved(processor: int) -> int:
    """Processor whose bias stands at this position of a group in broadcast form."""
    base, unit = processor & ~(PROCESSORS_PER_GROUP - 1), processor % PROCESSORS_PER_GROUP
    return (
        base
        + unit % PROCESSORS_PER_INSTANCE * PROCESSORS_PER_INSTANCE
        + (unit // PROCESSORS_PER_INSTANCE)
    )

"""Invariants of the placement, looked at from the memories instead of from the allocators.

Every layer claims the bytes it needs; nobody else may have claimed them unless for the same bytes,
they must be inside the memory, and the images must hold there what the layer needs.
Source: docs/hardware/memory.md, "Kernel memory", "Bias memory" and "Data memory".
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import TYPE_CHECKING

import numpy as np

from ai8xtools.synthesis.invariants import InvariantError, Invariants
from ai8xtools.synthesis.mapping import MappedLayer, MappedNetwork
from ai8xtools.synthesis.mapping.validation import violations
from ai8xtools.synthesis.memory import MemoryStep
from ai8xtools.synthesis.place.lifetimes import memory_steps
from ai8xtools.synthesis.place.packing import pack_layer
from device.chip import GROUPS, PROCESSORS, PROCESSORS_PER_GROUP
from device.masks import bits, lowest_bit

if TYPE_CHECKING:  # the placement asks for its validation
    from ai8xtools.synthesis.place.placement import Placement

_of_placement: Invariants[[Placement, MappedNetwork]] = Invariants()
_ALIGNMENT = 4
_NOBODY = -1


def validate_placement(
    placement: Placement, network: MappedNetwork, *, overlaps: bool = False
) -> None:
    """Raise InvariantError with everything in a placement that contradicts the network or itself.

    `overlaps`: data was allowed to overwrite other data.
    """
    contradictions = [*violations(network), *_of_placement.violations(placement, network)]
    if not overlaps:
        contradictions += [f"{text} [data lives until it is read]" for text in _lost_data(network)]
    if contradictions:
        raise InvariantError("\n".join(contradictions))


def _spreads(layer: MappedLayer, network: MappedNetwork) -> bool:
    """Whether columns are stored elsewhere than they are counted; they are not followed here."""
    quad = network.input_port.feeds_all_groups and layer is network.first
    return layer.calcx4 or quad


@_of_placement
def layers_with_weights_have_columns(placement: Placement, network: MappedNetwork) -> Iterator[str]:
    """Every layer has a range of columns; it is empty exactly if nothing is stored."""
    if set(placement.kernels) != {layer.index for layer in network.layers}:
        yield f"kernels are placed for the layers {sorted(placement.kernels)}"
        return
    for layer in network.layers:
        place = placement.kernels[layer.index]
        stored = layer.weights is not None
        if (place.length > 0) != stored or (place.count > 0) != stored:
            yield f"{layer}: {place.length} columns, {place.count} kernels"
        if place.first < 0 or place.first % _ALIGNMENT:
            yield f"{layer}: kernels begin at column {place.first}"


@_of_placement
def kernels_are_where_their_range_says(
    placement: Placement, network: MappedNetwork
) -> Iterator[str]:
    """A layer's columns are in memory, hold its bytes, and belong to it or to an equal layer."""
    if any(_spreads(layer, network) for layer in network.layers):
        return
    memory = placement.kernel_memory
    claimed = np.full(memory.owner.shape, _NOBODY, np.int64)
    for layer in network.layers:
        place = placement.kernels.get(layer.index)
        if layer.weights is None or place is None:
            continue
        packed = pack_layer(layer, lowest_bit(layer.output_processors) % 4, 0)
        processors = bits(layer.processors)
        end = place.first + packed.columns
        capacity = min(map(network.chip.kernel_capacity, processors))
        if place.first < 0 or end > capacity:
            yield f"{layer}: kernels in columns {place.first} to {end - 1} of {capacity}"
            continue
        where = np.ix_(processors, range(place.first, end))
        written = packed.written
        if (memory.data[where][written] != packed.data[written]).any():
            yield f"{layer}: other bytes stand in columns {place.first} to {end - 1}"
        for other in sorted(set(claimed[where][written].tolist()) - {_NOBODY}):
            if placement.kernels[other] != place:
                yield f"{layer}: shares columns with {network.layer(other)}"
        owners = sorted(set(memory.owner[where][written].tolist()))
        if any(o == _NOBODY or placement.kernels.get(o) != place for o in owners):
            yield f"{layer}: its columns belong to {owners}"
        claimed[where] = np.where(written, layer.index, claimed[where])
    surplus = memory.data.any(axis=2) & (claimed == _NOBODY)
    if surplus.any():
        processor, column = np.argwhere(surplus)[0].tolist()
        yield f"column {column} of processor {processor} holds something for nobody"


@_of_placement
def biases_are_where_their_range_says(
    placement: Placement, network: MappedNetwork
) -> Iterator[str]:
    """A layer's bias bytes are in a group's memory, and no other layer has other bytes there."""
    claimed: dict[tuple[int, int], tuple[int, int]] = {}
    for layer in network.layers:
        place = placement.biases.get(layer.index)
        if (place is not None) != (layer.bias is not None):
            yield f"{layer}: a bias is {'missing' if place is None else 'surplus'}"
        if place is None or layer.bias is None:
            continue
        for group, index, value in _bias_bytes(layer, network, place.offsets):
            image, index = placement.bias_memory[group], index - placement.bias_start[group]
            if group not in network.groups_used or not 0 <= index < len(image):
                yield f"{layer}: bias byte {index} of group {group}, there are {len(image)}"
                break
            owner, other = claimed.setdefault((group, index), (layer.index, value))
            if other != value or int(image[index]) != value & 0xFF:
                yield (
                    f"{layer}: bias byte {index} of group {group} is {int(image[index])}, "
                    f"expected {value & 0xFF} (layer {owner} has it too)"
                )
                break
    for group, image in enumerate(placement.bias_memory):
        if placement.bias_start[group] + len(image) > network.chip.bias_bytes:
            yield f"{len(image)} bias bytes in group {group}"


def _bias_bytes(
    layer: MappedLayer, network: MappedNetwork, offsets: tuple[int | None, ...]
) -> Iterator[tuple[int, int, int]]:
    """Yield group, index and value of every bias byte that the hardware reads."""
    assert layer.bias is not None
    values = layer.bias.tolist()
    if network.input_port.feeds_all_groups and layer is network.first:
        for i, value in enumerate(values):
            yield i % GROUPS, (offsets[i % GROUPS] or 0) + i // GROUPS, value
    elif layer.depthwise:
        yield from _depthwise_bytes(layer, offsets, values)
    else:
        skipped = layer.streaming and layer.index == 0 and network.chip.skips_stream_bias
        lead = lowest_bit(layer.output_processors) % 4 * layer.out_passes + skipped
        for group, offset in enumerate(offsets):
            if offset is not None:
                for i, value in enumerate(values):
                    yield group, offset + lead + i, value


def _depthwise_bytes(
    layer: MappedLayer, offsets: tuple[int | None, ...], values: list[int]
) -> Iterator[tuple[int, int, int]]:
    """Yield the bytes of channels that are added where they are.

    Source: docs/hardware/memory.md, "Bias memory".
    """
    inputs = bits(layer.processors)
    first, last = inputs[0], inputs[-1]
    for channel, value in enumerate(values):
        number, unit = divmod(channel, len(inputs))
        group, inside = divmod(inputs[unit], PROCESSORS_PER_GROUP)
        offset = offsets[group]
        if offset is None:
            offset = _NOBODY - PROCESSORS * len(values)  # nowhere
        if layer.broadcast:
            index = PROCESSORS_PER_GROUP * number + inside % 4 * 4 + inside // 4
        else:  # in one group there is one pass
            in_last = group == last // PROCESSORS_PER_GROUP
            span = last % PROCESSORS_PER_GROUP + 1 if in_last else PROCESSORS_PER_GROUP
            base = first if group == first // PROCESSORS_PER_GROUP else PROCESSORS_PER_GROUP * group
            index = span * number + inputs[unit] - base
        yield group, offset + index, value


def _lost_data(network: MappedNetwork) -> Iterator[str]:
    """Yield what is overwritten before its time.

    As the reference tool has it: a layer must leave alone what the layer before it wrote (or the
    sample), and outputs that are delivered; a network may destroy older data.
    """
    delivered = {layer.index for layer in network.outputs()}
    for step in memory_steps(network, {}):
        layer = network.layer(step.layer)
        previous = network.predecessor(layer)
        if previous is not None and previous.streaming:
            continue  # its output is in a ring buffer
        protected = delivered | {-1 if previous is None else previous.index}
        yield from _losses(step, layer, protected)


def _losses(step: MemoryStep, layer: MappedLayer, protected: set[int]) -> Iterator[str]:
    for loss in step.losses:
        if loss.owner in protected and not (loss.own_input and layer.in_place):
            what = "the sample" if loss.owner < 0 else f"layer {loss.owner}"
            yield f"{layer}: overwrites 0x{loss.begin:x} to 0x{loss.end - 1:x} of {what}"

"""Data memory: which words a layer reads and writes, and whether they collide.

Source: docs/hardware/memory.md, "Data memory".
"""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from ai8xtools.diagnostics import Diagnostic, Severity
from ai8xtools.synthesis.facts import NO_ROOM
from ai8xtools.synthesis.mapping import MappedLayer, MappedNetwork
from ai8xtools.synthesis.network import NETWORK_INPUT
from ai8xtools.synthesis.place.inplace import works_in_place
from device.chip import INSTANCES, WORD_BYTES
from device.masks import instances

_NOBODY = -2


def output_words(layer: MappedLayer) -> NDArray[np.int64]:
    """Return the words that a layer writes in each of its output instances, in order.

    The first axis counts pixels (row major), the second output passes, the third the words of a
    32-bit value's lanes. A spread kernel on two-dimensional hardware also writes pixels in front
    and behind that are not part of the output.
    """
    size = layer.output_words_per_value
    pixels = layer.out_dim[0] * layer.out_dim[1] + layer.hardware.surplus_words
    steps = np.arange(pixels * layer.out_passes) * size * (layer.write_gap + 1)
    begin = (layer.out_offset - layer.hardware.leading_bytes) // WORD_BYTES
    words = begin + steps[:, None] + np.arange(size)
    return words.reshape(pixels, layer.out_passes, size)


def input_words(layer: MappedLayer) -> NDArray[np.int64]:
    """Return the words that the first layer's input takes in each of its instances."""
    rows, columns = layer.in_dim
    pixels = rows * columns
    count = -(-pixels // 4) if layer.channels_first else pixels * layer.in_passes * layer.operands
    return layer.in_offset // WORD_BYTES + np.arange(count)


def check_overlap(
    network: MappedNetwork, problems: list[Diagnostic], severity: Severity = Severity.ERROR
) -> None:
    """Complain about a layer that overwrites its own input or an output that must survive.

    Older data may be overwritten: only the direct predecessor's output is still needed, and the
    outputs of layers that are delivered in the end.
    """
    words = network.chip.instance_stride // WORD_BYTES
    live = np.full((INSTANCES, words), _NOBODY, np.int16)
    kept = live.copy()
    outputs = {layer.index for layer in network.outputs()}
    first = network.first
    if not network.input_port.is_fifo:
        for instance in instances(first.processors):
            live[instance, input_words(first) % words] = -1
    for layer in network.executed():
        if layer.streaming and not _next_streams(layer, network):
            continue
        written = output_words(layer).reshape(-1) % words
        if not layer.streaming:
            owners: set[int] = set()
            for instance in instances(layer.output_processors):
                overwritten = live[instance, written]
                owners.update(overwritten[overwritten > _NOBODY].tolist())
            if works_in_place(layer):
                owners -= {NETWORK_INPUT if s < 0 else s for s in read_by(layer, network)} - outputs
            if owners:
                free = _free_offset(live[:, : network.chip.instance_bytes // WORD_BYTES], layer)
                problems.append(_complaint(network, layer, min(owners), free, severity))
                if free is not None:  # the layers behind are judged as if this had been mended
                    written = written + (free - layer.out_offset) // WORD_BYTES
        current = np.full_like(live, _NOBODY)
        if not layer.streaming:
            for instance in instances(layer.output_processors):
                current[instance, written] = layer.index
        if _next_streams(layer, network):
            live = np.maximum(live, current)
        elif layer.index in outputs:
            kept = np.maximum(kept, current)
            live = kept.copy()
        else:
            live = np.maximum(kept, current)


def read_by(layer: MappedLayer, network: MappedNetwork) -> tuple[int, ...]:
    """Return what a layer reads: layers by index, or the sample."""
    previous = network.predecessor(layer)
    return layer.sources or (NETWORK_INPUT if previous is None else previous.index,)


def _next_streams(layer: MappedLayer, network: MappedNetwork) -> bool:
    position = network.order.index(layer.index)
    following = network.order[position + 1 : position + 2]
    return bool(following) and network.layer(following[0]).streaming


def _free_offset(live: NDArray[np.int16], layer: MappedLayer) -> int | None:
    """Return the lowest offset from which on a layer's output destroys nothing, in bytes."""
    needed = output_words(layer).reshape(-1)
    span = int(needed[-1] - needed[0]) + 1
    taken = np.flatnonzero((live[list(instances(layer.output_processors))] != _NOBODY).any(axis=0))
    begins = np.concatenate([[0], taken + 1])
    ends = np.concatenate([taken, [live.shape[1]]])
    starts = begins[ends - begins >= span]
    if not len(starts):
        return None
    return int(starts[0]) * WORD_BYTES + layer.hardware.leading_bytes


def _missing_gap(
    network: MappedNetwork, layer: MappedLayer, owner: int
) -> tuple[MappedLayer, str] | None:
    """Return the operand that lacks a gap, and which; None if that is not why data is lost.

    It is the layer that writes over others, or the one whose output is written over.
    """
    for reader in network.layers:
        sources = [network.layer(i) for i in reader.sources or () if i >= 0]
        if not reader.combination or layer not in sources:
            continue
        needed = reader.operands * (reader.read_gap + 1) - 1
        for source in (layer, *(x for x in sources if x.index == owner)):
            if source.write_gap != needed:
                return source, (
                    f"Add write_gap: {needed} to {source}: {reader} combines its output with "
                    "others, word by word."
                )
    return None


def _complaint(
    network: MappedNetwork, layer: MappedLayer, owner: int, free: int | None, severity: Severity
) -> Diagnostic:
    """A layer writes while it still reads; outputs of the network must stay until the end."""
    what = "the input data" if owner < 0 else f"the output of {network.layer(owner)}"
    written = output_words(layer)
    begin, end = int(written.min()) * WORD_BYTES, int(written.max() + 1) * WORD_BYTES
    there = f"0x{begin:x} to 0x{end - 1:x}"
    gap = _missing_gap(network, layer, owner)
    if gap is not None:
        lacking, remedy = gap
        message = f"the output at {there} overwrites {what}, which is still needed"
        if lacking is not layer:
            message = f"the output is overwritten by that of {layer}, at {there}"
        keys = ("write_gap", "out_offset")
        return lacking.diagnostic("E404", message, keys, remedy, severity, NO_ROOM)
    return layer.diagnostic(
        "E404",
        f"the output at {there} overwrites {what}, which is still needed",
        "out_offset",
        "There is no room for the whole output beside it; pool more, or use other processors."
        if free is None
        else f"The lowest out_offset that leaves it alone is 0x{free:x}.",
        severity,
        NO_ROOM,
    )

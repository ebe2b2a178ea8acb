"""Data memory over time: what each executed layer reads, writes, and must leave alone.

Unlike the check of overlaps, which judges as the reference tool does, this follows every reader:
data is alive from the layer that writes it to the last one that reads it, and to the end where it
is delivered. Offsets are bytes from the start of a memory instance.
Source: docs/hardware/memory.md, "Data memory"; docs/hardware/streaming.md, "Registers".
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping

import numpy as np

from ai8xtools.synthesis.mapping import MappedLayer, MappedNetwork
from ai8xtools.synthesis.memory import DataLoss, DataRange, MemoryStep
from ai8xtools.synthesis.network import DATA_BUFFER, NETWORK_INPUT
from ai8xtools.synthesis.place.data import input_words
from device.chip import WORD_BYTES
from device.masks import instances


def memory_steps(network: MappedNetwork, rings: Mapping[int, int]) -> Iterator[MemoryStep]:
    """Yield the data memory at each executed layer, in the order of execution.

    `rings` gives the words of the ring buffer that a streaming layer reads, by layer index; what
    arrives there is never in memory as a whole.
    """
    held = {
        data.owner: data
        for data in (_input(network), *_outputs(network, rings))
        if data is not None
    }
    last = _last_readers(network)
    for position, layer in enumerate(network.executed()):
        read = sources(layer, network)
        output = held[layer.index]
        inputs = tuple(held[s] for s in read if s in held)
        alive = tuple(
            held[owner]
            for owner in (NETWORK_INPUT, *network.order[:position])
            if owner in held and owner not in read and last.get(owner, -1) > position
        )
        losses = () if layer.streaming else tuple(_losses(output, inputs, alive))
        yield MemoryStep(layer.index, inputs, output, alive, losses)


def sources(layer: MappedLayer, network: MappedNetwork) -> tuple[int, ...]:
    """Return what a layer reads, each source once: layers by index, NETWORK_INPUT for the sample.

    The rolling buffer is left out, it has no memory of its own.
    """
    previous = network.predecessor(layer)
    default = NETWORK_INPUT if previous is None else previous.index
    return tuple(s for s in dict.fromkeys(layer.sources or (default,)) if s != DATA_BUFFER)


def _last_readers(network: MappedNetwork) -> dict[int, int]:
    """Return by owner the last position in the order at which its data is needed."""
    last: dict[int, int] = {}
    for position, layer in enumerate(network.executed()):
        last |= dict.fromkeys(sources(layer, network), position)
    return last | {layer.index: len(network.order) for layer in network.outputs()}


def _input(network: MappedNetwork) -> DataRange | None:
    """Return the sample in memory; through a FIFO it never lies there as a whole."""
    first = network.first
    if network.input_port.is_fifo:
        return None
    words = input_words(first)
    return DataRange(
        NETWORK_INPUT, instances(first.processors), int(words[0]) * WORD_BYTES, len(words)
    )


def _outputs(network: MappedNetwork, rings: Mapping[int, int]) -> Iterator[DataRange]:
    """Yield the output of every executed layer: as a whole, or the ring buffer of its reader."""
    executed = tuple(network.executed())
    for layer, reader in zip(executed, (*executed[1:], None), strict=True):
        words = rings.get(reader.index) if reader is not None else None
        if reader is not None and words:
            yield DataRange(layer.index, instances(reader.processors), reader.in_offset, words)
            continue
        piece = WORD_BYTES * layer.output_words_per_value
        yield DataRange(
            layer.index,
            instances(layer.output_processors),
            layer.out_offset // WORD_BYTES * WORD_BYTES,
            layer.out_dim[0] * layer.out_dim[1] * layer.out_passes,
            piece,
            piece * (layer.write_gap + 1),
        )


def _losses(
    written: DataRange, inputs: tuple[DataRange, ...], alive: tuple[DataRange, ...]
) -> Iterator[DataLoss]:
    """Yield what an output destroys."""
    for data in (*inputs, *alive):
        loss = overlap(written, data, own_input=data in inputs)
        if loss is not None:
            yield loss


def overlap(written: DataRange, data: DataRange, *, own_input: bool = False) -> DataLoss | None:
    """Return what is lost of data when something is written; None if the two are apart."""
    shared = tuple(i for i in data.instances if i in written.instances)
    if not shared or data.begin >= written.end or written.begin >= data.end:
        return None
    common = np.intersect1d(data.words(), written.words(), assume_unique=True)
    if not len(common):
        return None
    end = int(common[-1]) + WORD_BYTES
    return DataLoss(data.owner, shared, int(common[0]), end, own_input)

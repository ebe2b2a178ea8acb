"""Input data, expected output and the order in which outputs are delivered.

Source: docs/hardware/memory.md, "Data memory"; docs/generated-project.md, "The output".
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from dataclasses import replace
from typing import assert_never

import numpy as np
from numpy.typing import NDArray

from ai8xtools.synthesis.encode.mlator import TransposerWords
from ai8xtools.synthesis.final_scales import final_scale, output_exponent
from ai8xtools.synthesis.layout import Delivery, InputPort
from ai8xtools.synthesis.mapping import MappedLayer, MappedNetwork
from ai8xtools.synthesis.network import Tensor
from ai8xtools.synthesis.place.data import input_words
from ai8xtools.synthesis.place.outputs import (
    Piece,
    delivered_scale,
    delivery_of,
    pieces_of,
    pixel_step,
)
from ai8xtools.synthesis.program import (
    ExpectedOutput,
    FifoStream,
    InputBlock,
    Program,
    TransposedChannel,
    UnloadLayer,
    UnloadPiece,
    Words,
    pattern,
)
from device import Chip
from device.chip import (
    FAST_FIFO_DATA,
    FAST_FIFO_STATUS,
    FIFO_DATA,
    FIFO_LANES,
    FIFO_STATUS,
    FIFOS,
    PROCESSORS_PER_INSTANCE,
    WORD_BYTES,
)
from device.masks import bits, group_slice, instances, mask_of
from device.packing import as_bytes, data_words, lane_mask, lane_words
from device.registers import FAST_FIFO_REGISTERS, SHARED_REGISTERS

_FRACTION = {8: 7, 32: 14}
"""Fractional bits of outputs whose layer is not known, by their width."""


def input_blocks(network: MappedNetwork, apb_base: int, *, fixed: bool) -> Iterator[InputBlock]:
    """Yield the words of the sample for each data memory instance, or a fixed pattern."""
    layer = network.first
    if network.layout.input_parts > 1:
        for block in _split_input(network, apb_base):
            yield replace(block, words=pattern(len(block.words))) if fixed else block
        return
    blocks = _planar_input if layer.channels_first else _interleaved_input
    for number, words in blocks(layer, network.sample):
        instance = number // PROCESSORS_PER_INSTANCE
        address = apb_base + network.chip.data_address(instance, layer.in_offset)
        if fixed:
            words = pattern(len(input_words(layer)))
        yield InputBlock(number, address, words)


def input_places(network: MappedNetwork, apb_base: int) -> NDArray[np.int32]:
    """Return which value is in each byte of an input's words, counted from 1; 0 for none.

    It follows from loading the values' numbers, a byte at a time.
    """
    sample = network.network.sample
    numbers = np.arange(1, sample.size + 1, dtype=np.int32)
    digits = numbers.view(np.int8).reshape(*sample.shape, -1).astype(np.int64)
    loaded_digits = []
    for plane in np.moveaxis(digits, -1, 0):
        numbered = replace(network, network=replace(network.network, sample=plane))
        loaded_digits.append(_input_bytes(numbered, apb_base))
    return np.stack(loaded_digits, axis=-1).view(np.int32)[:, 0]


def loaded_input(network: MappedNetwork, program: Program) -> Tensor | None:
    """Return the sample of which a program loads every word; None if there is none."""
    sample = network.network.sample
    places = input_places(network, program.apb_base)
    used = places > 0
    loaded = _bytes_of((*program.inputs, *program.fifo))
    if len(loaded) != len(places):
        return None
    values = loaded[used].view(np.int8).astype(np.int64)
    result = np.zeros(sample.size, np.int64)
    result[places[used] - 1] = values
    return (
        result.reshape(sample.shape) if np.array_equal(result[places[used] - 1], values) else None
    )


def _input_bytes(network: MappedNetwork, apb_base: int) -> NDArray[np.uint8]:
    if network.input_port.is_fifo:
        return _bytes_of(fifo_streams(network, apb_base))
    return _bytes_of(input_blocks(network, apb_base, fixed=False))


def _bytes_of(blocks: Iterable[InputBlock | FifoStream]) -> NDArray[np.uint8]:
    return np.concatenate([block.words.astype("<u4") for block in blocks]).view(np.uint8)


def _planar_input(layer: MappedLayer, sample: Tensor) -> Iterator[tuple[int, Words]]:
    """CHW: each word holds four successive pixels of one channel, one processor per instance."""
    for channel, processor in enumerate(bits(layer.processors)):
        yield processor, data_words(as_bytes(sample[channel]).reshape(-1))


def _split_input(network: MappedNetwork, apb_base: int) -> Iterator[InputBlock]:
    """CHW in parts of rows, each with the rows around it that the first layer's padding covers.

    Around the image these are zero. Parts begin at multiples of a fixed distance.
    Source: docs/generated-project.md, "Arrays".
    """
    layer, parts = network.first, network.layout.input_parts
    rows, pad = layer.in_dim[0] // parts, layer.pad[0]
    distance = network.input_part_distance
    image = np.pad(network.sample, ((0, 0), (pad, pad), (0, 0)))
    for channel, processor in enumerate(bits(layer.processors)):
        instance = processor // PROCESSORS_PER_INSTANCE
        for part in range(parts):
            offset = layer.in_offset + part * distance
            address = apb_base + network.chip.data_address(instance, offset)
            some = image[channel, part * rows : (part + 1) * rows + 2 * pad]
            yield InputBlock(processor, address, data_words(as_bytes(some).reshape(-1)))


def _interleaved_input(layer: MappedLayer, sample: Tensor) -> Iterator[tuple[int, Words]]:
    """HWC: each word holds a pixel of four channels; passes and operands follow each other."""
    share, passes, operands = layer.in_share, layer.in_passes, layer.operands
    pixels = sample.shape[1] * sample.shape[2]
    values = as_bytes(sample.reshape(operands, layer.in_channels, pixels))
    padded = np.zeros((operands, share * passes, pixels), np.uint8)
    padded[:, : layer.in_channels] = values
    by_pass = padded.reshape(operands, passes, share, pixels).transpose(3, 1, 0, 2)
    rank = {processor: i for i, processor in enumerate(bits(layer.processors))}
    for instance in instances(layer.processors):
        first = instance * PROCESSORS_PER_INSTANCE
        lanes = np.zeros((pixels, passes, operands, PROCESSORS_PER_INSTANCE), np.uint8)
        for lane in range(PROCESSORS_PER_INSTANCE):
            if first + lane in rank:
                lanes[..., lane] = by_pass[..., rank[first + lane]]
        yield first, data_words(lanes.reshape(-1))


def fifo_streams(network: MappedNetwork, apb_base: int) -> Iterator[FifoStream]:
    """Yield the words of the sample for each FIFO that is used.

    FIFO f feeds the first four processors of group f: with CHW data one channel, four pixels a
    word, else a pixel of up to four channels.
    """
    layer, sample = network.first, network.sample
    pixels = as_bytes(sample.reshape(sample.shape[0], -1))
    lanes = 1 if layer.channels_first else FIFO_LANES
    mask = network.input_processors
    used = [f for f in range(FIFOS) if group_slice(mask, f)][: -(-len(pixels) // lanes)]
    for k, fifo in enumerate(used):
        channels = pixels[k * lanes : (k + 1) * lanes]
        if layer.channels_first:
            words = data_words(channels.reshape(-1))
        else:
            fed = bits(group_slice(mask, fifo))
            by_lane = {lane: data for lane, data in enumerate(channels) if lane in fed}
            words = lane_words(by_lane, pixels.shape[1])
        registers = _fifo_registers(network.input_port, fifo, apb_base)
        progression = network.layout.progression
        rule = (progression.words, progression.step, progression.mask) if progression else ()
        yield FifoStream(fifo, *registers, words, *rule)


def _fifo_registers(port: InputPort, fifo: int, apb_base: int) -> tuple[int, int, int]:
    """Return the addresses of data and status of a FIFO, and the mask of what means full."""
    match port:
        case InputPort.FIFO:
            full = SHARED_REGISTERS["FIFO_STAT"].pack(full=mask_of([fifo]))
            return apb_base + FIFO_DATA + WORD_BYTES * fifo, apb_base + FIFO_STATUS, full
        case InputPort.FAST_FIFO | InputPort.FAST_FIFO_QUAD:
            full = FAST_FIFO_REGISTERS["STAT"].pack(full=1)
            return FAST_FIFO_DATA, FAST_FIFO_STATUS, full
        case InputPort.MEMORY:
            raise ValueError("input in data memory comes through no FIFO")
        case _:
            assert_never(port)


def expected_output(
    network: MappedNetwork, outputs: Mapping[int, Tensor], apb_base: int
) -> ExpectedOutput:
    """Return the words that the output layers leave in data memory, sorted by mask and address."""
    parts: list[tuple[Tensor, Tensor, Tensor, Tensor]] = []
    for layer in network.delivered(outputs):
        values = outputs[layer.index]
        flat = values.reshape(layer.out_channels, -1)
        source = delivery_of(layer)
        for piece in pieces_of(source):
            base = apb_base + network.chip.data_address(piece.instance, layer.out_offset)
            addresses = base + WORD_BYTES * (
                np.arange(flat.shape[1]) * pixel_step(source) + piece.word
            )
            make = _narrow_words if layer.output_width == 8 else _wide_words
            words = make(piece, flat, addresses)
            parts.append((*words, np.full(len(words[0]), layer.index, np.int64)))
    addresses, masks, values, layers = (np.concatenate(c) for c in zip(*parts, strict=True))
    order = np.lexsort((addresses, masks))
    return ExpectedOutput(
        addresses[order].astype(np.uint32),
        masks[order].astype(np.uint32),
        values[order].astype(np.uint32),
        layers[order].astype(np.int64),
    )


def _narrow_words(piece: Piece, flat: Tensor, addresses: Tensor) -> tuple[Tensor, Tensor, Tensor]:
    """8 bit: one word per pixel with each channel in its lane.

    The mask covers as many bytes as there are channels, from the lowest lane on: with unused lanes
    in between the uppermost are not compared (as in the reference tool).
    """
    compared = range(piece.lanes[0], piece.lanes[0] + len(piece.lanes))
    named = enumerate(piece.lanes, piece.channel)
    lanes = {lane: flat[channel] for channel, lane in named if lane in compared}
    words = lane_words(lanes, len(addresses)).astype(np.int64)
    mask = lane_mask(compared.start, len(compared))
    return addresses, np.full(len(addresses), mask, np.int64), words


def _wide_words(piece: Piece, flat: Tensor, addresses: Tensor) -> tuple[Tensor, Tensor, Tensor]:
    """32 bit: one word per lane; as many lanes from lane 0 on as there are channels.

    A lane without a channel is expected to be zero (as in the reference tool).
    """
    count = len(piece.lanes)
    by_lane = dict(zip(piece.lanes, range(piece.channel, piece.channel + count), strict=True))
    zeros = np.zeros(len(addresses), np.int64)
    values = [flat[by_lane[i]] if i in by_lane else zeros for i in range(count)]
    where = [addresses + WORD_BYTES * i for i in range(count)]
    masks = np.full(count * len(addresses), np.iinfo(np.uint32).max, np.int64)
    return np.concatenate(where), masks, np.concatenate(values)


def unload_layers(
    network: MappedNetwork, apb_base: int, ready_select: int = 0
) -> Iterator[UnloadLayer]:
    """Yield what `cnn_unload` copies: exactly the valid channels of each output layer.

    A list in the description replaces the output layers. Without marked layers it is the final
    one, also if the simulation ends before it.
    """
    ports = TransposerWords(network.chip, apb_base, ready_select)
    marked = [layer for layer in network.layers if layer.is_output] or [network.final]
    sources: list[tuple[Delivery, int, int | None]] = [
        (delivery_of(layer), layer.index, final_scale(layer.index, network.network))
        for layer in marked
    ]
    listed = [(d, -1, delivered_scale(d, network)) for d in network.layout.deliveries]
    for source, index, scale in listed or sources:
        exponent = (scale or 0) - _FRACTION[source.width]
        exponent = exponent if index < 0 else output_exponent(index, network.network)
        yield UnloadLayer(
            source.width,
            source.channels,
            source.dim[0] * source.dim[1],
            tuple(_unload_pieces(source, network.chip, apb_base)),
            index,
            tuple(_transposed(source, ports)),
            scale or 0,
            scale is not None,
            exponent=exponent,
        )


def _transposed(source: Delivery, ports: TransposerWords) -> Iterator[TransposedChannel]:
    """Yield the channels as the ports read them; none unless pixels stand in successive words."""
    if source.width == 8 and pixel_step(source) == 1:
        for piece in pieces_of(source):
            for lane in piece.lanes:
                yield ports.channel(piece.instance, lane, source.offset)


def _unload_pieces(source: Delivery, chip: Chip, apb_base: int) -> Iterator[UnloadPiece]:
    for piece in pieces_of(source):
        address = apb_base + chip.data_address(piece.instance, source.offset)
        yield UnloadPiece(
            address + WORD_BYTES * piece.word,
            piece.lanes,
            piece.channel,
            WORD_BYTES * pixel_step(source),
        )

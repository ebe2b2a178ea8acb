"""Everything about a layer's computation for the files of the debugging options.

Source: docs/generated-project.md, "Files for debugging".
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping

import numpy as np

from ai8xtools.synthesis.layer_data import LayerData, OutputWords
from ai8xtools.synthesis.mapping import MappedLayer, MappedNetwork
from ai8xtools.synthesis.network import Size, Tensor
from ai8xtools.synthesis.place.outputs import delivery_of, pieces_of, pixel_step
from ai8xtools.synthesis.simulate import Activations, LayerTrace
from ai8xtools.synthesis.simulate.operators import scale
from ai8xtools.synthesis.simulate.passes import pass_sums
from device import Chip
from device.chip import FLATTEN_LONG, WORD_BYTES
from device.packing import lane_words


def layer_data(
    network: MappedNetwork, activations: Activations, rings: Mapping[int, int], *, with_passes: bool
) -> Iterator[LayerData]:
    """Yield the data of every simulated layer; `rings` are the words of the ring buffers."""
    for layer in map(network.layer, network.simulated):
        trace = activations.traces[layer.index]
        yield _data(layer, trace, network, rings, with_passes=with_passes)


def _data(
    layer: MappedLayer,
    trace: LayerTrace,
    network: MappedNetwork,
    rings: Mapping[int, int],
    *,
    with_passes: bool,
) -> LayerData:
    weights = layer.hardware.weights
    own_ring = rings.get(layer.index, 0)
    return LayerData(
        index=layer.index,
        settings=tuple(_settings(layer, network.chip, own_ring)),
        operands=np.stack(trace.operands),
        unpooled=np.stack(trace.unpooled),
        pooled=np.stack(trace.pooled) if layer.pooling.reduces else None,
        value=trace.value,
        accumulator=trace.accumulator,
        scaled=scale(trace.accumulator, layer) if layer.has_weights else trace.accumulator,
        output=trace.output,
        weights=None if weights is None else weights.astype(np.int64),
        bias=layer.bias,
        words=output_words(layer, trace.output, network.chip, _target_ring(layer, network, rings)),
        pass_sums=pass_sums(trace.value, layer, layer.in_share)
        if with_passes and layer.has_weights
        else None,
    )


def _target_ring(layer: MappedLayer, network: MappedNetwork, rings: Mapping[int, int]) -> int:
    """Return the words of the ring buffer that a layer writes, 0 if there is none."""
    position = network.order.index(layer.index) + 1
    return rings.get(network.order[position], 0) if position < len(network.order) else 0


def output_words(layer: MappedLayer, values: Tensor, chip: Chip, ring: int) -> OutputWords:
    """Return the words that a layer's output [channel, row, column] takes in data memory.

    `ring` is the size of the ring buffer in words that they go round in, 0 for none.
    """
    source = delivery_of(layer)
    flat = values.reshape(layer.out_channels, -1)
    pixels = np.arange(flat.shape[1])
    parts = []
    for piece in pieces_of(source):
        start = piece.instance * chip.instance_stride // WORD_BYTES
        steps = pixels * pixel_step(source) + piece.word
        steps = (steps % ring if ring else steps) + layer.out_offset // WORD_BYTES + start
        channels = range(piece.channel, piece.channel + len(piece.lanes))
        if layer.output_width == 8:
            lanes = {lane: flat[x] for x, lane in zip(channels, piece.lanes, strict=True)}
            words = lane_words(lanes, len(pixels)).astype(np.int64)
            parts.append(_columns(steps, words, channels[0], channels[-1], pixels))
        else:  # the words of a pixel follow each other
            where = steps[:, None] + np.array(piece.lanes)
            wide = flat[channels[0] : channels[-1] + 1].T & 0xFFFFFFFF
            numbers = np.broadcast_to(channels, where.shape)
            parts.append(_columns(where, wide, numbers, numbers, pixels[:, None]))
    offsets, words, first, last, pixel = np.concatenate(parts, axis=1)
    return OutputWords(offsets, words, first, last, *np.divmod(pixel, layer.out_dim[1]))


def _columns(*values: Tensor | int) -> Tensor:
    """Return values of like shape, one row of numbers for each."""
    return np.stack([part.reshape(-1) for part in np.broadcast_arrays(*values)])


def _settings(layer: MappedLayer, chip: Chip, ring: int) -> Iterator[str]:
    """Yield the cells of a layer's line, from its number on."""
    hardware, pooling = layer.hardware, layer.pooling
    kind = ("avg" if pooling.average else "max") if pooling.active else "no"
    # Where the hardware runs something else, the zeros between the taps are in its kernel.
    emulated = (hardware.operator, hardware.kernel) != (layer.operator, layer.kernel)
    spread = 1 if emulated else layer.dilation
    yield str(layer.index)
    yield f"{chip.processor_words:x}"
    yield str(int(layer.streaming))
    yield f"{ring:x}"
    yield str(layer.output_width)
    yield f"{layer.processors:016x}"
    yield f"{layer.flat_passes:x}"
    yield str(int(layer.flat_passes >= FLATTEN_LONG))
    yield str(int(layer.flatten))
    yield layer.operator.value
    yield hardware.operator.value
    yield layer.combination.value if layer.combination else "none"
    yield str(layer.in_passes)
    yield str(layer.in_channels)
    yield from map(_pair, (hardware.in_dim, hardware.pooled_dim, hardware.out_dim))
    yield kind
    yield str(int(layer.pool_first))
    yield from map(_pair, (pooling.window, pooling.stride, pooling.dilation))
    yield str(layer.groups)
    yield from map(_pair, (hardware.pad, hardware.kernel, layer.stride))
    yield _pair((spread, spread))
    yield str(hardware.surplus_words)
    transposed = layer.operator.transposed
    yield str(layer.output_pad if transposed else 0)


def _pair(size: Size) -> str:
    return f"{size[0]}x{size[1]}"

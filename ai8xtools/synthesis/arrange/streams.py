"""Layers that work on rows as they arrive: where that is possible, and the rings they need.

Source: docs/hardware/streaming.md, "Rules" and "Ring buffers".
"""

from __future__ import annotations

from dataclasses import replace

from ai8xtools.synthesis.arrange.defaults import complete
from ai8xtools.synthesis.arrange.graph import sources
from ai8xtools.synthesis.arrange.values import Choice
from ai8xtools.synthesis.layout import LayerLayout, Layout
from ai8xtools.synthesis.mapping import map_network
from ai8xtools.synthesis.mapping.hardware import hardware_for, widened
from ai8xtools.synthesis.network import NETWORK_INPUT, Layer, Network
from ai8xtools.synthesis.options import StreamOptions
from ai8xtools.synthesis.place.streams import place_streams
from device import Chip
from device.chip import FIFO_LANES, FIFOS


def obstacle(network: Network, chip: Chip, choice: Choice) -> str | None:
    """Return why the sample cannot arrive in this way; None if it can."""
    first = network.first
    if choice.planar and (first.in_channels > 16 or first.operands > 1):
        return f"{first.in_channels * first.operands} channels, the limit is 16"
    moved = choice.port.is_fifo or (first.has_weights and not first.depthwise)
    if choice.planar and (first.flatten or not moved):
        return f"{first} needs interleaved channels"
    if choice.port.is_fifo:
        limit = FIFOS if choice.planar else FIFOS * FIFO_LANES
        if first.in_channels > limit:
            return f"{first.in_channels} channels, the FIFOs take {limit}"
        if first.operands > 1 or first.flatten:
            return f"{first} does not read a plain image"
    return _stream_obstacle(network, chip, choice) if choice.streamed else None


def _stream_obstacle(network: Network, chip: Chip, choice: Choice) -> str | None:
    count, layers = choice.streamed, list(network.executed())
    if count > min(chip.max_streaming_layers, len(layers)):
        return f"there are {min(chip.max_streaming_layers, len(layers))} layers to stream"
    for position, layer in enumerate(layers[:count]):
        expected = layers[position - 1].index if position else NETWORK_INPUT
        if layer.flatten or layer.operands > 1 or sources(network, layer) != (expected,):
            return f"{layer} does not read the rows of the layer before alone"
        if not layer.has_weights and not chip.streams_passthrough:
            return f"{layer} has no convolution"
        if hardware_for(layer, None).surplus_words:
            return f"{layer} has a spread kernel"
        other = _other_reader(network, layer, position, count)
        if other:
            return other
    readers = [x for x in layers[1:] if NETWORK_INPUT in sources(network, x)]
    if readers:
        return f"the input is also read by {readers[0]}"
    return _end_obstacle(layers[count - 1], chip)


def _other_reader(network: Network, layer: Layer, position: int, count: int) -> str | None:
    """The rows of a layer inside the stream are gone when the next layer has read them."""
    if position == count - 1:
        return None
    if any(layer is x for x in network.outputs()):
        return f"{layer} is delivered"
    for reader in list(network.executed())[position + 2 :]:
        if layer.index in sources(network, reader):
            return f"{layer} is also read by {reader}"
    return None


def _end_obstacle(last: Layer, chip: Chip) -> str | None:
    """MAX78000 ends a stream with rows of padding; a 1x1 kernel in a stream has them."""
    if not chip.pads_last_stream or not last.has_weights:
        return None
    padded, _ = hardware_for(widened(last) if last.pointwise else last, None).pad
    return None if padded else f"{last}, the last to stream, has no padding"


def rings_of(
    network: Network, chip: Chip, choice: Choice, options: StreamOptions
) -> dict[int, int]:
    """Return the words of the ring from which each streaming layer reads."""
    if not choice.streamed:
        return {}
    layers = {
        layer.index: LayerLayout(
            processors=1,
            output_processors=1,
            streaming=position < choice.streamed,
            channels_first=choice.planar and position == 0,
        )
        for position, layer in enumerate(network.executed())
    }
    light = replace(
        network, layers=tuple(replace(x, weights=None, bias=None) for x in network.layers)
    )
    layout = complete(light.layers, light.order, Layout(layers=layers, input_port=choice.port))
    streams = place_streams(map_network(light, layout, chip), options)
    return {i: s.rollover for i, s in streams.items() if layout.layers[i].streaming}

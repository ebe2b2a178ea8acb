"""The tensors of a network: how large they are, how long they live, where they may begin.

Source: docs/placement.md, "Places that are left open".
"""

from __future__ import annotations

from collections.abc import Mapping

from ai8xtools.synthesis.arrange.graph import pixels_of, sources
from ai8xtools.synthesis.arrange.values import Choice, StoredTensor
from ai8xtools.synthesis.mapping.hardware import hardware_for
from ai8xtools.synthesis.network import DATA_BUFFER, NETWORK_INPUT, Layer, Network
from device.channels import channels_per_pass, passes
from device.chip import FIFO_LANES, FIFOS, INSTANCES, PROCESSORS, PROCESSORS_PER_GROUP


def starts_of(span: int) -> tuple[int, ...]:
    """Return the processors at which data of a pass may begin: first ones of an instance."""
    return tuple(range(0, PROCESSORS - span + 1, 4))


def tensors_of(
    network: Network, choice: Choice, rings: Mapping[int, int]
) -> tuple[StoredTensor, ...]:
    """Return the sample, the rolling buffer if there is one, and every result.

    `rings` has the words of the ring from which a streaming layer reads, by layer index.
    """
    tensors = [_sample(network, choice, rings)]
    if network.buffer is not None:
        tensors.append(_buffer(network))
    for position, layer in enumerate(network.executed()):
        if not (layer.buffer_shift or layer.buffer_insert):
            tensors.append(_result(network, layer, position, choice, rings))
    return tuple(tensors)


def owner_of(layer: Layer) -> int:
    """Return whose tensor a layer writes: its own, or the rolling buffer."""
    return DATA_BUFFER if layer.buffer_shift or layer.buffer_insert else layer.index


def last_reader(network: Network, owner: int) -> int:
    """Return the position of the last layer that reads a tensor; -1 if none does."""
    readers = [p for p, x in enumerate(network.executed()) if owner in sources(network, x)]
    return max(readers, default=-1)


def _sample(network: Network, choice: Choice, rings: Mapping[int, int]) -> StoredTensor:
    first = network.first
    pixels, share = pixels_of(network, NETWORK_INPUT), channels_per_pass(first.in_channels)
    pattern, starts = (1 << share) - 1, starts_of(share)
    words = pixels * passes(first.in_channels) * first.operands
    if choice.planar:
        words = -(-pixels // 4)
        step = PROCESSORS_PER_GROUP if choice.port.is_fifo else PROCESSORS // INSTANCES
        pattern = sum(1 << step * i for i in range(share))
        starts = (0,) if choice.port.is_fifo else starts_of(pattern.bit_length())
    elif choice.port.is_fifo:
        pattern, starts = _through_fifo(share)
    dies = max(last_reader(network, NETWORK_INPUT), 0)
    if choice.streamed:
        words, dies = rings[first.index] + 1, choice.streamed - 1
    return StoredTensor(
        NETWORK_INPUT, pattern, starts, words, -1, dies,
        width=share, passes=passes(first.in_channels), pixels=pixels,
    )  # fmt: skip


def _through_fifo(channels: int) -> tuple[int, tuple[int, ...]]:
    """Each FIFO feeds the first processors of one group."""
    if channels <= FIFO_LANES:
        return (1 << channels) - 1, tuple(range(0, PROCESSORS, PROCESSORS_PER_GROUP))
    lanes = range(min(channels, FIFOS * FIFO_LANES))
    return sum(1 << i // FIFO_LANES * PROCESSORS_PER_GROUP + i % FIFO_LANES for i in lanes), (0,)


def _buffer(network: Network) -> StoredTensor:
    """It is alive in every inference, from the first to the last."""
    assert network.buffer is not None
    channels, pixels = network.buffer.channels, pixels_of(network, DATA_BUFFER)
    share, count = channels_per_pass(channels), passes(channels)
    return StoredTensor(
        DATA_BUFFER, (1 << share) - 1, starts_of(share), pixels * count, -1, len(network.order),
        width=share, passes=count, pixels=pixels,
    )  # fmt: skip


def _result(
    network: Network, layer: Layer, position: int, choice: Choice, rings: Mapping[int, int]
) -> StoredTensor:
    hardware = hardware_for(layer, None)
    share, count = channels_per_pass(layer.out_channels), passes(layer.out_channels)
    pixels = layer.out_dim[0] * layer.out_dim[1]
    size = layer.output_width // 8
    leading = hardware.leading_bytes // 4
    words = (pixels + hardware.surplus_words) * count * size + leading
    born, dies = position, max(last_reader(network, layer.index), position + 1)
    if any(layer is x for x in network.outputs()):
        dies = len(network.order)
    if position < choice.streamed - 1:
        words, born, dies = rings[layer.index + 1] + 1, -1, choice.streamed - 1
    elif position == choice.streamed - 1:
        words, born = words + 1, -1
    return StoredTensor(
        layer.index, (1 << share) - 1, starts_of(share), words, born, dies,
        width=share, passes=count, pixels=pixels, leading=leading,
    )  # fmt: skip


def widens(layer: Layer, choice: Choice) -> bool:
    """Whether a 1x1 kernel runs as 3x3: in a stream, or directly behind it."""
    near = choice.streamed > 0 and layer.index <= choice.streamed
    return near and layer.index <= 8 and layer.pointwise and not layer.bypass


def skipped_words(network: Network, layer: Layer) -> int:
    """Return the words in front of what a layer reads: cropped rows, entries of the buffer."""
    if layer.buffer_shift:
        assert network.buffer is not None
        return layer.buffer_shift * network.buffer.width
    return layer.in_crop[0] * layer.in_dim[1] * passes(layer.in_channels) * layer.operands


def words_in_front(network: Network, layer: Layer) -> int:
    """Return the words in front of what a layer writes into the rolling buffer."""
    if not layer.buffer_insert or network.buffer is None:
        return 0
    return (network.buffer.entries - layer.buffer_insert) * network.buffer.width

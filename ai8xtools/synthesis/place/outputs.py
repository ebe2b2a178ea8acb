"""Where the values of an output stand in data memory, piece by piece.

Source: docs/generated-project.md, "The output".
"""

from __future__ import annotations

from collections.abc import Iterator

from ai8xtools.synthesis.final_scales import final_scale
from ai8xtools.synthesis.layout import Delivery
from ai8xtools.synthesis.mapping import MappedLayer, MappedNetwork
from ai8xtools.values import frozen
from device.channels import channels_per_pass, passes
from device.chip import PROCESSORS_PER_INSTANCE, WORD_BYTES
from device.masks import bits


def delivery_of(layer: MappedLayer) -> Delivery:
    """Return where a layer's output lies in data memory."""
    return Delivery(
        layer.output_processors,
        layer.out_channels,
        layer.out_dim,
        layer.out_offset,
        layer.output_width,
        layer.write_gap,
    )


@frozen
class Piece:
    """Channels of one output pass that share an instance: `count` of them from `channel` on."""

    instance: int
    lanes: tuple[int, ...]
    channel: int
    word: int


def pieces_of(source: Delivery) -> Iterator[Piece]:
    """Yield the pieces of an output, pass by pass, instances ascending; only valid channels."""
    size = source.width // 8
    lanes_of: dict[int, tuple[int, ...]] = {}
    for processor in bits(source.processors):
        instance, lane = divmod(processor, PROCESSORS_PER_INSTANCE)
        lanes_of[instance] = (*lanes_of.get(instance, ()), lane)
    channel = 0
    for output_pass in range(passes(source.channels)):
        remaining = min(channels_per_pass(source.channels), source.channels - channel)
        for instance, available in lanes_of.items():
            lanes = available[:remaining]
            if lanes:
                word = output_pass * size * (source.write_gap + 1)
                yield Piece(instance, lanes, channel, word)
            channel += len(lanes)
            remaining -= len(lanes)


def pixel_step(source: Delivery) -> int:
    """Words from one pixel of an output to the next."""
    return passes(source.channels) * source.width // 8 * (source.write_gap + 1)


def delivered_scale(delivery: Delivery, network: MappedNetwork) -> int | None:
    """Return the final scale of the layers whose output lies where data are delivered from.

    The last one that writes there counts, and if it does not write all of it, the others as well.
    None if they disagree.
    """
    uncovered, scales = set(_words(delivery)), set[int]()
    for layer in reversed(list(network.executed())):
        written = set(_words(delivery_of(layer)))
        if written & uncovered:
            scales.add(final_scale(layer.index, network.network))
            uncovered -= written
    return scales.pop() if len(scales) == 1 else None if scales else 0


def _words(source: Delivery) -> Iterator[tuple[int, int]]:
    """Yield the words of data memory that hold an output: instance and word."""
    first, step = source.offset // WORD_BYTES, pixel_step(source)
    for piece in pieces_of(source):
        lanes = piece.lanes if source.width == 32 else (0,)
        for pixel in range(source.dim[0] * source.dim[1]):
            for lane in lanes:
                yield piece.instance, first + piece.word + pixel * step + lane

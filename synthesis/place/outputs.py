"""Where the values of an output stand in data memory, piece by piece.

Source: docs/generated-project.md, "The output".
"""

from __future__ import annotations

from collections.abc import Iterator

from device.channels import channels_per_pass, passes
from device.chip import PROCESSORS_PER_INSTANCE
from device.masks import bits
from synthesis.layout import Delivery
from synthesis.mapping import MappedLayer
from values import frozen


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

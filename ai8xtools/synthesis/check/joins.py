"""Where a layer that joins or combines others reads, and where these write.

It is right exactly if each channel is read where its layer writes it, and no source that is written
later overwrites it: lanes of a word in front of those that a layer uses become zero.
Source: docs/hardware/memory.md, "Interleaved data (HWC)" and "Joined inputs".
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from itertools import combinations

import numpy as np
from numpy.typing import NDArray

from ai8xtools.synthesis.mapping import MappedLayer
from ai8xtools.values import frozen
from device.chip import PROCESSORS_PER_INSTANCE, WORD_BYTES
from device.masks import bits


@frozen
class Words:
    """Where one channel stands: its processor, the word of the first pixel, the distance to the
    next.
    """

    processor: int
    first: int
    step: int


def is_read_right(
    layer: MappedLayer, sources: tuple[MappedLayer, ...], order: Sequence[int]
) -> bool | None:
    """Whether a layer finds the channels of its sources, of equal size, where it reads them.

    They are joined one behind the other, or combined. `order` are the indices of all layers as they
    are executed. None if the layer has one source only, or if it is wrong in a way that other
    complaints tell.
    """
    if not _is_judged(layer, sources):
        return None
    written = [place for source in _as_they_stand(layer, sources) for place in _written(source)]
    pixels = layer.in_dim[0] * layer.in_dim[1]
    matches = all(
        (a.processor, a.first) == (b.processor, b.first) and (a.step == b.step or pixels == 1)
        for a, b in zip(written, _read(layer), strict=True)
    )
    in_time = sorted(sources, key=lambda source: order.index(source.index))
    return matches and not any(_overwrites(b, a) for a, b in combinations(in_time, 2))


def _as_they_stand(layer: MappedLayer, sources: tuple[MappedLayer, ...]) -> tuple[MappedLayer, ...]:
    """Return operands in the order of their words, as far as the result does not depend on it."""
    if not layer.combination:
        return sources
    fixed = 0 if layer.combination.commutative else 1  # what others are subtracted from
    rest = sorted(sources[fixed:], key=lambda source: source.out_offset)
    return (*sources[:fixed], *rest)


def _is_judged(layer: MappedLayer, sources: tuple[MappedLayer, ...]) -> bool:
    if layer.streaming or any(layer.in_crop) or layer.channel_skip:
        return False
    if len(sources) < 2 or len(sources) != len(layer.sources or ()):
        return False
    operands = layer.operands if layer.combination else 1
    channels = sum(source.out_channels for source in sources)
    return (
        len({source.out_dim for source in sources}) == 1
        and operands in (1, len(sources))
        and channels == operands * layer.in_channels
        and layer.processors.bit_count() == layer.in_share
        and all(
            source.output_processors.bit_count() == source.out_share and source.output_width == 8
            for source in sources
        )
    )


def _written(source: MappedLayer) -> Iterator[Words]:
    processors = bits(source.output_processors)
    distance = source.write_gap + 1
    for channel in range(source.out_channels):
        output_pass, place = divmod(channel, source.out_share)
        first = source.out_offset // WORD_BYTES + output_pass * distance
        yield Words(processors[place], first, source.out_passes * distance)


def _read(layer: MappedLayer) -> Iterator[Words]:
    processors = bits(layer.processors)
    operands = layer.operands if layer.combination else 1
    distance = operands * (layer.read_gap + 1)
    for operand in range(operands):
        for channel in range(layer.in_channels):
            input_pass, place = divmod(channel, layer.in_share)
            first = layer.in_offset // WORD_BYTES + input_pass * distance + operand
            yield Words(processors[place], first, layer.in_passes * distance)


def _overwrites(later: MappedLayer, earlier: MappedLayer) -> bool:
    """Whether a layer writes zeros into lanes that one executed before it has written."""
    if later.index == earlier.index or not _lanes_in_front(later) & earlier.output_processors:
        return False
    return bool(np.isin(_output_words(later), _output_words(earlier)).any())


def _lanes_in_front(layer: MappedLayer) -> int:
    """Return the processors up to the last used one of each instance."""
    mask = 0
    for processor in bits(layer.output_processors):
        lane = processor % PROCESSORS_PER_INSTANCE
        mask |= (2 << lane) - 1 << processor - lane
    return mask


def _output_words(layer: MappedLayer) -> NDArray[np.int64]:
    count = layer.out_dim[0] * layer.out_dim[1] * layer.out_passes
    return layer.out_offset // WORD_BYTES + np.arange(count) * (layer.write_gap + 1)

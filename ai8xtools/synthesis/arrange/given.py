"""Keys that the user gave: what they fix, and whether they can be kept together.

Each given value is followed through what ties data together, with the line that it came from.
Source: docs/placement.md, "Keys that are given".
"""

from __future__ import annotations

from collections import deque
from collections.abc import Iterator, Mapping, Sequence
from typing import assert_never

from ai8xtools.diagnostics import Diagnostic, DiagnosticError
from ai8xtools.synthesis.arrange.graph import Reading, channels_of, pass_places, reading, sources
from ai8xtools.synthesis.arrange.tensors import owner_of, skipped_words, words_in_front
from ai8xtools.synthesis.arrange.values import Choice, StoredTensor, Tie
from ai8xtools.synthesis.check.layout import mask_text
from ai8xtools.synthesis.layout import Layout
from ai8xtools.synthesis.network import DATA_BUFFER, Layer, Network
from ai8xtools.values import frozen
from device.channels import channels_per_pass
from device.masks import bits, lowest_bit, mask_of


@frozen
class Given:
    """What a value of a key means for one tensor: processors, or an offset in words."""

    tensor: int
    layer: Layer
    key: str
    value: int
    shown: str

    @property
    def line(self) -> str:
        """Say where the key stands."""
        place = self.layer.place_of(self.key)
        where = f"line {place.line}" if place.line else str(self.layer)
        return f"'{self.key}' in {where} says {self.shown}"


def given_masks(
    network: Network, layout: Layout, number: Mapping[int, int], reads: Sequence[Sequence[int]]
) -> Iterator[Given]:
    """Yield the processors of tensors that follow from `processors` and `output_processors`."""
    place = layout.buffer_place
    if place is not None and place.processors is not None and DATA_BUFFER in number:
        shown = mask_text(place.processors)
        yield Given(number[DATA_BUFFER], network.first, "data_buffer", place.processors, shown)
    for layer, parts in zip(network.executed(), reads, strict=True):
        fixed = layout.layers[layer.index]
        if fixed.processors is not None:
            masks = _parts_of(network, layer, fixed.processors, len(parts))
            for part, mask in zip(parts, masks, strict=True):
                yield Given(part, layer, "processors", mask, mask_text(fixed.processors))
        if fixed.output_processors is not None:
            mask = fixed.output_processors
            result = number[owner_of(layer)]
            yield Given(result, layer, "output_processors", mask, mask_text(mask))


def _parts_of(network: Network, layer: Layer, mask: int, count: int) -> list[int]:
    """Return the processors of each source of a layer that reads from a mask."""
    used = bits(mask)
    if len(used) != channels_per_pass(layer.in_channels):
        raise DiagnosticError(_count(layer, "processors", mask, layer.in_channels))
    match way := reading(network, layer):
        case Reading.ALONE | Reading.OPERANDS:
            return [mask] * count
        case Reading.SIDE_BY_SIDE:
            return list(_slices(network, layer, used))
        case Reading.PASS_BY_PASS:
            widths = _widths(network, layer)
            places = pass_places(network, layer)
            return [
                mask_of(used[place : place + width])
                for (_, place), width in zip(places, widths, strict=True)
            ]
        case _:
            assert_never(way)


def _widths(network: Network, layer: Layer) -> list[int]:
    return [channels_per_pass(channels_of(network, s)) for s in sources(network, layer)]


def _slices(network: Network, layer: Layer, used: tuple[int, ...]) -> Iterator[int]:
    first = 0
    for width in _widths(network, layer):
        yield mask_of(used[first : first + width])
        first += width


def _count(layer: Layer, key: str, mask: int, channels: int) -> Diagnostic:
    """A mask has a bit for each channel of a pass."""
    return layer.diagnostic(
        "E423",
        f"'{key}' {mask_text(mask)} names {mask.bit_count()} processors, {channels} channels need "
        f"{channels_per_pass(channels)}",
        key,
        "Correct it, or leave it out.",
    )


def given_offsets(
    network: Network,
    layout: Layout,
    number: Mapping[int, int],
    reads: Sequence[Sequence[int]],
    slot: Sequence[int],
    tensors: Sequence[StoredTensor],
) -> Iterator[Given]:
    """Yield the offsets of cells, in words, that follow from `in_offset` and `out_offset`."""
    place = layout.buffer_place
    if place is not None and place.offset is not None and DATA_BUFFER in number:
        tensor = number[DATA_BUFFER]
        shown = f"0x{place.offset:x}"
        yield Given(tensor, network.first, "data_buffer", place.offset // 4, shown)
    for layer, parts in zip(network.executed(), reads, strict=True):
        fixed = layout.layers[layer.index]
        result = number[owner_of(layer)]
        read = min(parts, key=lambda p: slot[p])
        for key, offset, tensor, front in (
            ("in_offset", fixed.in_offset, read,
             tensors[read].leading + skipped_words(network, layer)),
            ("out_offset", fixed.out_offset, result,
             tensors[result].leading + words_in_front(network, layer)),
        ):  # fmt: skip
            if offset is None:
                continue
            words = offset // 4 - front - slot[tensor]
            entry = Given(tensor, layer, key, words, f"0x{offset:x}")
            if offset % 4 or words < 0:
                raise DiagnosticError(_out_of_place(entry))
            yield entry


def _out_of_place(entry: Given) -> Diagnostic:
    """Offsets are words, and data before the valid part needs room."""
    return entry.layer.diagnostic(
        "E423",
        f"{entry.line}; the data that belongs there would begin between two words or below 0",
        entry.key,
        "Use a multiple of 4 that leaves room, or leave the key out.",
    )


def contradiction(first: Given, second: Given, chain: Sequence[str]) -> Diagnostic:
    """Two keys contradict each other about data that is tied together."""
    why = "; ".join(chain) or "both are about the same data"
    return second.layer.diagnostic(
        "E423",
        f"{first.line}, {second.line}, but they cannot both be kept: {why}",
        second.key,
        f"Leave out '{second.key}' here, or '{first.key}' of {first.layer}.",
    )


def shortest_chain(ties: Sequence[Tie], begin: int, end: int) -> list[str]:
    """Return why two tensors are tied: the reasons on the shortest way from one to the other."""
    came: dict[int, tuple[int, str]] = {begin: (begin, "")}
    waiting = deque([begin])
    while waiting and end not in came:
        item = waiting.popleft()
        for tie in ties:
            for here, there in ((tie.first, tie.second), (tie.second, tie.first)):
                if here == item and there not in came:
                    came[there] = item, tie.reason
                    waiting.append(there)
    chain: list[str] = []
    item = end
    while item != begin and item in came:
        item, reason = came[item]
        chain.append(reason)
    return list(dict.fromkeys(reversed(chain)))


def unfit(entry: Given, tensor: StoredTensor, choice: Choice) -> str | None:
    """Return why given processors cannot hold a tensor; None if they can."""
    if entry.value.bit_count() != tensor.pattern.bit_count():
        return f"{entry.line}, {tensor.pattern.bit_count()} processors are needed"
    special = tensor.owner == -1 and (choice.planar or choice.port.is_fifo)
    start = lowest_bit(entry.value)
    if special and (entry.value >> start != tensor.pattern or start not in tensor.starts):
        return f"{entry.line}, which {choice} does not reach"
    return None

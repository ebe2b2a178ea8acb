"""Ring buffers and parts of data memory: who is complained of, found again byte by byte.

Source: docs/hardware/streaming.md, "Ring buffers"; docs/hardware/execution.md, "Modes of MAX78002".
"""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Iterator
from dataclasses import replace
from random import Random
from typing import Any

import pytest

from ai8xtools.diagnostics import Severity
from ai8xtools.synthesis.mapping import MappedNetwork, map_network
from ai8xtools.synthesis.options import PlaceOptions, StreamOptions
from ai8xtools.synthesis.place.rings import check_rings, ring_words
from ai8xtools.synthesis.place.streams import Stream, place_streams
from device import MAX78000, MAX78002, Chip
from tests.synthesis.random_mapped import random_network

LIMITS = {
    "MAX78000": (2**14 - 1, 31, 2**12 - 1, 15, 2**17 - 1),
    "MAX78002": (2**15 - 1, 31, 2**14 - 1, 15, 2**18 - 1),
}
"""Start, both steps, passes before and words of a ring buffer: docs/hardware/registers.md."""

Place = tuple[set[int], int, int]
"""Instances, first and last byte."""


def instances(mask: int) -> set[int]:
    """Return the memory instances of processors."""
    return {p // 4 for p in range(64) if mask >> p & 1}


def meet(one: Place, other: Place) -> bool:
    """Whether two places have a byte in common."""
    common = range(max(one[1], other[1]), min(one[2], other[2]) + 1)
    return bool(one[0] & other[0]) and len(common) > 0


def output_bytes(layer: Any) -> int:
    """Bytes of a pass of outputs."""
    return 4 * (layer.out_dim[0] * layer.out_dim[1] + layer.hardware.surplus_words)


def complaints(
    network: MappedNetwork, streams: dict[int, Stream], stops: Severity, overlaps: Severity
) -> Iterator[tuple[str, int, Severity]]:
    """Yield code, layer and severity of what is wrong."""
    chip, error = network.chip, Severity.ERROR
    layers = {layer.index: layer for layer in network.layers}
    for index, stream in streams.items():
        earlier = [x for x in network.layers if x.index < index and layers[index].streaming]
        before = sum(-(-x.in_passes // 4) * 4 if x.tcalc else x.in_passes for x in earlier)
        values = (stream.start, stream.delta1, stream.delta2, before, stream.rollover)
        for value, limit in zip(values, LIMITS[chip.name], strict=True):
            if value > limit:
                yield "E406", index, error
    places: list[tuple[int, Place]] = []
    if network.input_port.is_fifo:
        for index, stream in streams.items():
            layer = layers[index]
            if layer.streaming:
                end = layer.in_offset + 4 * stream.rollover
                places.append((index, (instances(layer.processors), layer.in_offset, end)))
    for index, (_, begin, end) in places:
        layer = layers[index]
        if end not in range(chip.instance_bytes):
            yield "E407", index, stops
        if layer.processors & layer.output_processors:
            first = layer.out_offset - layer.hardware.leading_bytes
            last = layer.out_offset + end - begin
            if layer is network.terminating:
                last = max(last, layer.out_offset + output_bytes(layer) * layer.out_passes)
            if first in range(begin + 1, end + 1) or begin in range(first + 1, last + 1):
                yield "E408", index, stops
    if places:
        final = layers[places[-1][0]]
        end = final.out_offset + output_bytes(final) * (final.output_width // 8)
        places.append((-1, (instances(final.output_processors), final.out_offset, end)))
    for i, (index, one) in enumerate(places):
        for _, other in places[i + 1 :]:
            if meet(one, other):
                yield "E409", index, overlaps
    yield from parts(network)


def parts(network: MappedNetwork) -> Iterator[tuple[str, int, Severity]]:
    """Yield the layers that read ahead in a part that another stream, or their output, has."""
    size = network.chip.instance_bytes // {"MAX78000": 1, "MAX78002": 5}[network.chip.name]
    seen: set[int] = set()
    for index in network.order:
        layer = network.layer(index)
        part = layer.in_offset // size
        if layer.streaming:
            if layer.read_ahead and part in seen:
                yield "E440", index, Severity.ERROR
            seen.add(part)
        if layer.read_ahead:
            words = layer.operands * layer.in_passes * layer.in_dim[0] * layer.in_dim[1]
            written = output_bytes(layer) * layer.out_passes
            begin, end = layer.in_offset, layer.out_offset
            pairs = {
                (begin // size, end // size),
                ((begin + 4 * words - 1) // size, (end + written - 1) // size),
            }
            for one, other in pairs:
                if one == other:
                    yield "E411", index, Severity.ERROR


def crowded(rng: Random, network: MappedNetwork) -> MappedNetwork:
    """Return the network with its data close together, or near the end of the memory."""
    chip = network.chip
    around = rng.choice([0, 0, chip.instance_bytes // 5 - 600, chip.instance_bytes - 2000])
    layouts = {
        index: replace(
            layout,
            in_offset=max(0, around + 4 * rng.randrange(rng.choice([4, 60, 400]))),
            out_offset=max(40, around + 4 * rng.randrange(rng.choice([20, 60, 400]))),
        )
        for index, layout in network.layout.layers.items()
    }
    if rng.random() < 0.2:  # outputs that end where a part of the memory ends
        part = chip.instance_bytes // 5
        for layer in network.layers:
            end = part - output_bytes(layer) * layer.out_passes
            layouts[layer.index] = replace(layouts[layer.index], out_offset=max(40, end))
    return map_network(network.network, replace(network.layout, layers=layouts), chip)


@pytest.mark.parametrize("chip", [MAX78000, MAX78002], ids=lambda chip: chip.name)
def test_streams_that_share_a_byte_are_found(chip: Chip) -> None:
    rng = Random(f"rings of {chip.name}")
    met: Counter[str] = Counter()
    for _ in range(700):
        network = crowded(rng, random_network(rng, chip, streams=True))
        streams = place_streams(network, StreamOptions())
        if streams and rng.random() < 0.3:  # at the limits, and one beyond
            index = rng.choice([*streams])
            field, limit = rng.choice(
                [("start", 0), ("delta1", 1), ("delta2", 2), ("rollover", 4)]
            )  # fmt: skip
            value = LIMITS[chip.name][limit] + rng.randint(0, 1)
            streams[index] = replace(streams[index], **{field: value})
        stops, overlap = rng.random() < 0.5, rng.random() < 0.5
        options = PlaceOptions(stops_at_overlaps=stops, overlap_data=overlap)
        kinds = Severity.ERROR, Severity.WARNING
        wanted = complaints(network, streams, kinds[not stops], kinds[overlap])
        found = list(check_rings(network, streams, options))
        assert Counter(
            (d.code, int(d.message.split()[1].strip(":")), d.severity) for d in found
        ) == Counter(wanted)
        met.update(d.code for d in found)
        for diagnostic in found:
            _follow(network, streams, diagnostic)
    assert {"E406", "E407", "E408", "E409"} <= set(met)
    assert chip is MAX78000 or {"E440", "E411"} <= set(met)


def _follow(network: MappedNetwork, streams: dict[int, Stream], diagnostic: Any) -> None:
    """Move the data as the complaint says; it is gone, and one word less would not have done."""
    offset = re.search(r"(in_offset|out_offset).* 0x([0-9a-f]+)", diagnostic.remedy or "")
    index = int(diagnostic.message.split()[1].strip(":"))
    if diagnostic.code == "E407":
        assert bool(offset) == (4 * streams[index].rollover < network.chip.instance_bytes)
    if diagnostic.code not in ("E407", "E408") or not offset:
        return
    key, value = offset[1], int(offset[2], 16)
    step = 4 if diagnostic.code == "E407" else -4
    for by, remains in ((0, False), (step, True)):
        layouts = dict(network.layout.layers)
        layouts[index] = replace(layouts[index], **{key: value + by})
        moved = map_network(network.network, replace(network.layout, layers=layouts), network.chip)
        again = check_rings(moved, streams, PlaceOptions())
        codes = [d.code for d in again if f"layer {index}:" in d.message]
        assert (diagnostic.code in codes) == remains, (diagnostic, by)


def test_only_what_comes_through_a_fifo_goes_round() -> None:
    rng = Random("words of rings")
    for _ in range(100):
        network = random_network(rng, MAX78002, streams=True)
        streams = place_streams(network, StreamOptions())
        wanted = {i: s.rollover for i, s in streams.items() if network.layer(i).streaming}
        assert ring_words(network, streams) == (wanted if network.input_port.is_fifo else {})

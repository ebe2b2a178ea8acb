"""Limits of streams: fields of the registers, and the ring buffers in data memory.

Source: docs/hardware/streaming.md, "Registers", "Rules" and "Ring buffers";
docs/hardware/execution.md, "Power and clock".
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from itertools import combinations

from ai8xtools.diagnostics import Diagnostic, Severity
from ai8xtools.synthesis.facts import NO_ROOM
from ai8xtools.synthesis.mapping import MappedLayer, MappedNetwork
from ai8xtools.synthesis.options import PlaceOptions
from ai8xtools.synthesis.place.streams import Stream, passes_before
from ai8xtools.values import frozen
from device.chip import WORD_BYTES
from device.masks import instances

_REDUCE = "Pool less, or use a smaller image."


def ring_words(network: MappedNetwork, streams: Mapping[int, Stream]) -> dict[int, int]:
    """Return by layer index the words of the ring buffers that streaming layers read."""
    if not network.input_port.is_fifo:
        return {}
    return {
        index: stream.rollover
        for index, stream in streams.items()
        if network.layer(index).streaming
    }


def check_rings(
    network: MappedNetwork, streams: Mapping[int, Stream], options: PlaceOptions
) -> Iterator[Diagnostic]:
    """Complain about streams of a checked network."""
    for index, stream in streams.items():
        yield from _fields(network.layer(index), stream, network)
    rings = [
        Ring.of(network.layer(index), words)
        for index, words in ring_words(network, streams).items()
    ]
    severity = Severity.ERROR if options.stops_at_overlaps else Severity.WARNING
    for ring in rings:
        yield from _room(ring, network, severity)
        yield from _reach(ring, network, severity)
    yield from _collisions(rings, Severity.WARNING if options.overlap_data else Severity.ERROR)
    yield from _parts(network)


def _fields(layer: MappedLayer, stream: Stream, network: MappedNetwork) -> Iterator[Diagnostic]:
    """Registers of a few bits count how far streams run ahead of each other."""
    for what, value, register, field in (
        ("starts after {} words", stream.start, "STREAM1", "start"),
        ("advances by {} words", stream.delta1, "STREAM2", "delta1"),
        ("advances by {} words after a row", stream.delta2, "STREAM2", "delta2"),
        ("has {} passes before it", passes_before(layer, network), "STREAM2", "passes_before"),
        ("has a ring buffer of {} words", stream.rollover, "FMAX", "words"),
    ):
        limit = network.chip.layer_registers[register].by_name[field].limit
        if value > limit:
            yield layer.diagnostic(
                "E406",
                f"the stream {what.format(value)}, the limit is {limit}",
                ("pool_stride", "max_pool", "avg_pool", "streaming"),
                _REDUCE,
            )


@frozen
class Ring:
    """The bytes from `begin` to `end`, inclusive, in which a layer's input goes round."""

    layer: MappedLayer
    begin: int
    end: int
    instances: frozenset[int]

    @classmethod
    def of(cls, layer: MappedLayer, words: int) -> Ring:
        """Return the ring buffer that a layer reads."""
        end = layer.in_offset + WORD_BYTES * words
        return cls(layer, layer.in_offset, end, frozenset(instances(layer.processors)))

    @property
    def size(self) -> int:
        """Bytes up to the last one."""
        return self.end - self.begin

    def __str__(self) -> str:
        return f"the ring buffer at 0x{self.begin:x} to 0x{self.end:x}"


def _output_bytes(layer: MappedLayer) -> int:
    """Bytes of one pass of 8-bit outputs."""
    pixels = layer.out_dim[0] * layer.out_dim[1] + layer.hardware.surplus_words
    return WORD_BYTES * pixels


def _room(ring: Ring, network: MappedNetwork, severity: Severity) -> Iterator[Diagnostic]:
    """The words of a ring buffer must be in one memory instance."""
    limit = network.chip.instance_bytes
    if ring.end >= limit:
        yield ring.layer.diagnostic(
            "E407",
            f"{ring} ends beyond the {limit} bytes of a memory instance",
            "in_offset",
            f"The highest in_offset that fits is 0x{limit - ring.size - WORD_BYTES:x}."
            if ring.size < limit
            else _REDUCE,
            severity,
            effects=NO_ROOM,
        )


def _reach(ring: Ring, network: MappedNetwork, severity: Severity) -> Iterator[Diagnostic]:
    """Input and output of a layer on the same processors must not overlap."""
    layer = ring.layer
    output = layer.out_offset - layer.hardware.leading_bytes
    if not layer.processors & layer.output_processors:
        return
    if ring.begin < output <= ring.end:
        yield layer.diagnostic(
            "E408",
            f"{ring} reaches the output at 0x{output:x}",
            ("out_offset", "in_offset"),
            f"Use an out_offset of 0x{ring.end + WORD_BYTES + layer.hardware.leading_bytes:x} "
            "or more, or other output_processors.",
            severity,
            effects=NO_ROOM,
        )
    last = layer.out_offset + ring.size
    if layer is network.terminating:
        last = max(last, layer.out_offset + _output_bytes(layer) * layer.out_passes)
    if output < ring.begin <= last:
        yield layer.diagnostic(
            "E408",
            f"the output at 0x{layer.out_offset:x} to 0x{last:x} reaches {ring}",
            ("out_offset", "in_offset"),
            f"Use an in_offset of 0x{last + WORD_BYTES:x} or more, or other output_processors.",
            severity,
            effects=NO_ROOM,
        )


def _collisions(rings: list[Ring], severity: Severity) -> Iterator[Diagnostic]:
    """All streams run at the same time, so their buffers must not share bytes."""
    if not rings:
        return
    final = rings[-1].layer
    end = final.out_offset + _output_bytes(final) * final.output_words_per_value
    output = Ring(final, final.out_offset, end, frozenset(instances(final.output_processors)))
    names = [f"the ring buffer of {ring.layer}" for ring in rings]
    places = [*zip(rings, names, strict=True), (output, f"the output of {final}")]
    for (one, _), (other, name) in combinations(places, 2):
        if one.instances & other.instances and one.begin <= other.end and other.begin <= one.end:
            yield one.layer.diagnostic(
                "E409",
                f"{one} and {name} at 0x{other.begin:x} to 0x{other.end:x} share memory",
                ("in_offset", "out_offset"),
                "Move one of them with in_offset and out_offset, or to other processors.",
                severity,
                effects=NO_ROOM,
            )


def _parts(network: MappedNetwork) -> Iterator[Diagnostic]:
    """Streams that read ahead run at the same time, each in its own part of the memory."""
    part_bytes = network.chip.data_part_bytes
    seen: dict[int, MappedLayer] = {}
    for layer in network.executed():
        part = layer.in_offset // part_bytes
        if layer.streaming and layer.read_ahead and part in seen:
            yield layer.diagnostic(
                "E440",
                f"reads ahead, but its input begins in the same part of the memory as that of "
                f"{seen[part]} ({_part_text(part, part_bytes)})",
                ("in_offset", "readahead"),
                f"Move it to another part, or {layer.without('readahead')}.",
                effects=NO_ROOM,
            )
        if layer.streaming:
            seen.setdefault(part, layer)
        if layer.read_ahead:
            yield from _own_parts(layer, part_bytes)


def _own_parts(layer: MappedLayer, part_bytes: int) -> Iterator[Diagnostic]:
    """A layer that reads ahead must not read and write the same part of a memory instance."""
    rows, columns = layer.in_dim
    read = WORD_BYTES * layer.operands * layer.in_passes * rows * columns
    written = _output_bytes(layer) * layer.out_passes
    begins = layer.in_offset // part_bytes, layer.out_offset // part_bytes
    ends = (
        (layer.in_offset + read - 1) // part_bytes,
        (layer.out_offset + written - 1) // part_bytes,
    )
    cases = {"begin": begins, "end": ends} if begins != ends else {"begin and end": begins}
    for what, (part, other) in cases.items():
        if part == other:
            yield layer.diagnostic(
                "E411",
                f"reads ahead, but input and output {what} in the same part of the memory "
                f"({_part_text(part, part_bytes)})",
                ("out_offset", "in_offset", "readahead"),
                f"Move one of them to another part, or {layer.without('readahead')}.",
                effects=NO_ROOM,
            )


def _part_text(part: int, size: int) -> str:
    return f"0x{part * size:x} to 0x{(part + 1) * size - 1:x}"

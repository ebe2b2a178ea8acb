"""Containers that differ from a sound one in a single field, by one, under right checksums."""

from __future__ import annotations

import struct
from collections.abc import Iterator
from dataclasses import fields, replace
from itertools import pairwise
from typing import TypeVar

from ai8xtools.software.container import unpack
from ai8xtools.software.container.pack import pack, seal_checksums
from ai8xtools.software.container.records import (
    HEADER,
    HEADER_BYTES,
    LAYER,
    LAYER_BYTES,
    LISTED,
    NONE,
    TENSOR,
    TENSOR_BYTES,
    VECTORS,
    VECTORS_BYTES,
    Container,
    Element,
    Flag,
    Header,
    LayerRecord,
    Tensor,
    aligned,
)
from ai8xtools.software.container.soundness import intermediates

Record = TypeVar("Record", Tensor, LayerRecord)
_GROWING = ("rows", "columns", "channels", "count")


def planned(blob: bytes) -> bytes:
    """Return a container with a plan in which everything takes the lowest place that is free."""
    container = unpack(blob)
    tensors = list(container.tensors)
    placed: list[Tensor] = []
    for number in intermediates(container):
        tensor = tensors[number]
        living = [o for o in placed if o.first <= tensor.last and tensor.first <= o.last]
        starts = sorted({0, *(aligned(other.arena + other.size_bytes) for other in living)})
        start = next(
            s for s in starts
            if all(s + tensor.size_bytes <= o.arena or o.arena + o.size_bytes <= s for o in living)
        )  # fmt: skip
        tensors[number] = replace(tensor, arena=start)
        placed.append(tensors[number])
    top = max((aligned(t.arena + t.size_bytes) for t in placed), default=0)
    header = replace(container.header, flags=container.header.flags | Flag.PLAN, arena_bytes=top)
    return pack(replace(container, header=header, tensors=tuple(tensors)))


def neighbours(blob: bytes) -> Iterator[bytes]:
    """Yield files with a field one less, one more, and zero; also shapes and bytes together."""
    container = unpack(blob)
    header = container.header
    for number, tensor in enumerate(container.tensors):
        place = HEADER_BYTES + number * TENSOR_BYTES
        for other in (*_changed(tensor), *_resized(tensor), *_moved(tensor)):
            yield _with(blob, place, TENSOR.pack(*_values(other)))
    for number, layer in enumerate(container.layers):
        place = header.layer_table + number * LAYER_BYTES
        for changed in (*_changed(layer), *_at_the_ends(layer, header.arena_bytes)):
            yield _with(blob, place, LAYER.pack(*_values(changed)))
    for number, word in enumerate(container.listed):
        place = header.layer_table + len(container.layers) * LAYER_BYTES + 2 * number
        for value in {0, word - 1, word + 1, word ^ 0x100, 0xFFFF} - {word, -1, 0x10000}:
            yield _with(blob, place, value.to_bytes(2, "little"))
    yield from _joined(blob, container)
    yield from _headers(blob, header)
    yield from _counted(blob, header)


def _headers(blob: bytes, header: Header) -> Iterator[bytes]:
    """Yield files with another header, as near as the alignment of sections, or far away."""
    for field in fields(header):
        value = getattr(header, field.name)
        if not isinstance(value, int) or field.name in ("body_crc", "header_crc"):
            continue
        near = {value + step for step in (-16, -1, 1, 16)} | {0, value ^ Flag.VECTORS}
        for other in sorted(near | {1 << 31, (1 << 32) - 16, (1 << 32) - 1} - {value}):
            encrypted = field.name == "flags" and other & Flag.ENCRYPTED
            changed = replace(header, **{field.name: other})
            if not encrypted and _fits(changed):
                used = max(changed.total, HEADER_BYTES)
                yield seal_checksums(_with_header(blob, changed)[:used]) + blob[used:]


def _counted(blob: bytes, header: Header) -> Iterator[bytes]:
    """Yield files whose test vectors state other numbers or sizes, products beyond 64 bits too."""
    place, most = header.data + header.data_bytes, (1 << 32) - 1
    _, inputs, _, _ = stated = VECTORS.unpack_from(blob, place)
    others = [(most, most, 2, 0), (most, 2, most, 0), (most, 0, 0, 0), (0, most, most, 0)]
    for number, value in enumerate(stated):
        for other in {0, 1, value - 1, value + 1, value + 16, most} - {value, -1}:
            others.append((*stated[:number], other, *stated[number + 1 :]))
    room = header.total - place - VECTORS_BYTES
    for first in (0, 1, inputs):
        others += [(1, first, room - aligned(first) + step, 0) for step in (0, 1)]
        others += [(1, room - aligned(first) + step, first, 0) for step in (0, 1)]
    for one in others:
        yield _with(blob, place, VECTORS.pack(*one))


def _with_header(blob: bytes, header: Header) -> bytes:
    return HEADER.pack(*_values(header)) + blob[HEADER_BYTES:]


def _joined(blob: bytes, container: Container) -> Iterator[bytes]:
    """Yield files in which tensors share a place in the arena or in the data section."""
    numbers = [n for n, t in enumerate(container.tensors) if t.size_bytes]
    for one, other in pairwise(numbers):
        first, second = container.tensors[one], container.tensors[other]
        for shift in (0, 16):
            moved = replace(
                second, arena=first.arena + shift, data=first.data and first.data + shift
            )
            if 0 <= moved.arena < 1 << 32:
                place = HEADER_BYTES + other * TENSOR_BYTES
                yield _with(blob, place, TENSOR.pack(*_values(moved)))


def _values(record: Header | Tensor | LayerRecord) -> list[object]:
    return [getattr(record, field.name) for field in fields(record)]


def _changed(record: Record) -> Iterator[Record]:
    for field in fields(record):
        value = getattr(record, field.name)
        if isinstance(value, int):
            for other in sorted({value - 1, value + 1, 0} - {value}):
                changed = replace(record, **{field.name: other})
                if _fits(changed):
                    yield changed


def _resized(tensor: Tensor) -> Iterator[Tensor]:
    """Yield tensors of another shape whose bytes are as many as that takes."""
    if tensor.type == Element.PACKED:
        return
    size = Element(tensor.type).bits // 8
    for name in _GROWING:
        for step in (-1, 1):
            other = replace(tensor, **{name: getattr(tensor, name) + step})
            yield replace(other, size_bytes=other.elements * size)
    for kind in (Element.INT8, Element.INT16, Element.INT32):
        yield replace(tensor, type=kind, size_bytes=tensor.elements * kind.bits // 8)


def _moved(tensor: Tensor) -> Iterator[Tensor]:
    """Yield tensors that live a layer earlier or later."""
    for step in (-1, 1):
        if tensor.first + step >= 0:
            yield replace(tensor, first=tensor.first + step, last=tensor.last + step)


def _at_the_ends(layer: LayerRecord, end: int) -> Iterator[LayerRecord]:
    """Yield layers at the ends of what fields may state; memory up to the end of the arena."""
    if layer.second_input == NONE:
        yield replace(layer, first_input=NONE, second_input=layer.first_input)
    elif layer.second_input & LISTED:
        yield from (replace(layer, first_input=first) for first in range(12))  # up to 8 are padded
    for factor in ((1 << 31) - 1, -1 << 31):
        yield replace(layer, factor=factor)
    for size in (1, 16, 17):
        yield replace(layer, ring=max(end - 16, 0), ring_bytes=size)
        yield replace(layer, staging=max(end - 16, 0), staging_bytes=size)
    for shift in (30, 31, -30, -31):
        yield replace(layer, out_shift=shift)
        yield replace(layer, bias_shift=shift)


def _fits(record: Header | Tensor | LayerRecord) -> bool:
    form = {Header: HEADER, Tensor: TENSOR, LayerRecord: LAYER}[type(record)]
    try:
        form.pack(*_values(record))
    except struct.error:
        return False
    return True


def _with(blob: bytes, place: int, record: bytes) -> bytes:
    return seal_checksums(blob[:place] + record + blob[place + len(record) :])

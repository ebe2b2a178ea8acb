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
    HEADER_BYTES,
    LAYER,
    LAYER_BYTES,
    TENSOR,
    TENSOR_BYTES,
    Container,
    Element,
    Flag,
    Layer,
    Tensor,
    aligned,
)
from ai8xtools.software.container.soundness import intermediates

Record = TypeVar("Record", Tensor, Layer)
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
        for changed in (*_changed(layer), *_shifted(layer)):
            yield _with(blob, place, LAYER.pack(*_values(changed)))
    yield from _joined(blob, container)


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


def _values(record: Tensor | Layer) -> list[object]:
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


def _shifted(layer: Layer) -> Iterator[Layer]:
    """Yield layers with the longest shifts, and longer ones."""
    for shift in (30, 31, -30, -31):
        yield replace(layer, out_shift=shift)
        yield replace(layer, bias_shift=shift)


def _fits(record: Tensor | Layer) -> bool:
    try:
        (TENSOR if isinstance(record, Tensor) else LAYER).pack(*_values(record))
    except struct.error:
        return False
    return True


def _with(blob: bytes, place: int, record: bytes) -> bytes:
    return seal_checksums(blob[:place] + record + blob[place + len(record) :])

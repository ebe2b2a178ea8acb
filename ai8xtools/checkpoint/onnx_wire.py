"""The wire format of protocol buffers, as far as ONNX files use it.

A message is a row of fields: a number, a wire type, and a varint, four or eight bytes, or a counted
piece of bytes. Values are converted on demand.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import TypeAlias

import numpy as np
from numpy.typing import NDArray

from ai8xtools.checkpoint.errors import CheckpointError

# A field takes two bytes or more: without a limit a file of zeros would keep us busy for minutes.
MAX_FIELDS = 1 << 20
_VARINT, _FIXED64, _BYTES, _FIXED32 = 0, 1, 2, 5
_MAX_VARINT_BYTES = 10

Value: TypeAlias = int | memoryview
"""A varint (unsigned, 64 bits), or the bytes of any other field."""
Fields: TypeAlias = Mapping[int, list[Value]]
"""The values of a message by field number, in the order of the file."""


def damaged(what: str) -> CheckpointError:
    """Return the error for an inconsistent file."""
    return CheckpointError(
        "E503", f"the ONNX file is damaged: {what}", remedy="Export or copy it again."
    )


class Decoder:
    """Splits the messages of one file into fields."""

    def __init__(self) -> None:
        self._fields_left = MAX_FIELDS

    def fields(self, message: memoryview) -> Fields:
        """Return the fields of a message.

        Raises CheckpointError E503 where the bytes end early or make no sense, E505 if the file
        has more than `MAX_FIELDS` fields.
        """
        values: dict[int, list[Value]] = {}
        for number, value in self._split(message):
            self._fields_left -= 1
            if self._fields_left < 0:
                raise CheckpointError("E505", f"the file has more than {MAX_FIELDS} fields")
            values.setdefault(number, []).append(value)
        return values

    def _split(self, message: memoryview) -> Iterator[tuple[int, Value]]:
        position = 0
        while position < len(message):
            tag, position = _varint(message, position)
            number, wire = tag >> 3, tag & 7
            if wire == _VARINT:
                value, position = _varint(message, position)
                yield number, value
                continue
            if wire == _BYTES:
                size, position = _varint(message, position)
            elif wire in (_FIXED32, _FIXED64):
                size = 4 if wire == _FIXED32 else 8
            else:
                raise damaged(f"a field of wire type {wire}")
            if size > len(message) - position:
                raise damaged(
                    f"a field of {size} bytes where {len(message) - position} are left; "
                    "it may be truncated"
                )
            yield number, message[position : position + size]
            position += size


def _varint(message: memoryview, position: int) -> tuple[int, int]:
    """Return the number that begins at the position, and the position after it."""
    value = 0
    for shift, byte in enumerate(message[position : position + _MAX_VARINT_BYTES]):
        value |= (byte & 0x7F) << 7 * shift
        if byte < 0x80:
            return value & (1 << 64) - 1, position + shift + 1
    raise damaged("a number without an end; it may be truncated")


def integer(fields: Fields, number: int, default: int = 0) -> int:
    """Return a signed integer; the last one counts, as the format demands."""
    value = fields.get(number, [default])[-1]
    if not isinstance(value, int):
        raise damaged(f"field {number} is no integer")
    return value - (1 << 64) if value >> 63 == 1 else value


def single(fields: Fields, number: int, default: float) -> float:
    """Return a number of 32-bit floating point."""
    if number not in fields:
        return default
    (data,) = pieces(fields, number)[-1:]
    if len(data) != 4:
        raise damaged(f"field {number} is no number")
    return float(np.frombuffer(data, "<f4").item())


def pieces(fields: Fields, number: int) -> list[memoryview]:
    """Return the bytes of every occurrence of a field: messages, texts or packed numbers."""
    contents = []
    for value in fields.get(number, []):
        if isinstance(value, int):
            raise damaged(f"field {number} is an integer")
        contents.append(value)
    return contents


def texts(fields: Fields, number: int) -> list[str]:
    """Return the texts of a repeated field, as they are: escape them before showing them."""
    return [bytes(piece).decode("utf-8", "replace") for piece in pieces(fields, number)]


def text(fields: Fields, number: int) -> str:
    """Return a text, empty if absent."""
    return next(reversed(texts(fields, number)), "")


def integers(fields: Fields, number: int, limit: int) -> NDArray[np.int64]:
    """Return the numbers of a repeated field, packed or not; more than `limit` are damage."""
    parts = [
        np.array([value], np.uint64) if isinstance(value, int) else _unpack(value, limit)
        for value in fields.get(number, [])
    ]
    if sum(map(len, parts)) > limit:
        raise damaged(f"more than {limit} numbers in field {number}")
    return np.concatenate([np.empty(0, np.uint64), *parts]).view(np.int64)


def _unpack(packed: memoryview, limit: int) -> NDArray[np.uint64]:
    """Decode varints that stand one after another, all at once."""
    data = np.frombuffer(packed, np.uint8)
    ends = np.flatnonzero(data < 0x80)
    if len(ends) > limit or (len(data) and (not len(ends) or ends[-1] != len(data) - 1)):
        raise damaged("a list of numbers has another length than it says")
    starts = np.concatenate([[0], ends[:-1] + 1]) if len(ends) else ends
    sizes = ends - starts + 1
    if len(sizes) and sizes.max() > _MAX_VARINT_BYTES:
        raise damaged("a number without an end")
    values = np.zeros(len(ends), np.uint64)
    for byte in range(int(sizes.max()) if len(sizes) else 0):
        longer = sizes > byte
        part = (data[starts[longer] + byte] & 0x7F).astype(np.uint64)
        values[longer] |= part << np.uint64(7 * byte)
    return values

"""Frames on a line that may lose, double and change bytes: what is wrong is noticed.

A frame is type, sequence number, length, data and CRC-32, in COBS between two zeros.
"""

from __future__ import annotations

import struct
import zlib
from collections.abc import Iterator

from ai8xtools.values import frozen

PIECE_BYTES = 512
"""Most data of an input or output in one frame."""
NO_SEQUENCE = 0xFFFF
"""Of a frame that answers no other."""
_HEAD, _CRC = struct.Struct("<BHH"), struct.Struct("<I")
MOST_BYTES = 1024
"""Bytes between two zeros beyond which nothing is a frame."""
_FULL = 0xFF


class Message:
    """What a frame is, as the line has it: capital letters ask, small ones answer."""

    HELLO = ord("H")
    INPUT = ord("I")
    RUN = ord("R")
    GET = ord("G")
    TOLD = ord("h")
    TAKEN = ord("i")
    RAN = ord("r")
    GOT = ord("g")
    STARTED = ord("s")
    BEGUN = ord("b")
    REFUSED = ord("n")


def answer_to(kind: int) -> int:
    """Return what a frame is that answers another."""
    return ord(chr(kind).lower())


class Refusal:
    """Why a board refuses, as the data of a frame."""

    BAD_FRAME = b"\x00"
    MISSING = b"\x01"
    RANGE = b"\x02"
    FAILED = b"\x03"


@frozen
class Frame:
    """A message: its `kind`, a `sequence` number from 0 to 65535, and `data`."""

    kind: int
    sequence: int
    data: bytes = b""


def encoded(frame: Frame) -> bytes:
    """Return a frame as bytes for the line."""
    text = _HEAD.pack(frame.kind, frame.sequence, len(frame.data)) + frame.data
    return b"\0" + _stuffed(text + _CRC.pack(zlib.crc32(text))) + b"\0"


def decoded(stuffed: bytes) -> Frame | None:
    """Return the frame of what stands between two zeros; None for anything else."""
    text = _unstuffed(stuffed)
    if text is None or len(text) < _HEAD.size + _CRC.size:
        return None
    kind, sequence, length = _HEAD.unpack_from(text)
    data, (crc,) = text[_HEAD.size : -_CRC.size], _CRC.unpack(text[-_CRC.size :])
    if length != len(data) or crc != zlib.crc32(text[: -_CRC.size]):
        return None
    return Frame(kind, sequence, data)


class Decoder:
    """Finds frames among the bytes of a line."""

    def __init__(self) -> None:
        self._rest = b""

    def feed(self, received: bytes) -> Iterator[Frame]:
        """Yield the frames that end in the bytes received; what is no frame is left out."""
        *texts, rest = (self._rest + received).split(b"\0")
        self._rest = rest[: MOST_BYTES + 1]  # too long stays too long
        for text in texts:
            frame = decoded(text) if len(text) <= MOST_BYTES else None
            if frame is not None:
                yield frame


def _stuffed(text: bytes) -> bytes:
    """Return bytes without zeros: each block begins with how far the next zero is."""
    out = bytearray()
    for part in text.split(b"\0"):
        while len(part) >= _FULL - 1:
            out += bytes([_FULL]) + part[: _FULL - 1]
            part = part[_FULL - 1 :]
        out += bytes([len(part) + 1]) + part
    return bytes(out)


def _unstuffed(stuffed: bytes) -> bytes | None:
    out, at = bytearray(), 0
    while at < len(stuffed):
        code = stuffed[at]
        block = stuffed[at + 1 : at + code]
        if len(block) != code - 1:
            return None
        out += block
        at += code
        if code != _FULL and at < len(stuffed):
            out.append(0)
    return bytes(out)

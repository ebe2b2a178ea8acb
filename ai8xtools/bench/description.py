"""What a board says of its network: its name, the input and the outputs."""

from __future__ import annotations

import math
import struct

from ai8xtools.bench.frames import PIECE_BYTES
from ai8xtools.values import frozen

VERSION = 1
"""Of the frames and of what is in them."""
_MOST_NAME_BYTES = 64
_INPUT, _OUTPUT = struct.Struct("<BIIIB"), struct.Struct("<IIIB")
_BITS = (8, 16, 32)
_MOST_BYTES = 1 << 28
"""Of an input or the outputs: a board that says more is none."""


@frozen
class OutputShape:
    """Channels, rows and columns of an output, and the bits of its integers (8, 16 or 32)."""

    channels: int
    rows: int
    columns: int
    bits: int

    @property
    def size(self) -> int:
        """Number of values."""
        return self.channels * self.rows * self.columns

    @property
    def size_bytes(self) -> int:
        """Bytes of all values."""
        return self.size * self.bits // 8


@frozen
class BenchDescription:
    """A network on a board: its `name`, channels, rows and columns of its `input` of 8 bits, and
    its `outputs`."""

    name: str
    input: tuple[int, int, int]
    outputs: tuple[OutputShape, ...]

    @property
    def output_bytes(self) -> int:
        """Bytes of all outputs."""
        return sum(output.size_bytes for output in self.outputs)

    def encoded(self) -> bytes:
        """Return it as the data of a frame; long names are cut.

        Raises ValueError if there are too many outputs for a frame.
        """
        encoded = _INPUT.pack(VERSION, *self.input, len(self.outputs) & 0xFF)
        for one in self.outputs:
            encoded += _OUTPUT.pack(one.channels, one.rows, one.columns, one.bits)
        encoded += self.name.encode()[:_MOST_NAME_BYTES].decode(errors="ignore").encode()
        if len(encoded) > PIECE_BYTES:
            raise ValueError(f"{len(self.outputs)} outputs")
        return encoded

    @classmethod
    def decoded(cls, encoded: bytes) -> BenchDescription | None:
        """Return what the data of a frame say; None if they say nothing that can be."""
        if len(encoded) < _INPUT.size:
            return None
        version, channels, rows, columns, count = _INPUT.unpack_from(encoded)
        end = _INPUT.size + count * _OUTPUT.size
        if version != VERSION or not count or len(encoded) < end:
            return None
        outputs = tuple(
            OutputShape(*_OUTPUT.unpack_from(encoded, at))
            for at in range(_INPUT.size, end, _OUTPUT.size)
        )
        result = cls(encoded[end:].decode(errors="replace"), (channels, rows, columns), outputs)
        sizes = (math.prod(result.input), *(one.size_bytes for one in outputs))
        sound = all(one.bits in _BITS for one in outputs) and min(sizes) > 0
        return result if sound and sum(sizes) <= _MOST_BYTES else None

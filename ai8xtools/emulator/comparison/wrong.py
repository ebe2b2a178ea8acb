"""A word that is not that of the project."""

from __future__ import annotations

from enum import Enum
from typing import NamedTuple

from ai8xtools.values import frozen


class Kind(Enum):
    """What a word belongs to; the values are for people."""

    REGISTER = "register"
    KERNEL = "kernel"
    BIAS = "bias"
    INPUT = "input"
    PUSH = "FIFO word"

    @property
    def digits(self) -> int:
        """Hexadecimal digits of such a word."""
        return {Kind.REGISTER: 8, Kind.KERNEL: 8, Kind.BIAS: 2, Kind.INPUT: 8, Kind.PUSH: 8}[self]

    @property
    def has_fields(self) -> bool:
        """Whether such a word has fields with names."""
        return {
            Kind.REGISTER: True, Kind.KERNEL: False, Kind.BIAS: False, Kind.INPUT: False,
            Kind.PUSH: False,
        }[self]  # fmt: skip


class ByteChange(NamedTuple):
    """Bits (`mask`) of a byte of kernel or bias memory that are not as they should be.

    `unit` and `place` are processor and column of a kernel, group and number of a bias; `byte`
    counts in the column.
    """

    unit: int
    place: int
    byte: int
    mask: int


@frozen
class WrongWord:
    """One wrong word, or a block of words of which more than one is wrong.

    `expected` and `actual` are None for a block. `changes` are the bytes of kernel and bias memory
    concerned, `number` that of an input word in its array. A `surplus` word is one that the project
    does not write.
    """

    kind: Kind
    phase: str
    address: int
    expected: int | None
    actual: int | None
    changes: tuple[ByteChange, ...] = ()
    number: int | None = None
    surplus: bool = False

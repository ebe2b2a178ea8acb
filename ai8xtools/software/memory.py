"""Blocks of memory that live for some time, and which of them may share bytes."""

from __future__ import annotations

from dataclasses import replace

from ai8xtools.values import frozen

ALIGNMENT = 4


def aligned(size: int, to: int = ALIGNMENT) -> int:
    """Round a size up."""
    return -(-size // to) * to


@frozen(kw_only=True)
class Block:
    """Bytes that are used from task `first` to task `last` of a program.

    `tensor` is what stands in it, with room for `rows` of its rows at the same time; else it is the
    `buffer` of an index and a name. `offset` counts from the start of the memory.
    """

    name: str
    size: int
    first: int
    last: int
    tensor: int | None = None
    rows: int = 0
    buffer: tuple[int, str] | None = None
    offset: int = 0

    @property
    def end(self) -> int:
        """First byte behind it."""
        return self.offset + self.size

    def lives_with(self, other: Block) -> bool:
        """Whether there is a task in which both are used."""
        return self.first <= other.last and other.first <= self.last

    def touches(self, other: Block) -> bool:
        """Whether both have a byte in common."""
        return self.offset < other.end and other.offset < self.end

    def at(self, offset: int) -> Block:
        """Return the same block elsewhere."""
        return replace(self, offset=offset)


@frozen
class Overlap:
    """A result may begin in the memory of the data that it is made from, which die there.

    The block of tensor `result` has to begin at least `distance` bytes below that of `data`.
    """

    data: int
    result: int
    distance: int

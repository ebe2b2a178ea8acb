"""What a program wrote to the accelerator, and what these writes amount to.

Source: docs/hardware/memory.md, "Writing kernels".
"""

from __future__ import annotations

from array import array
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from itertools import pairwise
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from ai8xtools.emulator.bits import byte_number, with_bytes, word_address
from ai8xtools.emulator.words.addresses import KERNELS, AddressMap
from ai8xtools.values import frozen
from device.chip import KERNEL_COLUMN_BYTES, PROCESSORS_PER_GROUP

Integers = NDArray[np.int64]
Bytes = NDArray[np.uint8]

EXPRESS_MARK = 1  # low bits of the address of the byte store that opens a packed kernel stream


class Effect(NamedTuple):
    """What one phase leaves behind.

    `words` holds the final value of every memory word and layer register by address; kernels
    written in packed form appear as the three words per column that plain writes would leave.
    `control` lists (address, value) of writes whose order counts, `pushes` the words that went
    into each FIFO data register.
    """

    words: Mapping[int, int]
    control: Sequence[tuple[int, int]]
    pushes: Mapping[int, Sequence[int]] = {}

    @property
    def word_count(self) -> int:
        """Number of words."""
        return len(self.words) + len(self.control) + sum(map(len, self.pushes.values()))


@frozen
class Writes:
    """Bus writes in order: int64 arrays of width in bytes, address and unsigned value."""

    size: Integers
    address: Integers
    value: Integers

    @classmethod
    def of(cls, rows: Iterable[tuple[int, int, int]]) -> Writes:
        """Build from (size, address, value) rows."""
        table = np.array(list(rows), np.int64).reshape(-1, 3)
        return cls(table[:, 0], table[:, 1], table[:, 2])

    def __len__(self) -> int:
        return len(self.address)

    def where(self, selection: NDArray[np.bool_]) -> Writes:
        """Return the writes that are selected, in order."""
        return Writes(self.size[selection], self.address[selection], self.value[selection])


class WriteLog:
    """Bus writes as they happen, in little memory."""

    def __init__(self) -> None:
        self._sizes, self._addresses, self._values = array("B"), array("I"), array("Q")

    def __len__(self) -> int:
        return len(self._addresses)

    def __iter__(self) -> Iterator[tuple[int, int, int]]:
        """Yield width in bytes, address and value of each write."""
        writes = self.writes()
        return zip(
            writes.size.tolist(), writes.address.tolist(), writes.value.tolist(), strict=True
        )

    def clear(self) -> None:
        """Forget all writes."""
        del self._sizes[:], self._addresses[:], self._values[:]

    def append(self, size: int, address: int, value: int) -> None:
        """Add a write."""
        self._sizes.append(size)
        self._addresses.append(address)
        self._values.append(value)

    def writes(self, first: int = 0, end: int | None = None) -> Writes:
        """Return the writes number `first` to `end`."""
        columns = (self._sizes, self._addresses, self._values)
        return Writes(*(np.array(column[first:end], np.int64) for column in columns))


@frozen
class KernelStream:
    """Successive 9-byte kernel columns of a processor: `columns` is uint8 [count, 9]."""

    processor: int
    first: int
    columns: Bytes


@dataclass
class Split:
    """Writes sorted by what they are; `plain` are those to ordinary words."""

    plain: Writes
    streams: list[KernelStream] = field(default_factory=list)
    control: list[tuple[int, int]] = field(default_factory=list)
    pushes: dict[int, list[int]] = field(default_factory=dict)


def split_writes(writes: Writes, addresses: AddressMap) -> Split:
    """Tell control writes, FIFO pushes and packed kernels from writes to ordinary words."""
    word = word_address(writes.address)
    is_control = np.isin(word, list(addresses.ordered))
    is_push = np.isin(word, list(addresses.fifos))
    group, area, offset = addresses.split(writes.address)
    unit = offset // addresses.chip.kernel_stride
    exists = (area == KERNELS) & (unit < PROCESSORS_PER_GROUP)
    streams, is_packed = _kernel_streams(
        writes,
        np.where(exists, group * PROCESSORS_PER_GROUP + unit, -1),
        offset % addresses.chip.kernel_stride,
    )
    pushes: dict[int, list[int]] = {}
    for address, value in _pairs(writes.where(is_push)):
        pushes.setdefault(address, []).append(value)
    return Split(
        writes.where(~(is_control | is_push | is_packed)),
        streams,
        list(_pairs(writes.where(is_control))),
        pushes,
    )


def effect_of(writes: Writes, addresses: AddressMap) -> Effect:
    """Return what the writes of one phase amount to."""
    split = split_writes(writes, addresses)
    words = merged_words(split.plain)
    for stream in split.streams:
        words.update(column_words(stream, addresses))
    return Effect(words, split.control, split.pushes)


def merged_words(writes: Writes, words: dict[int, int] | None = None) -> dict[int, int]:
    """Enter writes of 1, 2 or 4 bytes into `words` (address to value); the last one wins."""
    words = {} if words is None else words
    if np.all(writes.size == 4):
        words.update(_pairs(writes))
        return words
    for size, address, value in zip(
        writes.size.tolist(), writes.address.tolist(), writes.value.tolist(), strict=True
    ):
        word = word_address(address)
        words[word] = with_bytes(words.get(word, 0), address, size, value)
    return words


def column_words(stream: KernelStream, addresses: AddressMap) -> dict[int, int]:
    """Return the words by which plain writes would store the columns: byte 0, 1 to 4, 5 to 8."""
    start = addresses.apb_base + addresses.chip.kernel_address(stream.processor, stream.first)
    step = addresses.chip.kernel_address(0, 1) - addresses.chip.kernel_address(0, 0)
    columns = start + step * np.arange(len(stream.columns))
    rest = np.ascontiguousarray(stream.columns[:, 1:]).view(">u4")
    words = dict(zip(columns.tolist(), stream.columns[:, 0].tolist(), strict=True))
    words.update(zip((columns + 4).tolist(), rest[:, 0].tolist(), strict=True))
    words.update(zip((columns + 8).tolist(), rest[:, 1].tolist(), strict=True))
    return words


def _kernel_streams(
    writes: Writes, processor: Integers, offset: Integers
) -> tuple[list[KernelStream], NDArray[np.bool_]]:
    """Find packed kernels: a byte store opens a stream, the words that follow fill columns.

    `processor` is -1 for writes that are not to kernel memory. The byte store names the column, so
    only the order of the words counts, not their addresses. Returns the streams and which writes
    they consist of. The last columns of a stream may be cut short by up to 8 bytes of padding.
    """
    packed = np.zeros(len(writes), np.bool_)
    opened = np.flatnonzero(
        (processor >= 0) & (writes.size == 1) & (byte_number(writes.address) == EXPRESS_MARK)
    ).tolist()
    streams = []
    for start, limit in pairwise([*opened, len(writes)]):
        elsewhere = np.flatnonzero(processor[start:limit] != processor[start])
        end = start + int(elsewhere[0]) if len(elsewhere) else limit
        packed[start:end] = True
        data = writes.value[start + 1 : end].astype(">u4").tobytes()
        count = len(data) // KERNEL_COLUMN_BYTES
        columns = np.frombuffer(data, np.uint8, count * KERNEL_COLUMN_BYTES)
        streams.append(
            KernelStream(
                int(processor[start]),
                int(offset[start]) // 4,
                columns.reshape(count, KERNEL_COLUMN_BYTES),
            )
        )
    return streams, packed


def _pairs(writes: Writes) -> Iterator[tuple[int, int]]:
    return zip(writes.address.tolist(), writes.value.tolist(), strict=True)

"""Whether two accelerators hold the same words when their networks start."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator

import numpy as np
from numpy.typing import NDArray

from ai8xtools.emulator.state.memory import Memory
from ai8xtools.emulator.words.writes import Writes
from ai8xtools.synthesis.program import Program
from ai8xtools.synthesis.words import phase_words
from ai8xtools.values import frozen
from device import Chip
from device.chip import DEFAULT_APB_BASE, WORD_BYTES

_COLUMN_WORDS = 3
"""Words that hold the 9 bytes of a kernel column."""


@frozen
class WordDeparture:
    """A word that differs; None: it is not written. `kind` is what it is part of.

    `where` is the address of a register, processor and column of a kernel, group and number of a
    bias, instance and word of the input, address and number of a word of a FIFO.
    """

    kind: str
    where: tuple[int, ...]
    place: str
    expected: int | None
    actual: int | None

    def address(self, memory: Memory) -> int:
        """Return where the word is written, of a kernel column the first one."""
        chip, base, where = memory.chip, memory.addresses.apb_base, self.where
        match self.kind:
            case "kernel":
                return base + chip.kernel_address(*where)
            case "bias":
                return base + chip.bias_address(*where)
            case "input":
                return base + chip.data_address(where[0], WORD_BYTES * where[1])
            case _:
                return where[0]

    def __str__(self) -> str:
        expected, actual = (
            "nothing" if value is None else f"0x{value:08x}"
            for value in (self.expected, self.actual)
        )
        return f"{self.place}: {actual}, not {expected}"


@frozen
class Agreement:
    """How many words there are, and those that differ."""

    words: int
    departures: tuple[WordDeparture, ...]

    @property
    def kinds(self) -> Counter[str]:
        """How many words of each kind differ."""
        return Counter(one.kind for one in self.departures)


def memory_of(program: Program, chip: Chip, apb_base: int = DEFAULT_APB_BASE) -> Memory:
    """Return an accelerator to which all words of a program have been written."""
    memory = Memory(chip, apb_base)
    rows: list[tuple[int, int, int]] = []
    for words in phase_words(program).values():
        rows += [(4, address, value) for address, value in words.words.items()]
        rows += [(4, address, value) for address, value in words.control]
        rows += [(4, a, value) for a, values in words.pushes.items() for value in values]
    memory.write(Writes.of(rows))
    return memory


def compare(expected: Memory, actual: Memory) -> Agreement:
    """Compare registers, kernels, biases, data and FIFOs as they are before the start.

    Registers that are not written are zero.
    """
    parts = (_registers, _kernels, _biases, _data, _pushes)
    departures = tuple(one for part in parts for one in part(expected, actual))
    count = len(expected.registers) + _COLUMN_WORDS * int(expected.kernels_written.sum())
    count += int(expected.bias_written.sum()) + int(_words_written(expected).sum())
    count += sum(map(len, expected.pushes.values()))
    return Agreement(count, departures)


def _registers(expected: Memory, actual: Memory) -> Iterator[WordDeparture]:
    for address in sorted({*expected.registers, *actual.registers}):
        pair = expected.registers.get(address, 0), actual.registers.get(address, 0)
        if pair[0] != pair[1]:
            yield WordDeparture("register", (address,), expected.addresses.describe(address), *pair)


def _kernels(expected: Memory, actual: Memory) -> Iterator[WordDeparture]:
    differs = (expected.kernels != actual.kernels).any(axis=2)
    differs &= expected.kernels_written | actual.kernels_written
    differs |= expected.kernels_written != actual.kernels_written
    for processor, column in np.argwhere(differs).tolist():
        pair = (
            int.from_bytes(one.kernels[processor, column, 5:].tobytes(), "big")
            if one.kernels_written[processor, column] else None
            for one in (expected, actual)
        )  # fmt: skip
        yield WordDeparture(
            "kernel", (processor, column), f"processor {processor}, kernel column {column}", *pair
        )


def _biases(expected: Memory, actual: Memory) -> Iterator[WordDeparture]:
    differs = expected.bias_written != actual.bias_written
    differs |= (expected.bias != actual.bias) & expected.bias_written
    for group, index in np.argwhere(differs).tolist():
        pair = (int(one.bias[group, index]) & 0xFF if one.bias_written[group, index] else None
                for one in (expected, actual))  # fmt: skip
        yield WordDeparture("bias", (group, index), f"group {group}, bias {index}", *pair)


def _words_written(memory: Memory) -> NDArray[np.bool_]:
    return np.asarray(np.any(memory.data_written.reshape(len(memory.data), -1, 4), axis=2))


def _data(expected: Memory, actual: Memory) -> Iterator[WordDeparture]:
    written = [_words_written(one) for one in (expected, actual)]
    differs = (written[0] != written[1]) | ((expected.data != actual.data) & written[0])
    for instance, word in np.argwhere(differs).tolist():
        pair = (int(one.data[instance, word]) if is_written[instance, word] else None
                for one, is_written in zip((expected, actual), written, strict=True))  # fmt: skip
        place = f"data memory instance {instance}, word {word}"
        yield WordDeparture("input", (instance, word), place, *pair)


def _pushes(expected: Memory, actual: Memory) -> Iterator[WordDeparture]:
    for address in sorted({*expected.pushes, *actual.pushes}):
        one, other = expected.pushes.get(address, []), actual.pushes.get(address, [])
        for number in range(max(len(one), len(other))):
            pair = (words[number] if number < len(words) else None for words in (one, other))
            place = f"FIFO {address:#x}, word {number}"
            departure = WordDeparture("push", (address, number), place, *pair)
            if departure.expected != departure.actual:
                yield departure

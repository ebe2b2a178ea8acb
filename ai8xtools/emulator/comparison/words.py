"""The words that a program wrote before the network starts, against an answer file."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence

import numpy as np
from numpy.typing import NDArray

from ai8xtools.answer import PHASES, Answer, HashedWords
from ai8xtools.answer.hashes import BLOCK_WORDS, WordFault, block_hashes, find_word, padded
from ai8xtools.emulator.bits import bytes_at, changed, truncated
from ai8xtools.emulator.comparison.wrong import ByteChange, Kind, WrongWord
from ai8xtools.emulator.state.memory import Memory
from ai8xtools.emulator.state.power import ISOLATION, RETENTION_BIT
from ai8xtools.emulator.words.addresses import DATA, INSTANCES_PER_GROUP, KERNELS
from ai8xtools.values import frozen
from device import UnknownDeviceError, chip_named
from device.chip import KERNEL_COLUMN_BYTES, KERNEL_COLUMN_STRIDE_BYTES, PROCESSORS_PER_GROUP

Integers = NDArray[np.int64]
Words = list[NDArray[np.uint32]]

_OTHERS_SHARE = 2


@frozen
class WordComparison:
    """The wrong words in the order of the phases, and how much was compared.

    `blocks` counts the blocks of the input, `wrong_inputs` those that differ, `replaced_inputs`
    those in which more than a word does. `stranger` is why the file belongs to another project;
    nothing else was compared then.
    """

    wrong: tuple[WrongWord, ...] = ()
    compared: int = 0
    blocks: int = 0
    wrong_inputs: int = 0
    replaced_inputs: int = 0
    stranger: str = ""


def compare_words(
    memory: Memory, answer: Answer, right: Memory | None = None, others: Sequence[Answer] = ()
) -> WordComparison:
    """Compare what was written to an accelerator that is about to start.

    Each word of kernels and input is distinguished from the others if `right` is at hand, an
    accelerator with the words of the answer; else of several in one block only the place is known.
    Networks with `others` are in the accelerator, too: their kernels are not surplus.
    """
    stranger = _stranger(memory, answer)
    if stranger:
        return WordComparison(stranger=stranger)
    registers = list(_registers(memory, answer))
    count = len(answer.registers.addresses)
    if _OTHERS_SHARE * sum(not word.surplus for word in registers) > count:
        text = f"{len(registers)} of {count} registers have other values"
        return WordComparison(stranger=text)
    inputs = [*_inputs(memory, answer, right), *_pushes(memory, answer, right)]
    kernels = [*_kernels(memory, answer, right), *_surplus_kernels(memory, (answer, *others))]
    wrong = [*registers, *kernels, *_biases(memory, answer), *inputs]
    wrong.sort(key=lambda word: (word.surplus, PHASES.index(word.phase)))
    compared = count + len(answer.biases.addresses)
    hashed = (answer.kernels, answer.inputs, answer.pushes)
    return WordComparison(
        tuple(wrong),
        compared + sum(BLOCK_WORDS * len(words.hashes) for words in hashed),
        len(answer.inputs.hashes) + len(answer.pushes.hashes),
        len(inputs),
        sum(word.expected is None for word in inputs),
    )


def _stranger(memory: Memory, answer: Answer) -> str:
    """Say why a file cannot be that of a program for this accelerator; empty if it can."""
    try:
        chip = chip_named(answer.chip)
    except UnknownDeviceError:
        chip = None
    if chip != memory.chip:
        return f"it is for {answer.chip}"
    if answer.apb_base != memory.addresses.apb_base:
        return f"its accelerator is at 0x{answer.apb_base:08x}"
    _, area, _ = memory.addresses.split(answer.kernels.addresses.astype(np.int64))
    if (area != KERNELS).any():
        return "its kernels are not in kernel memory"
    return ""


def _registers(memory: Memory, answer: Answer) -> Iterator[WrongWord]:
    """Yield registers that have other values, then those that the project does not write."""
    expected = answer.registers
    for address, value, phase in zip(
        expected.addresses.tolist(), expected.values.tolist(), expected.phases.tolist(), strict=True
    ):
        actual = memory.registers.get(address, 0)
        if address == ISOLATION:  # what is kept asleep is no matter of the network
            actual = truncated(actual, RETENTION_BIT)
        if actual != value:
            yield WrongWord(Kind.REGISTER, PHASES[phase], address, value, actual)
    written = set(expected.addresses.tolist())
    for address, actual in memory.registers.items():
        if actual and address not in written:
            yield WrongWord(Kind.REGISTER, PHASES[4], address, 0, actual, surplus=True)


def _biases(memory: Memory, answer: Answer) -> Iterator[WrongWord]:
    addresses = answer.biases.addresses.astype(np.int64)
    group, index = bias_places(memory, answer)
    actual = memory.bias.view(np.uint8)[group, index]
    for i in np.flatnonzero(actual != answer.biases.values).tolist():
        expected = int(answer.biases.values[i])
        change = ByteChange(int(group[i]), int(index[i]), 0, changed(0, expected, int(actual[i])))
        yield WrongWord(
            Kind.BIAS, "cnn_load_bias", int(addresses[i]), expected, int(actual[i]), (change,)
        )


def bias_places(memory: Memory, answer: Answer) -> tuple[Integers, Integers]:
    """Return group and index of each bias."""
    group, _, offset = memory.addresses.split(answer.biases.addresses.astype(np.int64))
    return group, offset // 4 % memory.bias.shape[1]


def kernel_words(memory: Memory, answer: Answer) -> Words:
    """Return the kernels of each run in the form in which the program stores them."""
    words = []
    for start, count in _runs(answer.kernels):
        columns = memory.kernels[kernel_columns(memory, start, count)]
        words.append(padded(_packed(columns) if answer.express else _plain(columns)))
    return words


def _kernels(memory: Memory, answer: Answer, right: Memory | None) -> Iterator[WrongWord]:
    runs = answer.kernels
    words, right_words = kernel_words(memory, answer), _right(kernel_words, right, answer)
    for run, first, block, faults in _wrong_blocks(words, runs, right_words):
        start, count = int(runs.addresses[run]), int(runs.counts[run])
        places = kernel_columns(memory, start, count)
        for fault in faults:
            yield _kernel(start, places, first, block, fault, express=answer.express)


def _surplus_kernels(memory: Memory, answers: Sequence[Answer]) -> Iterator[WrongWord]:
    """Yield the first of successive kernel columns, not zero, that the project does not write."""
    surplus = np.asarray(memory.kernels.any(axis=2))
    for start, count in (run for answer in answers for run in _runs(answer.kernels)):
        surplus[kernel_columns(memory, start, count)] = False
    surplus[:, 1:] &= ~surplus[:, :-1]  # the first of each row of columns
    base = memory.addresses.apb_base
    for processor, column in np.argwhere(surplus).tolist():
        raw = memory.kernels[processor, column]
        changes = tuple(ByteChange(processor, column, n, int(b)) for n, b in enumerate(raw))
        address = base + memory.chip.kernel_address(processor, column)
        value = int.from_bytes(raw[1:5].tobytes(), "big")
        yield WrongWord(Kind.KERNEL, PHASES[2], address, 0, value, changes, surplus=True)


def _right(
    words: Callable[[Memory, Answer], Words], right: Memory | None, answer: Answer
) -> Words | None:
    return None if right is None else words(right, answer)


def _runs(words: HashedWords) -> Iterator[tuple[int, int]]:
    yield from zip(words.addresses.tolist(), words.counts.tolist(), strict=True)


def kernel_columns(memory: Memory, start: int, count: int) -> tuple[Integers, Integers]:
    """Return processor and column of `count` kernel columns from an address on."""
    address = start + KERNEL_COLUMN_STRIDE_BYTES * np.arange(count, dtype=np.int64)
    group, _, offset = memory.addresses.split(address)
    stride = memory.chip.kernel_stride
    processors, columns = memory.kernels_written.shape
    processor = group * PROCESSORS_PER_GROUP + offset // stride
    return processor % processors, offset % stride // KERNEL_COLUMN_STRIDE_BYTES % columns


def _packed(columns: NDArray[np.uint8]) -> NDArray[np.uint32]:
    data = columns.tobytes()
    data += bytes(-len(data) % 4)
    return np.frombuffer(data, ">u4").astype(np.uint32)


def _plain(columns: NDArray[np.uint8]) -> NDArray[np.uint32]:
    """Return four words per column: byte 0; bytes 1 to 4; bytes 5 to 8; nothing."""
    words = np.zeros((len(columns), 4), np.uint32)
    words[:, 0] = columns[:, 0]
    words[:, 1:3] = np.ascontiguousarray(columns[:, 1:]).view(">u4")
    return words.reshape(-1)


def _wrong_blocks(
    words: Words, expected: HashedWords, right: Words | None
) -> Iterator[tuple[int, int, NDArray[np.uint32], list[WordFault | None]]]:
    """Yield blocks that differ: number of the run, first word in it, words found, what is wrong.

    That is None for several words of which nothing more is known.
    """
    if not words:
        return
    joined = np.concatenate(words)
    right_words = None if right is None else np.concatenate(right)
    hashes = block_hashes(joined)
    if len(hashes) != len(expected.hashes):
        raise ValueError("the number of hashes is not that of the words")
    ends = np.cumsum([len(part) // BLOCK_WORDS for part in words])
    for block in np.flatnonzero(hashes != expected.hashes).tolist():
        run = int(np.searchsorted(ends, block, side="right"))
        first = block - (int(ends[run - 1]) if run else 0)
        where = slice(block * BLOCK_WORDS, (block + 1) * BLOCK_WORDS)
        part = joined[where]
        faults: list[WordFault | None] = [find_word(part, int(expected.hashes[block]))]
        if right_words is not None:
            wrong = np.flatnonzero(part != right_words[where]).tolist()
            faults = [WordFault(number, int(right_words[where][number])) for number in wrong]
        yield run, first * BLOCK_WORDS, part, faults


def _kernel(
    start: int,
    places: tuple[Integers, Integers],
    first: int,
    block: NDArray[np.uint32],
    fault: WordFault | None,
    *,
    express: bool,
) -> WrongWord:
    """Return a wrong word of kernels down to its bytes, or a wrong block if no word is known.

    `start` is the address of the run, `places` the processor and column of each of its columns.
    """
    masks = dict.fromkeys(range(4 * first, 4 * (first + BLOCK_WORDS)), 0xFF)
    if fault is not None:
        change = changed(0, fault.expected, int(block[fault.number]))
        begin = 4 * (first + fault.number)
        bits = {begin + i: bytes_at(change, 3 - i, 1) for i in range(4)}
        masks = {position: mask for position, mask in bits.items() if mask}
    size = KERNEL_COLUMN_BYTES if express else KERNEL_COLUMN_STRIDE_BYTES
    skipped = 0 if express else 3  # byte 0 is the lowest of its word
    changes = []
    for position, mask in masks.items():
        number, byte = position // size, position % size - skipped
        if number < len(places[0]) and 0 <= byte < KERNEL_COLUMN_BYTES:
            processor, column = (int(place[number]) for place in places)
            changes.append(ByteChange(processor, column, byte, mask))
    return WrongWord(
        Kind.KERNEL,
        "cnn_load_weights",
        start + KERNEL_COLUMN_STRIDE_BYTES * (min(masks) // size),
        None if fault is None else fault.expected,
        None if fault is None else int(block[fault.number]),
        tuple(changes),
    )


def input_words(memory: Memory, answer: Answer) -> Words:
    """Return the words of data memory in which the input stands, by run."""
    words = []
    for start, count in _runs(answer.inputs):
        instance, word = input_places(memory, start, count)
        words.append(padded(memory.data[instance, word]))
    return words


def input_places(memory: Memory, start: int, count: int) -> tuple[Integers, Integers]:
    """Return instance and word of `count` words of data memory from an address on."""
    group, area, offset = memory.addresses.split(start + 4 * np.arange(count, dtype=np.int64))
    unit, rest = np.divmod(offset, memory.chip.instance_stride)
    inside = (area == DATA) & (unit < INSTANCES_PER_GROUP)
    instance = np.where(inside, group * INSTANCES_PER_GROUP + unit, 0)
    return instance, rest // 4 % memory.data.shape[1]


def pushed_words(memory: Memory, answer: Answer) -> Words:
    """Return what was pushed into each FIFO; words that are missing are zero."""
    words = []
    for address, count in _runs(answer.pushes):
        pushed = np.zeros(count, np.uint32)
        got = memory.pushes.get(address, [])[:count]
        pushed[: len(got)] = got
        words.append(padded(pushed))
    return words


def _inputs(memory: Memory, answer: Answer, right: Memory | None) -> Iterator[WrongWord]:
    words, right_words = input_words(memory, answer), _right(input_words, right, answer)
    for run, first, block, faults in _wrong_blocks(words, answer.inputs, right_words):
        for fault in faults:
            start = int(answer.inputs.addresses[run])
            yield _input(Kind.INPUT, start, 4, first, block, fault)


def _pushes(memory: Memory, answer: Answer, right: Memory | None) -> Iterator[WrongWord]:
    """Compare what was pushed into the FIFOs; more or fewer words count as wrong from there on."""
    words, right_words = pushed_words(memory, answer), _right(pushed_words, right, answer)
    for run, first, block, faults in _wrong_blocks(words, answer.pushes, right_words):
        for fault in faults:
            yield _input(Kind.PUSH, int(answer.pushes.addresses[run]), 0, first, block, fault)


def _input(
    kind: Kind,
    start: int,
    step: int,
    first: int,
    block: NDArray[np.uint32],
    fault: WordFault | None,
) -> WrongWord:
    """Return a wrong word of an array whose words are `step` bytes apart."""
    number = first + (fault.number if fault else 0)
    return WrongWord(
        kind,
        "load_input",
        start + step * number,
        fault.expected if fault else None,
        int(block[fault.number]) if fault else None,
        number=number,
    )

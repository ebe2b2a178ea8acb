"""The words that a program wrote before the network starts, against an answer file."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

import numpy as np
from numpy.typing import NDArray

from answer import PHASES, Answer, HashedWords
from answer.hashes import BLOCK_WORDS, block_hashes, find_word, padded
from device import UnknownDeviceError, chip_named
from device.chip import KERNEL_COLUMN_BYTES, KERNEL_COLUMN_STRIDE_BYTES, PROCESSORS_PER_GROUP
from emulator.bits import bytes_at, changed
from emulator.comparison.wrong import ByteChange, Kind, WrongWord
from emulator.state.memory import Memory
from emulator.words.addresses import DATA, INSTANCES_PER_GROUP, KERNELS, AddressMap
from values import frozen

Integers = NDArray[np.int64]

_OTHERS_SHARE = 2


@frozen
class WordComparison:
    """The wrong words in the order of the phases, and how much was compared.

    `blocks` counts the blocks of the input, `wrong_inputs` those that differ, `replaced_inputs`
    those in which more than a word does. `stranger` tells why the file belongs to another project;
    nothing else was compared then.
    """

    wrong: tuple[WrongWord, ...] = ()
    compared: int = 0
    blocks: int = 0
    wrong_inputs: int = 0
    replaced_inputs: int = 0
    stranger: str = ""


def compare_words(memory: Memory, answer: Answer) -> WordComparison:
    """Compare what was written to an accelerator that is about to start."""
    stranger = _stranger(memory, answer)
    if stranger:
        return WordComparison(stranger=stranger)
    registers = list(_registers(memory, answer))
    known = len(answer.registers.addresses)
    if _OTHERS_SHARE * sum(not word.surplus for word in registers) > known:
        text = f"{len(registers)} of {known} registers have other values"
        return WordComparison(stranger=text)
    inputs = [*_inputs(memory, answer), *_pushes(memory, answer)]
    wrong = [*registers, *_kernels(memory, answer), *_biases(memory, answer), *inputs]
    wrong.sort(key=lambda word: (word.surplus, PHASES.index(word.phase)))
    compared = known + len(answer.biases.addresses)
    hashed = (answer.kernels, answer.inputs, answer.pushes)
    return WordComparison(
        tuple(wrong),
        compared + sum(BLOCK_WORDS * len(words.hashes) for words in hashed),
        len(answer.inputs.hashes) + len(answer.pushes.hashes),
        len(inputs),
        sum(word.wanted is None for word in inputs),
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
    known = answer.registers
    for address, value, phase in zip(
        known.addresses.tolist(), known.values.tolist(), known.phases.tolist(), strict=True
    ):
        found = memory.registers.get(address, 0)
        if found != value:
            yield WrongWord(Kind.REGISTER, PHASES[phase], address, value, found)
    written = set(known.addresses.tolist())
    for address, found in memory.registers.items():
        if found and address not in written:
            yield WrongWord(Kind.REGISTER, PHASES[4], address, 0, found, surplus=True)


def _biases(memory: Memory, answer: Answer) -> Iterator[WrongWord]:
    addresses = answer.biases.addresses.astype(np.int64)
    group, _, offset = memory.addresses.split(addresses)
    index = offset // 4 % memory.bias.shape[1]
    found = memory.bias.view(np.uint8)[group, index]
    for i in np.flatnonzero(found != answer.biases.values).tolist():
        wanted = int(answer.biases.values[i])
        change = ByteChange(int(group[i]), int(index[i]), 0, changed(0, wanted, int(found[i])))
        yield WrongWord(
            Kind.BIAS, "cnn_load_bias", int(addresses[i]), wanted, int(found[i]), (change,)
        )


def _kernels(memory: Memory, answer: Answer) -> Iterator[WrongWord]:
    """Compare kernels in the form in which the program stores them."""
    runs = answer.kernels
    words, places = [], []
    for start, count in zip(runs.addresses.tolist(), runs.counts.tolist(), strict=True):
        processor, column = _columns(memory.addresses, start, count)
        inside = column < memory.kernels.shape[1]
        columns = memory.kernels[processor, np.where(inside, column, 0)]
        places.append((processor, column))
        words.append(padded(_packed(columns) if answer.express else _plain(columns)))
    for run, first, block, wanted in _wrong_blocks(words, runs):
        start = int(runs.addresses[run])
        yield _kernel(start, places[run], first, block, wanted, express=answer.express)


def _columns(addresses: AddressMap, start: int, count: int) -> tuple[Integers, Integers]:
    """Return processor and column of `count` kernel columns from an address on."""
    address = start + KERNEL_COLUMN_STRIDE_BYTES * np.arange(count, dtype=np.int64)
    group, _, offset = addresses.split(address)
    stride = addresses.chip.kernel_stride
    processor = group * PROCESSORS_PER_GROUP + offset // stride
    return processor % 64, offset % stride // KERNEL_COLUMN_STRIDE_BYTES


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
    words: Sequence[NDArray[np.uint32]], known: HashedWords
) -> Iterator[tuple[int, int, NDArray[np.uint32], int]]:
    """Yield blocks that differ: number of the run, first word in it, words found, wanted hash."""
    if not words:
        return
    joined = np.concatenate(words)
    found = block_hashes(joined)
    if len(found) != len(known.hashes):
        raise ValueError("the number of hashes is not that of the words")
    ends = np.cumsum([len(part) // BLOCK_WORDS for part in words])
    for block in np.flatnonzero(found != known.hashes).tolist():
        run = int(np.searchsorted(ends, block, side="right"))
        first = block - (int(ends[run - 1]) if run else 0)
        part = joined[block * BLOCK_WORDS : (block + 1) * BLOCK_WORDS]
        yield run, first * BLOCK_WORDS, part, int(known.hashes[block])


def _kernel(
    start: int,
    places: tuple[Integers, Integers],
    first: int,
    block: NDArray[np.uint32],
    wanted_hash: int,
    *,
    express: bool,
) -> WrongWord:
    """Return a wrong block of kernels, down to the bytes if one word explains it.

    `start` is the address of the run, `places` the processor and column of each of its columns.
    """
    fault = find_word(block, wanted_hash)
    masks = dict.fromkeys(range(4 * first, 4 * (first + BLOCK_WORDS)), 0xFF)
    if fault is not None:
        change = changed(0, fault.wanted, int(block[fault.number]))
        begin = 4 * (first + fault.number)
        masks = {begin + i: bytes_at(change, 3 - i, 1) for i in range(4)}
    size = KERNEL_COLUMN_BYTES if express else KERNEL_COLUMN_STRIDE_BYTES
    skipped = 0 if express else 3  # byte 0 is the lowest of its word
    changes, numbers = [], []
    for position, mask in masks.items():
        number, byte = position // size, position % size - skipped
        if mask and number < len(places[0]) and 0 <= byte < KERNEL_COLUMN_BYTES:
            processor, column = (int(place[number]) for place in places)
            changes.append(ByteChange(processor, column, byte, mask))
            numbers.append(number)
    return WrongWord(
        Kind.KERNEL,
        "cnn_load_weights",
        start + KERNEL_COLUMN_STRIDE_BYTES * min(numbers, default=0),
        None if fault is None else fault.wanted,
        None if fault is None else int(block[fault.number]),
        tuple(changes),
    )


def _inputs(memory: Memory, answer: Answer) -> Iterator[WrongWord]:
    """Compare the input in data memory."""
    runs = answer.inputs
    words = []
    for start, count in zip(runs.addresses.tolist(), runs.counts.tolist(), strict=True):
        group, area, offset = memory.addresses.split(start + 4 * np.arange(count, dtype=np.int64))
        unit, rest = np.divmod(offset, memory.chip.instance_stride)
        inside = (area == DATA) & (unit < INSTANCES_PER_GROUP)
        instance = np.where(inside, group * INSTANCES_PER_GROUP + unit, 0)
        words.append(padded(memory.data[instance, rest // 4 % memory.data.shape[1]]))
    for run, first, block, wanted in _wrong_blocks(words, runs):
        yield _input(Kind.INPUT, int(runs.addresses[run]), first, block, wanted)


def _pushes(memory: Memory, answer: Answer) -> Iterator[WrongWord]:
    """Compare what was pushed into the FIFOs; more or fewer words count as wrong from there on."""
    runs = answer.pushes
    words = []
    for address, count in zip(runs.addresses.tolist(), runs.counts.tolist(), strict=True):
        pushed = np.zeros(count, np.uint32)
        got = memory.pushes.get(address, [])[:count]
        pushed[: len(got)] = got
        words.append(padded(pushed))
    for run, first, block, wanted in _wrong_blocks(words, runs):
        yield _input(Kind.PUSH, int(runs.addresses[run]), first, block, wanted)


def _input(
    kind: Kind, start: int, first: int, block: NDArray[np.uint32], wanted_hash: int
) -> WrongWord:
    fault = find_word(block, wanted_hash)
    number = first + (fault.number if fault else 0)
    return WrongWord(
        kind,
        "load_input",
        start if kind is Kind.PUSH else start + 4 * number,
        fault.wanted if fault else None,
        int(block[fault.number]) if fault else None,
        number=number,
    )

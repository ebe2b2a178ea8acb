"""A program that stopped before the network could start: what it has written, and what it should.

Functions write in the order of `PHASES`. What the last function had yet to write is not wrong; what
earlier ones left out is.
"""

from __future__ import annotations

import copy
from dataclasses import replace

import numpy as np
from numpy.typing import NDArray

from ai8xtools.answer import PHASES, Answer, HashedWords
from ai8xtools.answer.hashes import BLOCK_WORDS, block_hashes
from ai8xtools.emulator.comparison.words import (
    Words,
    bias_places,
    input_places,
    input_words,
    kernel_columns,
    kernel_words,
    pushed_words,
)
from ai8xtools.emulator.errors import WrongAddressError
from ai8xtools.emulator.state.memory import Memory
from ai8xtools.emulator.words.addresses import KERNELS
from ai8xtools.emulator.words.writes import Writes
from device.chip import KERNEL_COLUMN_BYTES, PROCESSORS_PER_GROUP

_WEIGHTS, _BIAS, _CONFIGURE, _INPUT = (
    PHASES.index(name)
    for name in ("cnn_load_weights", "cnn_load_bias", "cnn_configure", "load_input")
)
_PLAIN_WORDS = 4  # of a kernel column

Flags = NDArray[np.bool_]


def accepted_writes(memory: Memory, writes: Writes) -> Memory:
    """Return the memory after those of the writes that are no error (E830).

    Raises EmulatorError if the writes are for another chip (E803).
    """
    trial = copy.deepcopy(memory)
    try:
        trial.write(writes)
        return trial
    except WrongAddressError:
        pass
    middle = _boundary(memory, writes)
    if middle is None:
        return memory
    every = np.arange(len(writes))
    memory = accepted_writes(memory, writes.where(every < middle))
    return accepted_writes(memory, writes.where(every >= middle))


def _boundary(memory: Memory, writes: Writes) -> int | None:
    """Return where writes can be parted, best in the middle; not within packed kernels."""
    group, area, offset = memory.addresses.split(writes.address)
    kernels = area == KERNELS
    unit = group * PROCESSORS_PER_GROUP + offset // memory.chip.kernel_stride
    inside = kernels[1:] & kernels[:-1] & (unit[1:] == unit[:-1]) & (writes.size[1:] == 4)
    places = 1 + np.flatnonzero(~inside)
    if not len(places):
        return None
    return int(places[np.argmin(np.abs(places - len(writes) // 2))])


def written_so_far(memory: Memory, answer: Answer) -> Answer:
    """Return an answer that expects only what a program must have written before it stopped.

    Whatever it need not have written yet is expected to be as it is.
    """
    words = kernel_words(memory, answer), input_words(memory, answer), pushed_words(memory, answer)
    group, index = bias_places(memory, answer)
    biases = memory.bias_written[group, index] & (memory.bias[group, index] != 0)
    registers = np.isin(answer.registers.addresses, list(memory.registers))
    phase = _phase(answer, registers, biases, words)
    kernels, inputs, pushes = (
        [_complete(memory, answer, runs, number) for number in range(len(runs.counts))]
        for runs in (answer.kernels, answer.inputs, answer.pushes)
    )
    return replace(
        answer,
        registers=replace(answer.registers, values=_registers(memory, answer, registers, phase)),
        biases=replace(answer.biases, values=_biases(memory, answer, biases, phase)),
        kernels=_hashed(answer.kernels, words[0], kernels, phase - _WEIGHTS),
        inputs=_hashed(answer.inputs, words[1], inputs, phase - _INPUT),
        pushes=_hashed(answer.pushes, words[2], pushes, phase - _INPUT),
    )


def next_word(memory: Memory, answer: Answer) -> tuple[str, int] | None:
    """Return function and address of the first word that was not written; None if all were."""
    registers = answer.registers
    missing = np.flatnonzero(~np.isin(registers.addresses, list(memory.registers))).tolist()
    unwritten = [
        (int(registers.phases[number]), int(registers.addresses[number])) for number in missing[:1]
    ]
    for runs, phase in ((answer.kernels, _WEIGHTS), (answer.inputs, _INPUT)):
        for number, start in enumerate(runs.addresses.tolist()):
            if not _complete(memory, answer, runs, number).all():
                unwritten.append((phase, start))
                break
    missing = np.flatnonzero(~memory.bias_written[bias_places(memory, answer)]).tolist()
    unwritten += [(_BIAS, int(answer.biases.addresses[number])) for number in missing[:1]]
    if not unwritten:
        return None
    phase, address = min(unwritten)
    return PHASES[phase], address


def _phase(
    answer: Answer, registers: Flags, biases: Flags, words: tuple[Words, Words, Words]
) -> int:
    """Return the position in `PHASES` of the last function that has written something."""
    phases = answer.registers.phases
    reached = [0, *phases[registers & (phases <= _CONFIGURE)].tolist()]
    kernels, inputs, pushes = words
    if any(part.any() for part in kernels):
        reached.append(_WEIGHTS)
    if biases.any():
        reached.append(_BIAS)
    if any(part.any() for part in (*inputs, *pushes)):
        reached.append(_INPUT)
    return int(max(reached))


def _before_last(touched: Flags) -> Flags:
    """Tell of each place whether it or one behind it was touched."""
    result: Flags = np.logical_or.accumulate(touched[::-1])[::-1]
    return result


def _registers(memory: Memory, answer: Answer, written: Flags, phase: int) -> NDArray[np.uint32]:
    """Return expected values; a control register may be written again later in its function."""
    expected = answer.registers
    actual = [memory.registers.get(address, 0) for address in expected.addresses.tolist()]
    current = expected.phases == phase
    repeated = np.isin(expected.addresses, list(memory.addresses.ordered))
    due = (expected.phases < phase) | (current & ~repeated & _before_last(written & current))
    return np.where(due, expected.values, actual).astype(np.uint32)


def _biases(memory: Memory, answer: Answer, touched: Flags, phase: int) -> NDArray[np.uint8]:
    actual = memory.bias.view(np.uint8)[bias_places(memory, answer)]
    due = _before_last(touched) if phase == _BIAS else np.full(len(touched), phase > _BIAS)
    return np.where(due, answer.biases.values, actual).astype(np.uint8)


def _complete(memory: Memory, answer: Answer, runs: HashedWords, number: int) -> Flags:
    """Tell of each word of a run whether it was written."""
    start, count = int(runs.addresses[number]), int(runs.counts[number])
    if runs is answer.pushes:
        return np.asarray(np.arange(count) < len(memory.pushes.get(start, ())))
    if runs is answer.inputs:
        instance, word = input_places(memory, start, count)
        written = memory.data_written.reshape(len(memory.data), -1, 4)[instance, word]
        return np.asarray(written.all(axis=1))
    columns = memory.kernels_written[kernel_columns(memory, start, count)]
    if not answer.express:
        return np.repeat(columns, _PLAIN_WORDS)
    of_bytes = np.repeat(columns, KERNEL_COLUMN_BYTES)
    padding = np.ones(-len(of_bytes) % 4, np.bool_)
    return np.asarray(np.concatenate([of_bytes, padding]).reshape(-1, 4).all(axis=1))


def _hashed(expected: HashedWords, words: Words, complete: list[Flags], lead: int) -> HashedWords:
    """Return hashes of which those of blocks not yet due are as found.

    `lead` is whether the function of the words is over (positive), at work (0) or still to come. At
    work, blocks are due before the last one that holds something, and that one if it is whole.
    """
    if not words or lead > 0:
        return expected
    actual = block_hashes(np.concatenate(words))
    whole = np.concatenate(
        [
            np.concatenate([flags, np.ones(-len(flags) % BLOCK_WORDS, np.bool_)])
            for flags in complete
        ]
    )
    used = np.concatenate(words).reshape(-1, BLOCK_WORDS).any(axis=1)
    later = _before_last(np.asarray(used & (lead == 0)))
    behind = np.concatenate([later[1:], [False]])
    due = behind | (later & whole.reshape(-1, BLOCK_WORDS).all(axis=1))
    return replace(expected, hashes=np.where(due, expected.hashes, actual))

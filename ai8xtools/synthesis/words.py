"""What the bus will see of a program: the words each phase leaves behind.

Used to verify compiled firmware word by word (`ai8xize.py --verify`). Values are plain integers, so
that the emulator can compare them without knowing this room.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import field

import numpy as np

from ai8xtools.answer import PHASES
from ai8xtools.synthesis.program import Block, Clear, KernelBlock, Program, Write
from ai8xtools.values import frozen
from device import Chip
from device.chip import (
    AON_CONTROL,
    FAST_FIFO_CONTROL,
    FIFO_CONTROL,
    GROUPS,
    KERNEL_COLUMN_STRIDE_BYTES,
    POWER_CONTROL,
)

_ALL_GROUPS = 0xF


@frozen
class PhaseWords:
    """Final memory words by address, control words in order, and pushes of each FIFO address."""

    words: Mapping[int, int]
    control: tuple[tuple[int, int], ...]
    pushes: Mapping[int, tuple[int, ...]] = field(default_factory=dict)


def phase_words(program: Program) -> dict[str, PhaseWords]:
    """Return the words of each phase, by the name of the function that writes them.

    Kernel columns are given as three words each, as if written without express mode.
    """
    ordered = _ordered_addresses(program)
    return {
        "cnn_enable": PhaseWords({}, _power(program)),
        "cnn_init": _blocks(program.init, ordered),
        "cnn_load_weights": PhaseWords(_kernels(program), ()),
        "cnn_load_bias": PhaseWords(
            {b.address + 4 * i: int(v) for b in program.biases for i, v in enumerate(b.values)}, ()
        ),
        "cnn_configure": _blocks(program.configure, ordered),
        "load_input": PhaseWords(
            {b.address + 4 * i: int(w) for b in program.inputs for i, w in enumerate(b.words)},
            (),
            pushes(program),
        ),
        "cnn_start": _blocks(program.start, ordered),
    }


def final_registers(program: Program) -> dict[int, tuple[int, int]]:
    """Return the registers when the network starts: value and number of the phase, by address."""
    number = {name: index for index, name in enumerate(PHASES)}
    registers: dict[int, tuple[int, int]] = {}
    for address, value in _power(program):
        registers[address] = value, number["cnn_enable"]
    for phase, blocks in (
        ("cnn_init", program.init),
        ("cnn_configure", program.configure),
        ("cnn_start", program.start),
    ):
        for block in blocks:
            for step in block.steps:
                if isinstance(step, Write) and not step.skipped:
                    registers[step.address] = step.value, number[phase]
    return registers


def _power(program: Program) -> tuple[tuple[int, int], ...]:
    power, base = program.power.groups_mask, POWER_CONTROL
    return (
        (base + 12, _ALL_GROUPS),
        (base + 4, power),
        (base, power),
        (base + 8, ~power & _ALL_GROUPS),
        (base + 12, 0),
    )


def _ordered_addresses(program: Program) -> frozenset[int]:
    """Control registers whose writes matter in their order."""
    chip, base = program.chip, program.apb_base
    names = ("CTL", "SRAM_TEST")
    controls = {base + chip.control_address(g, n) for g in range(GROUPS) for n in names}
    fifos = {base + FIFO_CONTROL, FAST_FIFO_CONTROL}
    return frozenset(controls | fifos | {base + AON_CONTROL})


def pushes(program: Program) -> dict[int, tuple[int, ...]]:
    """Words by FIFO address; streams that share an address take turns."""
    queues: dict[int, list[int]] = {}
    for words in zip(*(stream.words.tolist() for stream in program.fifo), strict=True):
        for stream, word in zip(program.fifo, words, strict=True):
            queues.setdefault(stream.data_address, []).append(word)
    return {address: tuple(words) for address, words in queues.items()}


def _blocks(blocks: Iterable[Block], ordered: frozenset[int]) -> PhaseWords:
    words: dict[int, int] = {}
    control: list[tuple[int, int]] = []
    for block in blocks:
        for step in block.steps:
            if isinstance(step, Clear):
                words |= dict.fromkeys(range(step.address, step.address + step.size_bytes, 4), 0)
            elif isinstance(step, Write) and not step.skipped:
                if step.address in ordered:
                    control.append((step.address, step.value))
                else:
                    words[step.address] = step.value
    return PhaseWords(words, tuple(control))


def _kernels(program: Program) -> dict[int, int]:
    words: dict[int, int] = {}
    for block in program.kernels:
        if program.express:
            words |= _express_columns(block, program.chip)
        else:
            for i, word in enumerate(block.words):
                words[block.address + 4 * i] = int(word)
    return words


def _express_columns(block: KernelBlock, chip: Chip) -> dict[int, int]:
    """Undo the packing: 9-byte columns from the big-endian words of a block."""
    data = block.words.astype(">u4").tobytes()
    columns = np.frombuffer(data[: len(data) // 9 * 9], np.uint8).reshape(-1, 9)
    first = chip.column_address(block.address)
    words: dict[int, int] = {}
    for i, column in enumerate(columns):
        address = first + i * KERNEL_COLUMN_STRIDE_BYTES
        raw = column.tobytes()
        for part, piece in enumerate((raw[:1], raw[1:5], raw[5:])):
            words[address + 4 * part] = int.from_bytes(piece, "big")
    return words

"""Networks that are in the accelerator together, each with kernels and biases of its own.

Source: docs/library.md, "Several networks in the accelerator".
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import replace
from itertools import combinations

import numpy as np
from numpy.typing import NDArray

from ai8xtools.answer import PHASES, Answer, Registers
from ai8xtools.diagnostics import Place, refused
from ai8xtools.synthesis.options import Occupied
from ai8xtools.values import frozen
from device import Chip
from device.chip import (
    GROUPS,
    KERNEL_COLUMN_BYTES,
    KERNEL_COLUMN_STRIDE_BYTES,
    POWER_CONTROL,
    POWER_REGISTERS,
    PROCESSORS,
    PROCESSORS_PER_GROUP,
)

_KEPT = ("SRAM", "SRAM_TEST")
"""Control registers that are alike for all networks, or change nothing while none is started."""


@frozen
class Resident:
    """A library that is in the accelerator: its answer, and the texts of its files by name.

    `source` is where they were read.
    """

    answer: Answer
    files: Mapping[str, str]
    source: str

    @property
    def prefix(self) -> str:
        """What its names begin with."""
        return self.answer.symbol_prefix


@frozen
class Turn:
    """What is written before a network takes its turn and sets up its own registers: addresses of
    zeros, and words by address for groups that others use."""

    zeros: tuple[int, ...]
    idle: tuple[tuple[int, int], ...]

    @property
    def words(self) -> int:
        """Number of words."""
        return len(self.zeros) + len(self.idle)


def occupied_by(residents: Sequence[Resident], chip: Chip) -> Occupied:
    """Return what networks have of the memories together.

    Raises DiagnosticError: E443 where two have the same columns or bytes, E918 where an answer
    names a place that the chip does not have.
    """
    kernels, biases = [], []
    for one in residents:
        try:
            kernels.append(_columns(one.answer, chip))
            biases.append(_biases(one.answer, chip))
        except IndexError as exc:
            raise refused(
                "E918", f"{one.prefix} has kernels or biases where {chip.name} has no memory",
                Place(file=one.source), "Generate it again.",
            ) from exc  # fmt: skip
    for memories, unit, what in ((kernels, "processor", "column"), (biases, "group", "bias byte")):
        for a, b in combinations(range(len(residents)), 2):
            for number, (x, y) in enumerate(zip(memories[a], memories[b], strict=True)):
                both = np.flatnonzero(np.logical_and(x, y))
                if both.size:
                    one, other = residents[a], residents[b]
                    raise refused(
                        "E443",
                        f"{other.prefix} and {one.prefix} ({one.source}) have {both.size} of the "
                        f"same {what}s of {unit} {number}, the first is {what} {both[0]}",
                        Place(file=other.source),
                        f"Generate {other.prefix} again with --also {one.source}.",
                    )
    return Occupied(
        tuple(one.prefix for one in residents),
        tuple(map(_mask, np.logical_or.reduce(kernels))),
        tuple(_end(group) for group in np.logical_or.reduce(biases)),
    )


def kernel_bytes(answer: Answer) -> int:
    """Return the bytes of a network's kernel columns."""
    return KERNEL_COLUMN_BYTES * int(answer.kernels.counts.sum())


def groups_of(answers: Iterable[Answer]) -> int:
    """Return the mask of the groups that need power."""
    mask = 0
    for answer in answers:
        registers = answer.registers
        mask |= int(registers.values[registers.addresses == POWER_CONTROL].max(initial=0))
    return mask


def turn_of(own: Answer, others: Iterable[Answer], chip: Chip) -> Turn:
    """Return what leaves nothing of others in registers that a network does not write itself.

    Groups that it does not use keep their clock and are idle.
    """
    foreign = frozenset().union(*map(registers_of, others)) - registers_of(own)
    controls = {own.apb_base + chip.control_address(g, "CTL") for g in range(GROUPS)}
    kept = _kept(own, chip)
    idle = chip.control_registers["CTL"].pack(clock_enable=1)
    return Turn(
        tuple(sorted(foreign - controls - kept)),
        tuple((address, idle) for address in sorted(foreign & controls)),
    )


def answer_in_turn(own: Answer, others: Sequence[Answer], chip: Chip) -> Answer:
    """Return what a network's registers hold behind the turns of others: also the power of their
    groups, which are idle, and what a turn keeps."""
    enabled, ready = PHASES.index("cnn_enable"), PHASES.index("cnn_init")
    values = {address: (value, ready) for address, value in turn_of(own, others, chip).idle}
    for answer in (*others, own):
        registers = answer.registers
        rows = zip(*(part.tolist() for part in (registers.addresses, registers.values,
                                                registers.phases)), strict=True)  # fmt: skip
        kept = _kept(answer, chip)
        values |= {a: (v, phase) for a, v, phase in rows if answer is own or a in kept}
    groups = groups_of((own, *others))
    power = groups, groups, (1 << GROUPS) - 1 - groups, 0  # supplies, isolation, reset
    values |= {POWER_CONTROL + 4 * i: (power[i], enabled) for i in range(POWER_REGISTERS)}
    columns = ([*values], *zip(*values.values(), strict=True))
    types = np.uint32, np.uint32, np.uint8
    return replace(own, registers=Registers(*map(np.array, columns, types)))


def registers_of(answer: Answer) -> frozenset[int]:
    """Return the addresses of the registers of the accelerator, those of its power left out."""
    registers = answer.registers
    own = registers.phases != PHASES.index("cnn_enable")
    return frozenset(registers.addresses[own].tolist())


def _kept(answer: Answer, chip: Chip) -> frozenset[int]:
    places = (chip.control_address(g, name) for g in range(GROUPS) for name in _KEPT)
    return frozenset(answer.apb_base + place for place in places)


def _columns(answer: Answer, chip: Chip) -> NDArray[np.bool_]:
    """Return which columns of each processor are written: bool [processor, column]."""
    runs = zip(answer.kernels.addresses.tolist(), answer.kernels.counts.tolist(), strict=True)
    columns = max(map(chip.kernel_capacity, range(PROCESSORS)))
    if answer.kernels.counts.max(initial=0) > columns:
        raise IndexError("more columns than a processor has")
    steps = [a + KERNEL_COLUMN_STRIDE_BYTES * np.arange(n, dtype=np.int64) for a, n in runs]
    places = np.concatenate([np.zeros(0, np.int64), *steps])
    places -= answer.apb_base + chip.group(0) + chip.kernel_offset
    group, rest = np.divmod(places, chip.group_stride)
    unit, offset = np.divmod(rest, chip.kernel_stride)
    written = np.zeros((PROCESSORS, columns), np.bool_)
    _refuse_negative(group)
    written[group * PROCESSORS_PER_GROUP + unit, offset // KERNEL_COLUMN_STRIDE_BYTES] = True
    return written


def _biases(answer: Answer, chip: Chip) -> NDArray[np.bool_]:
    """Return which bytes of each group are written: bool [group, byte]."""
    places = answer.biases.addresses.astype(np.int64)
    places -= answer.apb_base + chip.group(0) + chip.bias_offset
    group, rest = np.divmod(places, chip.group_stride)
    written = np.zeros((GROUPS, chip.bias_bytes), np.bool_)
    _refuse_negative(group)
    written[group, rest // 4] = True
    return written


def _refuse_negative(places: NDArray[np.int64]) -> None:
    """Raise IndexError for a place below the first one, as numpy does for one above the last."""
    if places.min(initial=0) < 0:
        raise IndexError(f"no place {places.min()}")


def _mask(used: NDArray[np.bool_]) -> int:
    return int.from_bytes(np.packbits(used, bitorder="little").tobytes(), "little")


def _end(used: NDArray[np.bool_]) -> int:
    """Return the number of bytes up to the last one that is used."""
    return int(np.flatnonzero(used)[-1]) + 1 if used.any() else 0

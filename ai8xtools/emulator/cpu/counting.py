"""Counting the instructions that a program executes, and estimating the cycles that they take.

Instructions are counted exactly: unicorn tells of every block of code that it enters, and each
block is decoded once. An instruction that a condition skips counts, as it does on the core.
Cycles follow from a table of kinds of instructions and are an estimate: they know neither the
memory nor which branches are taken (all are taken to be).
"""

from __future__ import annotations

from collections import defaultdict
from typing import assert_never

from ai8xtools.emulator.cpu.architecture import Architecture
from ai8xtools.emulator.cpu.core import Core
from ai8xtools.emulator.cpu.instructions import Instruction, Kind, instructions, refusal
from ai8xtools.emulator.errors import StoppedError
from ai8xtools.values import frozen


@frozen
class CycleTable:
    """Cycles of each kind of instruction; `each` comes for every register of several, on top.

    Source: docs/emulator.md, "Cores without an accelerator".
    """

    load: float = 2
    store: float = 1
    each: float = 1
    multiple: float = 1
    multiply: float = 1
    divide: float = 7
    branch: float = 3
    jump: float = 3

    def cycles(self, instruction: Instruction) -> float:
        """Cycles of one instruction."""
        match instruction.kind:
            case Kind.PLAIN:
                return 1
            case Kind.LOAD:
                return self.load
            case Kind.STORE:
                return self.store
            case Kind.MULTIPLE:
                return self.multiple + self.each * instruction.transfers
            case Kind.MULTIPLY:
                return self.multiply
            case Kind.DIVIDE:
                return self.divide
            case Kind.BRANCH:
                return self.branch
            case Kind.JUMP:
                return self.jump
            case _:
                assert_never(instruction.kind)


_SMALL_ARM = CycleTable(store=2, branch=2, jump=3)
_TABLES = {
    "Cortex-M0+": _SMALL_ARM,
    "Cortex-M7": CycleTable(load=1, each=0.5, branch=1, jump=2),
    "RISC-V": CycleTable(divide=33),
    "RV32EC": CycleTable(divide=33),
    "RV32EmC": CycleTable(divide=33),
}
_OTHERS = CycleTable()


def cycle_table(core: Architecture) -> CycleTable:
    """Return the table of a core."""
    return _TABLES.get(core.title, _OTHERS)


@frozen
class Cost:
    """What a function, without those that it calls, or a whole program executes."""

    instructions: int
    cycles: float

    def __add__(self, other: Cost) -> Cost:
        """Return the sum of both."""
        return Cost(self.instructions + other.instructions, self.cycles + other.cycles)


NOTHING = Cost(0, 0.0)


class Counter:
    """Counts what a core executes, per function, from its making on.

    With `within` only what runs between the call of this function and its return is counted, the
    functions that it calls included; `entries` is how often it was called. Executing what the core
    does not have ends the program (E827).
    """

    def __init__(self, core: Core, within: str | None = None) -> None:
        self.entries = 0
        self._core = core
        self._image = core.image
        self._executed: dict[tuple[int, int], int] = defaultdict(int)
        self._blocks: dict[tuple[int, int], Cost] = {}
        self._entry = None if within is None else self._address(within)
        self._back: int | None = None
        self._counting = within is None
        core.watch_blocks(self._enter)

    def by_function(self) -> dict[str, Cost]:
        """Return what each function has executed, the most expensive first."""
        costs: dict[str, Cost] = defaultdict(lambda: NOTHING)
        for (address, size), times in self._executed.items():
            block = self._blocks[address, size]
            name = self._image.function_at(address).removesuffix("()")
            costs[name] += Cost(times * block.instructions, times * block.cycles)
        return dict(sorted(costs.items(), key=lambda item: -item[1].instructions))

    def total(self) -> Cost:
        """Return what has been executed at all."""
        return sum(self.by_function().values(), NOTHING)

    def _address(self, name: str) -> int:
        family = self._image.architecture.family
        return self._image.symbols[name] & ~family.code_bit

    def _enter(self, address: int, size: int) -> None:
        if self._entry is not None:
            if address == self._entry and not self._counting:
                self._counting, self._back = True, self._core.return_address()
                self.entries += 1
            elif address == self._back:
                self._counting, self._back = False, None
        key = (address, size)
        if key not in self._blocks:
            self._blocks[key] = cost_of_block(self._core, address, size)
        if self._counting:
            self._executed[key] += 1


def cost_of_block(core: Core, address: int, size: int) -> Cost:
    """Return what a block of code executes each time; raises StoppedError E827 for what the core
    does not have."""
    architecture = core.image.architecture
    table, cost = cycle_table(architecture), NOTHING
    for instruction in instructions(core.read_memory(address, size), architecture.family):
        reason = refusal(architecture, instruction)
        if reason is not None:
            place = core.image.function_at(address)
            raise StoppedError("E827", f"{place} makes the {architecture.title} use {reason}")
        cost += Cost(1, table.cycles(instruction))
    return cost

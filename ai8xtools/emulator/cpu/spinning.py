"""Whether a program that waits awake can go on by itself.

A loop after which all registers and all of the SRAM are as before repeats itself until something
else changes what it reads. The program really executes what is looked at here.
"""

from __future__ import annotations

from typing import Any

from unicorn import UC_HOOK_CODE, UC_HOOK_MEM_READ

from ai8xtools.emulator.cpu.architecture import Family
from ai8xtools.emulator.cpu.memory_map import CoreMemory

_INSTRUCTIONS = 8192
"""As many are looked at; longer loops go unnoticed."""


class Spin:
    """Watches the instructions that a core executes next, and stops it when it knows enough.

    `repeats` tells whether the loop was found, `reads` are the addresses in SRAM below the stack
    that it reads.
    """

    def __init__(self, uc: Any, family: Family, memory: CoreMemory) -> None:
        self.repeats = False
        self.reads: set[int] = set()
        self._uc, self._family, self._memory = uc, family, memory
        self._count, self._next = 0, 1
        self._anchor: tuple[int, tuple[int, ...], bytes] | None = None
        self._hooks = (
            uc.hook_add(UC_HOOK_CODE, self._before),
            uc.hook_add(UC_HOOK_MEM_READ, self._note),
        )
        uc.ctl_flush_tb()

    def end(self) -> None:
        """Watch no longer."""
        for hook in self._hooks:
            self._uc.hook_del(hook)
        self._uc.ctl_flush_tb()

    def _before(self, _uc: Any, address: int, _size: int, _data: object) -> None:
        self._count += 1
        if self._anchor is not None and self._anchor[0] == address:
            self.repeats = self._anchor == self._state(address)
        if self.repeats or self._count > _INSTRUCTIONS:
            self._uc.emu_stop()
        elif self._count == self._next:
            self._next *= 2
            self._anchor = self._state(address)
            self.reads.clear()

    def _note(
        self, _uc: Any, _kind: int, address: int, _size: int, _value: int, _data: object
    ) -> None:
        if self._memory.sram_base <= address < self._uc.reg_read(self._family.stack):
            self.reads.add(address)

    def _state(self, address: int) -> tuple[int, tuple[int, ...], bytes]:
        registers = tuple(self._uc.reg_read(register) for register in self._family.state)
        return (
            address,
            registers,
            self._uc.mem_read(self._memory.sram_base, self._memory.sram_bytes),
        )

"""Registers inside an Arm core: interrupt controller, system timer, debugging. Memory, mostly.

The cycle counter and the system timer get on whenever they are read, so that programs which wait
for them do not wait for ever; the timer interrupts a program that lets it.
Source: docs/emulator.md, "The core and its peripherals".
"""

from __future__ import annotations

from collections.abc import Callable

from ai8xtools.emulator.bits import bytes_at, with_bytes, word_address
from ai8xtools.emulator.cpu.io import IoArea
from device.fields import Register, flag

_BASE, _BYTES = 0xE0000000, 0xF000
_CYCLE_COUNTER, _TIMER_CONTROL, _TIMER_LOAD = 0xE0001004, 0xE000E010, 0xE000E014
_TIMER_VALUE = 0xE000E018
_TIMER = Register(
    "CTRL",
    0,
    "system timer",
    (
        flag("enable", 0, "the timer counts"),
        flag("interrupts", 1, "at its end"),
        flag("wrapped", 16, "it has reached 0 since"),
    ),
)
_CYCLES = 100
"""Cycles that pass while a counter is read."""


class SystemArea:
    """The words of these registers, by address.

    `start_timer` gets the cycles between two interrupts of the system timer; 0: there are none.
    """

    def __init__(self, start_timer: Callable[[int], None]) -> None:
        self.words: dict[int, int] = {}
        self._start_timer = start_timer

    @property
    def area(self) -> IoArea:
        """The addresses of the registers."""
        return IoArea("the system's area", _BASE, _BYTES, self.read, self.write)

    def read(self, address: int, size: int) -> int:
        """Load 1, 2 or 4 bytes."""
        word = word_address(address)
        value = self.words.get(word, 0)
        if word == _CYCLE_COUNTER:
            value = self.words[word] = value + _CYCLES
        elif word == _TIMER_VALUE:
            value = self.words[word] = max(value - _CYCLES, 0)
        elif word == _TIMER_CONTROL and _TIMER.unpack(value)["enable"]:
            value = _TIMER.by_name["wrapped"].set(value, 1)
        return bytes_at(value, address, size)

    def write(self, address: int, size: int, value: int) -> None:
        """Store 1, 2 or 4 bytes."""
        word = word_address(address)
        self.words[word] = with_bytes(self.words.get(word, 0), address, size, value)
        if word == _TIMER_CONTROL:
            fields = _TIMER.unpack(value)
            runs = fields["enable"] and fields["interrupts"]
            self._start_timer(self.words.get(_TIMER_LOAD, 0) + 1 if runs else 0)

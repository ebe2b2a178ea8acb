"""Conditional execution on MAX78002: units that watch what layers write to data memory.

A unit compares the address and the value of every written word. Matches are counted and added
up, and can end the network after the layer or make it continue with the layer that NXTLYR names;
without a match the next layer follows. The meaning of the bits is undocumented and was inferred
from the vendor's test networks; units that use other bits are ignored, with a finding.
Source: docs/emulator.md, "Properties that registers do not contain";
docs/hardware/execution.md, "Conditional execution".
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from enum import Enum

import numpy as np
from numpy.typing import NDArray

from ai8xtools.emulator.bits import WORD_BITS, signed, truncated
from ai8xtools.emulator.state.memory import Memory
from ai8xtools.values import frozen
from device.chip import GROUPS
from device.registers import Register

Integers = NDArray[np.int64]

_EQUAL, _RANGE = 2, 5
_UPPER_BYTE, _WORD = 6, 8
_UNITS = (1, 2)


class Decision(Enum):
    """The layer that a unit makes follow in place of the one in the registers."""

    STOP = "none"
    NEXT_IN_ORDER = "the next one"


@frozen
class WrittenWords:
    """Words that a layer wrote: addresses as write pointers have them, ascending, and values."""

    pointers: Integers
    values: Integers


def watch(
    memory: Memory, written: Callable[[], WrittenWords], complain: Callable[[str], None]
) -> Decision | None:
    """Let all units see what a layer wrote; they leave their results in their registers.

    `written` is only called if there is a unit in use; `complain` gets what cannot be modelled.
    """
    decision = None
    for group, unit in _units_in_use(memory):
        decision = _Unit(memory, group, unit).look_at(written(), complain) or decision
    return decision


def is_configured(memory: Memory) -> bool:
    """Tell whether any unit watches what layers write."""
    return any(True for _ in _units_in_use(memory))


def result_words(memory: Memory) -> dict[int, int]:
    """Return the registers with results of the units in use, by address."""
    addresses = {
        memory.addresses.apb_base + memory.chip.control_address(group, f"SNP{unit}_{name}")
        for group, unit in _units_in_use(memory)
        for name in ("ACC", "HIT", "MAX", "AM")
    }
    return {address: memory.registers.get(address, 0) for address in addresses}


def _units_in_use(memory: Memory) -> Iterator[tuple[int, int]]:
    if not memory.chip.has_extended_modes:
        return
    for group in range(GROUPS):
        if not memory.control_register("CTL", group)["snoop"]:
            continue
        for unit in _UNITS:
            if memory.control_register(f"SNP{unit}_C1", group)["enable"]:
                yield group, unit


class _Unit:
    """One unit of a group."""

    def __init__(self, memory: Memory, group: int, unit: int) -> None:
        self._memory, self._group, self._unit = memory, group, unit
        self._condition = self._fields("C1")

    def look_at(self, written: WrittenWords, complain: Callable[[str], None]) -> Decision | None:
        """Compare what was written, note the results and say what follows."""
        condition = self._condition
        first, last = self._fields("A1"), self._fields("A2")
        if not (
            first["writes"]
            and condition["compare_address"] in (_EQUAL, _RANGE)
            and condition["compare_data"] in (_EQUAL, _RANGE)
            and condition["unit"] in (_UPPER_BYTE, _WORD)
        ):
            complain(self._says("its comparison is not emulated, nothing is counted"))
            return None
        start = first["pointer"]
        end = last["pointer"] if condition["compare_address"] == _RANGE else start
        watched = (written.pointers >= start) & (written.pointers <= end)
        if not watched.any():
            return None
        values = written.values[watched]
        if condition["unit"] == _UPPER_BYTE:
            values = values.astype("<u4").view(np.uint8)[3::4].astype(np.int64)
        matches = self._matches(values)
        self._note(written.pointers[watched][matches], values[matches])
        if condition["compare_count"] and (condition["stop"] or condition["jump"]):
            complain(self._says("it compares counts, so that the layers that follow are a guess"))
            return None
        if condition["stop"] and matches.any():
            return Decision.STOP
        if condition["jump"] and not matches.any():
            return Decision.NEXT_IN_ORDER
        return None

    def _matches(self, values: Integers) -> NDArray[np.bool_]:
        first, last = self._signed(self._get("D1")), self._signed(self._get("D2"))
        if self._condition["compare_data"] == _EQUAL:
            last = first
        values = np.array([self._signed(value) for value in values.tolist()], np.int64)
        inside: NDArray[np.bool_] = (values >= first) & (values <= last)
        return inside

    def _signed(self, value: int) -> int:
        return signed(value, 8 if self._condition["unit"] == _UPPER_BYTE else WORD_BITS)

    def _note(self, pointers: Integers, values: Integers) -> None:
        """Enter matches into the registers that are in use."""
        for pointer, value in zip(pointers.tolist(), values.tolist(), strict=True):
            if self._condition["accumulate"]:
                self._set("ACC", self._get("ACC") + value)
            if self._condition["count"]:
                self._set("HIT", self._get("HIT") + 1)
            if self._condition["maximum"] and self._signed(value) > self._signed(self._get("MAX")):
                self._set("MAX", value)
                self._set("AM", self._register("AM").pack(pointer=pointer, writes=1))

    def _says(self, text: str) -> str:
        return f"conditional execution, unit {self._unit}: {text}"

    def _address(self, name: str) -> int:
        number = self._memory.chip.control_address(self._group, f"SNP{self._unit}_{name}")
        return self._memory.addresses.apb_base + number

    def _register(self, name: str) -> Register:
        return self._memory.chip.control_registers[f"SNP{self._unit}_{name}"]

    def _fields(self, name: str) -> dict[str, int]:
        return self._register(name).unpack(self._get(name))

    def _get(self, name: str) -> int:
        return self._memory.registers.get(self._address(name), 0)

    def _set(self, name: str, value: int) -> None:
        self._memory.registers[self._address(name)] = truncated(value)

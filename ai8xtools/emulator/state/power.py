"""Power and clocks: what must be on before the accelerator, or the second core, runs.

Source: docs/hardware/execution.md, "Power and clock"; docs/emulator.md, "The core and its
peripherals".
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping

from ai8xtools.emulator.bits import numbers_in
from ai8xtools.emulator.errors import EmulatorError
from device.chip import POWER_CONTROL, POWER_REGISTERS

CLOCK_GATES = (0x40000024, 0x40000048)
"""Registers whose bits are set where a peripheral's clock is off, as all are after reset."""
CNN_CLOCK, CPU1_CLOCK = 25, 63
"""Numbers of clocks: bits of the two registers."""

_SUPPLY, _KERNEL_SUPPLY, _ISOLATION, _RESET = (
    POWER_CONTROL + 4 * i for i in range(POWER_REGISTERS)
)
_REMEDY = "Call cnn_enable() first."


def is_running(words: Mapping[int, int], clock: int) -> bool:
    """Tell from the clock gates whether a clock runs."""
    gate, bit = divmod(clock, 32)
    return bit not in numbers_in(words.get(CLOCK_GATES[gate], 0))


def check_clock(words: Mapping[int, int]) -> None:
    """Refuse an accelerator without power or clock (E834)."""
    if not words.get(_SUPPLY, 0):
        raise EmulatorError(
            "E834", "the accelerator is started while its power is off", remedy=_REMEDY
        )
    if not is_running(words, CNN_CLOCK):
        raise EmulatorError(
            "E834", "the accelerator is started while its clock is off", remedy=_REMEDY
        )


def check_power(words: Mapping[int, int], groups: Iterable[int]) -> None:
    """Refuse groups that take part without power (E834); where nothing was written, all is well."""
    if not any(register in words for register in (_SUPPLY, _ISOLATION, _RESET)):
        return
    for group in groups:
        problem = (
            "no power" if not _bit(words, _SUPPLY, group)
            else "no power for its kernels" if not _bit(words, _KERNEL_SUPPLY, group)
            else "isolated" if _bit(words, _ISOLATION, group)
            else "in reset" if _bit(words, _RESET, group)
            else ""
        )  # fmt: skip
        if problem:
            raise EmulatorError(
                "E834", f"group {group} is started, but it is not usable: {problem}", remedy=_REMEDY
            )


def _bit(words: Mapping[int, int], address: int, bit: int) -> bool:
    return bit in numbers_in(words.get(address, 0))

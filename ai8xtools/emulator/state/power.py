"""Power and clocks: what must be on before the accelerator, or the second core, runs.

Source: docs/hardware/execution.md, "Power and clock"; docs/emulator.md, "The core and its
peripherals".
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping

import numpy as np

from ai8xtools.emulator.bits import numbers_in
from ai8xtools.emulator.errors import EmulatorError
from ai8xtools.emulator.words.addresses import DATA, REGISTERS, AddressMap
from ai8xtools.values import frozen
from device.chip import GROUPS, POWER_CONTROL, POWER_REGISTERS

CLOCK_GATES = (0x40000024, 0x40000048)
"""Registers whose bits are set where a peripheral's clock is off, as all are after reset."""
CNN_CLOCK, CPU1_CLOCK = 25, 63
"""Numbers of clocks: bits of the two registers."""

_SUPPLY, _KERNEL_SUPPLY, ISOLATION, _RESET = (POWER_CONTROL + 4 * i for i in range(POWER_REGISTERS))
_REMEDY = "Call cnn_enable() first."
RETENTION_BIT = 16
"""From this bit on the register of isolation says what stays without supply."""
_KEEPS_DATA, _KEEPS_KERNELS = RETENTION_BIT, RETENTION_BIT + 4


@frozen
class PowerLoss:
    """Groups that lose registers and biases, kernels, and data."""

    registers: frozenset[int] = frozenset()
    kernels: frozenset[int] = frozenset()
    data: frozenset[int] = frozenset()

    def with_loss(self, other: PowerLoss) -> PowerLoss:
        """Return both together."""
        return PowerLoss(
            self.registers | other.registers, self.kernels | other.kernels, self.data | other.data
        )

    def among(self, addresses: AddressMap, words: Iterable[int]) -> list[int]:
        """Return those of some addresses whose registers or data are lost."""
        every = np.array([*words], np.int64)
        group, area, _ = addresses.split(every)
        lost = (area == REGISTERS) & np.isin(group, [*self.registers])
        lost |= (area == DATA) & np.isin(group, [*self.data])
        return [int(address) for address in every[lost]]


def is_supplied_anew(words: Mapping[int, int], address: int, value: int) -> bool:
    """Whether a value of a register of power turns groups on that were off."""
    return address == _SUPPLY and bool({*numbers_in(value)} - {*numbers_in(words.get(address, 0))})


def loss_by(words: Mapping[int, int], address: int, value: int) -> PowerLoss:
    """Return what groups lose when a register of power gets a value."""
    before = {*numbers_in(words.get(address, 0))}
    now = {*numbers_in(value)}
    if address == _RESET:
        reset = frozenset(now - before) & {*range(GROUPS)}
        return PowerLoss(registers=reset)
    off = frozenset(before - now) & {*range(GROUPS)}
    if address not in (_SUPPLY, _KERNEL_SUPPLY):
        return PowerLoss()
    kernels, data = (_without(words, first) & off for first in (_KEEPS_KERNELS, _KEEPS_DATA))
    return PowerLoss(off, kernels, data) if address == _SUPPLY else PowerLoss(kernels=kernels)


def loss_asleep(words: Mapping[int, int]) -> PowerLoss:
    """Return what all groups lose in modes that turn the accelerator off."""
    groups = frozenset(range(GROUPS))
    return PowerLoss(groups, _without(words, _KEEPS_KERNELS), _without(words, _KEEPS_DATA))


def _without(words: Mapping[int, int], first: int) -> frozenset[int]:
    return frozenset(g for g in range(GROUPS) if not _bit(words, ISOLATION, first + g))


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
    if not any(register in words for register in (_SUPPLY, ISOLATION, _RESET)):
        return
    for group in groups:
        problem = (
            "no power" if not _bit(words, _SUPPLY, group)
            else "no power for its kernels" if not _bit(words, _KERNEL_SUPPLY, group)
            else "isolated" if _bit(words, ISOLATION, group)
            else "in reset" if _bit(words, _RESET, group)
            else ""
        )  # fmt: skip
        if problem:
            raise EmulatorError(
                "E834", f"group {group} is started, but it is not usable: {problem}", remedy=_REMEDY
            )


def _bit(words: Mapping[int, int], address: int, bit: int) -> bool:
    return bit in numbers_in(words.get(address, 0))

"""Numbers of the interrupts on the two cores of a chip.

Source: docs/emulator.md, "The core and its peripherals".
"""

from __future__ import annotations

import re
from collections.abc import Iterable

from ai8xtools.emulator.cpu.architecture import CORTEX_M4, RISCV, Architecture
from ai8xtools.emulator.cpu.core import INTERRUPT, Core
from ai8xtools.emulator.project.headers import SDK
from ai8xtools.reading import source_text

TIMER_INTERRUPTS = 127
"""No interrupt of the chip: the run time calls the handlers of all timers that may interrupt."""
WAKE_INTERRUPT = 63
"""With this one, the RISC-V core wakes the Arm core."""
_EXITED = re.compile(r"(^|_)cnn_exited$")
_ACCELERATOR = {CORTEX_M4: 101, RISCV: 57}


def interrupt_name(number: int, core: Architecture) -> str:
    """Return the name of an interrupt of a core as the SDK writes it."""
    _, riscv, arm, *_ = source_text(SDK / "include" / "emulator_core.h").split("typedef enum {")
    names = re.findall(rf"(\w+_IRQn) = {number},", riscv if core is RISCV else arm)
    return names[0] if names else f"interrupt {number}"


def may_go_on(symbols: Iterable[str]) -> bool:
    """Whether a program that defines these names starts the layers behind an early exit."""
    return any(map(_EXITED.search, symbols))


def accelerator_interrupt(core: Architecture) -> int:
    """Return the number under which the accelerator interrupts a core."""
    return _ACCELERATOR[core]


def interrupt_by_accelerator(core: Core, time_limit: float) -> None:
    """Call what the program does when the accelerator interrupts it, if it does anything.

    Raises EmulatorError as Core.call does.
    """
    if core.has(INTERRUPT):
        core.call(INTERRUPT, accelerator_interrupt(core.architecture), time_limit=time_limit)

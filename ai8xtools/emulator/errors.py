"""The exceptions of this room."""

from __future__ import annotations

from ai8xtools.diagnostics.errors import ToolError


class EmulatorError(ToolError):
    """The firmware or the words cannot be compiled, run or executed.

    Codes are E8xx: E80x input files, E81x compiler, E82x core, E83x accelerator; docs/emulator.md
    lists them.
    """


class OtherChipError(EmulatorError):
    """A program is for another chip than the one named (E803)."""


class SlotError(EmulatorError):
    """Other contents do not fit an array of a program (E828)."""


class WrongAddressError(EmulatorError):
    """A write to an address where the accelerator has nothing (E830)."""


class StoppedError(EmulatorError):
    """A program ended where it should not have: it may have had more to do (E82x)."""


class OutOfTimeError(StoppedError):
    """A program did not end within its time (E822)."""


class RecordingError(EmulatorError):
    """A recording does not fit the sensor that it stands for (E872)."""


class NoProgramError(EmulatorError):
    """The sources define no main() (E811)."""

"""The exceptions of this room."""

from __future__ import annotations

from diagnostics.errors import ToolError


class EmulatorError(ToolError):
    """The firmware or the words cannot be compiled, run or executed.

    Codes are E8xx: E80x input files, E81x compiler, E82x core, E83x accelerator; docs/emulator.md
    lists them.
    """


class OutOfTimeError(EmulatorError):
    """A program did not end within its time (E822)."""


class NoProgramError(EmulatorError):
    """The sources define no main() (E811)."""

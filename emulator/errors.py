"""The one exception of this room."""

from __future__ import annotations


class EmulatorError(Exception):
    """The firmware or the words cannot be compiled, run or executed.

    `code` is E8xx, `place` the file or option concerned (None if there is none), `remedy` what to
    do about it. Ranges: E80x input files, E81x compiler, E82x core, E83x accelerator;
    docs/emulator.md lists them.
    """

    def __init__(
        self, code: str, message: str, place: str | None = None, remedy: str | None = None
    ) -> None:
        super().__init__(message)
        self.code = code
        self.message = message
        self.place = place
        self.remedy = remedy

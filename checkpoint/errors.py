"""The exception of this room and of the rooms above it that do not print."""

from __future__ import annotations


class InputError(Exception):
    """An input cannot be used.

    `code` is a key of docs/errors.md, `message` names the value and the limit, `place` is a file
    name or an option, `remedy` says what to do. Scripts print it as a diagnostic.
    """

    def __init__(
        self, code: str, message: str, place: str | None = None, remedy: str | None = None
    ) -> None:
        super().__init__(message)
        self.code = code
        self.message = message
        self.place = place
        self.remedy = remedy


class CheckpointError(InputError):
    """A checkpoint file is missing, damaged, hostile or not of the interchange format."""

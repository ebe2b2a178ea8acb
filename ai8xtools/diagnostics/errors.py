"""The exceptions that end a run with a message instead of a traceback.

This module imports nothing, so that every room may import it.
"""

from __future__ import annotations


class ToolError(Exception):
    """A tool cannot do what it was asked to do; `run` prints the error as one diagnostic.

    `code` is a key of docs/errors.md, `message` names the value and the limit, `place` is a file
    name or an option (None if there is neither), `remedy` says what to do about it. `others` are
    further complaints that were found in the same run.
    """

    others: tuple[ToolError, ...] = ()

    def __init__(
        self, code: str, message: str, place: str | None = None, remedy: str | None = None
    ) -> None:
        super().__init__(message)
        self.code = code
        self.message = message
        self.place = place
        self.remedy = remedy


class InputError(ToolError):
    """A file, an option or a setting cannot be used."""


def reason_of(exc: BaseException) -> str:
    """Return the first line of an exception's message, else its type."""
    return (str(exc).strip().splitlines() or [type(exc).__name__])[0]

"""The exception of this room and of the rooms above it that do not print."""

from __future__ import annotations

import contextlib
from collections.abc import Iterator


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


@contextlib.contextmanager
def reading() -> Iterator[None]:
    """Turn the operating system's refusal to read a checkpoint into CheckpointError E501."""
    try:
        yield
    except OSError as exc:
        raise CheckpointError(
            "E501",
            f"the checkpoint cannot be read: {exc.strerror}",
            remedy="Check the path and the permissions.",
        ) from None

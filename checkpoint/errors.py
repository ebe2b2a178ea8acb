"""What is raised when a checkpoint file cannot be read or written."""

from __future__ import annotations

import contextlib
from collections.abc import Iterator

from diagnostics.errors import InputError


class CheckpointError(InputError):
    """A checkpoint file is missing, damaged, hostile or not of the interchange format."""


class UnreadableFileError(CheckpointError):
    """The operating system does not give a checkpoint file out."""


@contextlib.contextmanager
def reading() -> Iterator[None]:
    """Turn the operating system's refusal to read a checkpoint into UnreadableFileError."""
    try:
        yield
    except OSError as exc:
        raise UnreadableFileError(
            "E501",
            f"the checkpoint cannot be read: {exc.strerror}",
            remedy="Check the path and the permissions.",
        ) from None

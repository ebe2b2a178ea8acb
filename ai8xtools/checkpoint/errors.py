"""What is raised when a checkpoint file cannot be read or written."""

from __future__ import annotations

import contextlib
from collections.abc import Iterator

from ai8xtools.diagnostics.errors import InputError
from ai8xtools.reading import ForeignFileError, where_else


class CheckpointError(InputError):
    """A checkpoint file is missing, damaged, hostile or not of the interchange format."""


class UnreadableFileError(CheckpointError):
    """The operating system cannot read a checkpoint file."""


@contextlib.contextmanager
def reading() -> Iterator[None]:
    """Convert an OSError into UnreadableFileError E501."""
    try:
        yield
    except ForeignFileError as exc:
        raise UnreadableFileError(
            "E501", f"the checkpoint cannot be read: {exc.strerror}", remedy=exc.remedy
        ) from None
    except OSError as exc:
        raise UnreadableFileError(
            "E501",
            f"the checkpoint cannot be read: {exc.strerror}",
            remedy=where_else(exc.filename)
            if isinstance(exc, FileNotFoundError) and exc.filename
            else "Check the path and the permissions.",
        ) from None

"""Files and folders that appear completely or not at all."""

from __future__ import annotations

import contextlib
import os
import tempfile
from collections.abc import Iterator
from pathlib import Path
from typing import BinaryIO


@contextlib.contextmanager
def atomic_file(path: str | os.PathLike[str]) -> Iterator[BinaryIO]:
    """Open a binary file that takes its final name only when the block ends without an exception.

    It is written beside its destination, flushed to the disk and renamed, so that a reader sees the
    old content or the new, never a part. Missing parent folders are created. On any exception,
    Ctrl-C included, the temporary file is removed and the old file stays as it was.
    """
    target = Path(path)
    target.parent.mkdir(parents=True, exist_ok=True)
    try:
        handle, name = tempfile.mkstemp(prefix=f".{target.name}.", dir=target.parent)
    except OSError as exc:
        exc.filename = str(target)  # name the file the user asked for
        raise
    try:
        with os.fdopen(handle, "wb") as file:
            yield file
            file.flush()
            os.fsync(file.fileno())
        os.chmod(name, 0o666 & ~_umask())
        os.replace(name, target)
    except BaseException as exc:
        with contextlib.suppress(OSError):
            os.unlink(name)
        if isinstance(exc, OSError) and exc.filename in (None, name):
            exc.filename = str(target)
        raise


def write_bytes(path: str | os.PathLike[str], data: bytes) -> None:
    """Write a whole file at once, atomically."""
    with atomic_file(path) as file:
        file.write(data)


def _umask() -> int:
    """Return the process's file creation mask (it can only be read by setting it)."""
    mask = os.umask(0)
    os.umask(mask)
    return mask

"""Files and folders that appear completely or not at all."""

from __future__ import annotations

import contextlib
import errno
import os
import stat
import tempfile
from collections.abc import Iterator
from pathlib import Path
from typing import BinaryIO


@contextlib.contextmanager
def atomic_file(path: str | os.PathLike[str]) -> Iterator[BinaryIO]:
    """Open a binary file that takes its final name only when the block ends without an exception.

    It is written beside its destination, flushed to the disk and renamed, so that a reader sees the
    old content or the new, never a part. Missing parent folders are created. A symbolic link stays,
    the file behind it is written. On any exception, Ctrl-C included, the temporary file is removed
    and the old file stays as it was.

    Raises OSError, which names `path`: the path is empty, something else than a regular file (a
    folder, a device, a pipe) has that name, or the disk refuses.
    """
    _refuse_other_than_file(path)
    target = Path(os.path.realpath(path))
    target.parent.mkdir(parents=True, exist_ok=True)
    try:
        handle, name = tempfile.mkstemp(prefix=f".{target.name}.", dir=target.parent)
    except OSError as exc:
        exc.filename = os.fspath(path)  # name the file the user asked for
        raise
    try:
        with os.fdopen(handle, "wb") as file:
            yield file
            file.flush()
            os.fsync(file.fileno())
        os.chmod(name, 0o666 & ~umask())
        os.replace(name, target)
    except BaseException as exc:
        with contextlib.suppress(OSError):
            os.unlink(name)
        if isinstance(exc, OSError) and exc.filename in (None, name):
            exc.filename = os.fspath(path)
        raise


def write_bytes(path: str | os.PathLike[str], data: bytes) -> None:
    """Write a whole file at once, atomically."""
    with atomic_file(path) as file:
        file.write(data)


def umask() -> int:
    """Return the process's file creation mask (it can only be read by setting it)."""
    mask = os.umask(0)
    os.umask(mask)
    return mask


def _refuse_other_than_file(path: str | os.PathLike[str]) -> None:
    """Raise OSError if renaming a file to `path` would destroy a folder, device, pipe or socket."""
    name = os.fspath(path)
    if not name:
        raise OSError(errno.EINVAL, "the name of the file to write is empty", name)
    try:
        mode = Path(path).stat().st_mode
    except FileNotFoundError:
        return
    if stat.S_ISDIR(mode):
        raise IsADirectoryError(errno.EISDIR, os.strerror(errno.EISDIR), name)
    if not stat.S_ISREG(mode):
        raise OSError(errno.EINVAL, "not a regular file; it is not replaced", name)

"""Files and folders that appear completely or not at all."""

from __future__ import annotations

import contextlib
import errno
import fcntl
import glob
import os
import shutil
import stat
import tempfile
import threading
from collections.abc import Iterator
from pathlib import Path
from typing import BinaryIO


@contextlib.contextmanager
def atomic_file(path: str | os.PathLike[str]) -> Iterator[BinaryIO]:
    """Open a binary file that takes its final name only when the block ends without an exception.

    It is written beside its destination, flushed to the disk and renamed, so that a reader sees the
    old content or the new, never a part. Missing parent folders are created. A symbolic link stays,
    the file behind it is written. On any exception, Ctrl-C included, the temporary file is removed
    and the old file stays as it was; what a run that was killed left there, the next one removes.

    Raises OSError, which names `path`: the path is empty, something else than a regular file (a
    folder, a device, a pipe) has that name, or the disk refuses.
    """
    _refuse_other_than_file(path)
    target = Path(os.path.realpath(path))
    target.parent.mkdir(parents=True, exist_ok=True)
    try:
        handle, name = _temporary(target)
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
        sync_folder(target.parent)
    except BaseException as exc:
        with contextlib.suppress(OSError):
            os.unlink(name)
        if isinstance(exc, OSError) and exc.filename in (None, name):
            exc.filename = os.fspath(path)
        raise


def temporary_prefix(name: str) -> str:
    """Return how the temporary files and folders begin that are written for a name."""
    return f".{name[:100]}.writing-"


def remove_litter(folder: Path, name: str | None = None) -> None:
    """Remove what runs that were killed left in a folder while they wrote `name`, or anything.

    Whoever writes holds a lock on what it writes; what nobody holds, nobody will finish.
    """
    prefix = temporary_prefix("*") if name is None else glob.escape(temporary_prefix(name))
    for path in folder.glob(prefix + "????????*"):
        with contextlib.suppress(OSError):
            handle = os.open(path, os.O_RDONLY | os.O_NOFOLLOW | os.O_NONBLOCK)
            try:
                fcntl.flock(handle, fcntl.LOCK_EX | fcntl.LOCK_NB)
                if stat.S_ISDIR(os.fstat(handle).st_mode):
                    shutil.rmtree(path, ignore_errors=True)
                else:
                    os.unlink(path)
            finally:
                os.close(handle)


def sync_folder(folder: str | os.PathLike[str]) -> None:
    """Let the names in a folder reach the disk, where the system can do that."""
    with contextlib.suppress(OSError):
        handle = os.open(folder, os.O_RDONLY)
        try:
            os.fsync(handle)
        finally:
            os.close(handle)


_of_thread = threading.local()
"""The folders that a thread is alone in: a second lock of its own would wait for the first."""


@contextlib.contextmanager
def alone_in(folder: Path) -> Iterator[None]:
    """Keep other runs that write in a folder from beginning or ending meanwhile.

    A thread that is alone in a folder may be so again: what it does meanwhile may write there.
    """
    try:
        handle = os.open(folder, os.O_RDONLY)
    except OSError:  # a folder that may be written, but not read
        yield
        return
    held: set[tuple[int, int]] = vars(_of_thread).setdefault("held", set())
    found = os.fstat(handle)
    place = found.st_dev, found.st_ino
    again = place in held
    try:
        if not again:
            with contextlib.suppress(OSError):  # of a file system without locks
                fcntl.flock(handle, fcntl.LOCK_EX)
            held.add(place)
        yield
    finally:
        if not again:
            held.discard(place)
        os.close(handle)


def _temporary(target: Path) -> tuple[int, str]:
    """Create the temporary file for a target, locked; remove what nobody writes any more."""
    with alone_in(target.parent):
        remove_litter(target.parent, target.name)
        prefix = temporary_prefix(target.name)
        handle, name = tempfile.mkstemp(prefix=prefix, dir=target.parent)
        with contextlib.suppress(OSError):
            fcntl.flock(handle, fcntl.LOCK_SH | fcntl.LOCK_NB)
    return handle, name


def write_bytes(path: str | os.PathLike[str], data: bytes) -> None:
    """Write a whole file at once, atomically."""
    with atomic_file(path) as file:
        file.write(data)


def write_pair(
    first: str | os.PathLike[str], one: bytes, second: str | os.PathLike[str], other: bytes
) -> None:
    """Write two files that belong together: both are new afterwards, or both as they were.

    A run that is killed between the renames leaves the first new and the second missing, never a
    file beside one that it does not match. Raises what `atomic_file` does.
    """
    paths = [Path(os.path.realpath(path)) for path in (first, second)]
    for path in (first, second):
        _refuse_other_than_file(path)
    temporary: list[str] = []
    try:
        for path, data in zip(paths, (one, other), strict=True):
            path.parent.mkdir(parents=True, exist_ok=True)
            handle, name = _temporary(path)
            temporary.append(name)
            with os.fdopen(handle, "wb") as file:
                file.write(data)
                file.flush()
                os.fsync(file.fileno())
            os.chmod(name, 0o666 & ~umask())
        _replace_both(temporary, paths)
        for path in paths:
            sync_folder(path.parent)
    except OSError as exc:
        exc.filename = os.fspath(first)
        raise
    finally:
        for name in temporary:
            with contextlib.suppress(OSError):
                os.unlink(name)


def _replace_both(names: list[str], paths: list[Path]) -> None:
    """Rename two files; if that fails, what was there before is there again."""
    kept = [f"{name}.old" for name in names]
    for path, old in zip(paths, kept, strict=True):
        with contextlib.suppress(OSError):  # there is none, or the disk has no links
            os.link(path, old)
    try:
        with contextlib.suppress(FileNotFoundError):
            os.unlink(paths[1])
        for name, path in zip(names, paths, strict=True):
            os.replace(name, path)
    except BaseException:
        for path, old in zip(paths, kept, strict=True):
            with contextlib.suppress(OSError):
                if Path(old).exists():
                    os.replace(old, path)
                else:
                    os.unlink(path)
        raise
    finally:
        for old in kept:
            with contextlib.suppress(OSError):
                os.unlink(old)


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

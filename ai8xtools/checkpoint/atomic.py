"""Files and folders that appear completely or not at all."""

from __future__ import annotations

import contextlib
import errno
import glob
import os
import shutil
import stat
import tempfile
import threading
from collections.abc import Iterator
from pathlib import Path
from typing import BinaryIO

from ai8xtools.reading import system

_WRITING = ".writing-"
_MOST_LINKS = 40  # as Linux follows


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
    refuse_other_than_file(path)
    target = target_of(path)
    try:
        make_folders(target.parent)
    except OSError as exc:
        exc.filename = exc.filename or os.fspath(path)
        raise
    try:
        handle, name = _temporary(target)
    except OSError as exc:
        exc.filename = os.fspath(path)  # name the file the user asked for
        raise
    try:
        with os.fdopen(handle, "wb") as file:
            yield file
            file.flush()
            os.chmod(name, 0o666 & ~umask())
            os.fsync(file.fileno())
            if not system.UNIX:
                file.close()  # Windows does not rename open files
            os.replace(name, target)
        sync(target.parent)
    except BaseException as exc:
        with contextlib.suppress(OSError):
            os.unlink(name)
        if isinstance(exc, OSError) and exc.filename in (None, name):
            exc.filename = os.fspath(path)
        raise


def temporary_prefix(name: str) -> str:
    """Return the prefix of the temporary files and folders that are written for a name."""
    return f".{name[:100]}{_WRITING}"


def remove_litter(folder: Path, name: str | None = None, staging: str | None = None) -> None:
    """Remove what runs that were killed left in a folder while they wrote `name`, or anything.

    With `staging` only what has this name. Whoever writes holds a lock on what it writes; what
    nobody holds, nobody will finish.
    """
    prefix = temporary_prefix("*") if name is None else glob.escape(temporary_prefix(name))
    pattern = prefix + "????????*" if staging is None else glob.escape(staging)
    for path in folder.glob(pattern):
        with contextlib.suppress(OSError), system.unheld(path) as is_folder:
            if is_folder:
                settle(path)
                shutil.rmtree(path, ignore_errors=True)
            else:
                os.unlink(path)


OLD, NEW, NOW = "old", "new", "now"
"""Folders with two versions of files that belong together, and the link to the one that holds."""


def settle(staging: Path) -> None:
    """Let the files of a pair take their places for good: the old or the new, as `now` says.

    While a pair changes places, both names are links that lead past `now`; a run that was killed
    then left them so. Raises OSError.
    """
    names = {path.name for part in (OLD, NEW) for path in (staging / part).glob("*")}
    for path in (staging.parent / name for name in names):
        if path.is_symlink() and os.fspath(path.readlink()) == link_past(staging, path.name):
            source = staging / NOW / path.name
            if source.exists():
                os.replace(source, path)
            else:
                os.unlink(path)


def link_past(staging: Path, name: str) -> str:
    """Return where a name of a pair leads while the pair changes places."""
    return f"{staging.name}/{NOW}/{name}"


def target_of(path: str | os.PathLike[str]) -> Path:
    """Return the file behind a path and its links; pairs that a killed run left become files."""
    place = Path(path)
    for _ in range(_MOST_LINKS):
        if not place.is_symlink():
            break
        target = place.readlink()
        staging = place.parent / target.parent.parent
        if os.fspath(target) == link_past(staging, place.name) and _WRITING in staging.name:
            with alone_in(staging.parent):
                remove_litter(staging.parent, staging=staging.name)
            break
        place = place.parent / target
    return Path(os.path.realpath(path))


_LOST = (errno.EIO, errno.ENOSPC, errno.EDQUOT)


def sync(path: str | os.PathLike[str]) -> None:
    """Let a file, or the names in a folder, reach the disk, where the system can do that.

    Raises OSError if the disk tried and failed: then nobody may say that it is written.
    """
    try:
        handle = os.open(path, os.O_RDONLY)
    except OSError:  # of a folder that may be written, but not read; some systems open none
        return
    try:
        os.fsync(handle)
    except OSError as exc:
        if exc.errno in _LOST:
            raise
    finally:
        os.close(handle)


def make_folders(folder: Path, created: list[Path] | None = None) -> None:
    """Create a folder and those above it that are missing, for good: each name is on the disk.

    What was made is added to `created`, the outermost first, even if the rest fails; that raises
    OSError.
    """
    missing = [part for part in (folder, *folder.parents) if not part.is_dir()]
    for part in reversed(missing):
        part.mkdir(exist_ok=True)  # another run may be quicker
        if created is not None:
            created.append(part)
        sync(part.parent)


_of_thread = threading.local()
"""The folders that a thread is alone in: a second lock of its own would wait for the first."""


@contextlib.contextmanager
def alone_in(folder: Path) -> Iterator[None]:
    """Hold the exclusive lock of a folder, so that no other run begins or ends writing there.

    A thread that holds it may take it again.
    """
    try:
        handle = os.open(folder, os.O_RDONLY)
    except OSError:  # a folder that may be written, but not read; Windows opens none
        yield
        return
    held: set[tuple[int, int]] = vars(_of_thread).setdefault("held", set())
    status = os.fstat(handle)
    place = status.st_dev, status.st_ino
    again = place in held
    try:
        if not again:
            with contextlib.suppress(OSError):  # of a file system without locks
                system.lock(handle, alone=True, wait=True)
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
            system.lock(handle)
    return handle, name


def write_bytes(path: str | os.PathLike[str], data: bytes) -> None:
    """Write a whole file at once, atomically."""
    with atomic_file(path) as file:
        file.write(data)


def umask() -> int:
    """Return the process's file creation mask (it can only be read by setting it)."""
    mask = os.umask(0)
    os.umask(mask)
    return mask


def refuse_other_than_file(path: str | os.PathLike[str]) -> None:
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

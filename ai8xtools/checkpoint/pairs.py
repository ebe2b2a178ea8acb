"""Two files that belong together: at every moment both are old or both are new.

A file system renames one file at a time. So both names first become links to the old files, past
one link `now`; that link turns from the old to the new in one step; then the new files take the
places of the links. Whoever is killed meanwhile leaves names that lead to what belongs together,
and the next run that writes there makes files of them.
"""

from __future__ import annotations

import contextlib
import errno
import os
import shutil
import tempfile
from collections.abc import Iterator
from pathlib import Path

from ai8xtools.checkpoint.atomic import (
    NEW,
    NOW,
    OLD,
    alone_in,
    atomic_file,
    link_past,
    make_folders,
    refuse_other_than_file,
    remove_litter,
    settle,
    sync,
    target_of,
    temporary_prefix,
    umask,
    write_bytes,
)
from ai8xtools.reading import system

_WITHOUT_LINKS = (errno.EPERM, errno.EOPNOTSUPP, errno.ENOSYS)


def write_pair(
    first: str | os.PathLike[str], one: bytes, second: str | os.PathLike[str], other: bytes
) -> None:
    """Write two files that belong together: both are new afterwards, or both as they were.

    That holds at every moment, also for a run that is killed. In two folders, or where the file
    system has no links, the second file is missing meanwhile. Raises what `atomic_file` does.
    """
    for path in (first, second):
        refuse_other_than_file(path)
    paths = [target_of(path) for path in (first, second)]
    contents = dict(zip(paths, (one, other), strict=True))
    try:
        for path in paths:
            make_folders(path.parent)
        beside = system.UNIX and paths[0].parent == paths[1].parent
        if not beside or not _change(contents):
            _one_after_the_other(contents)
    except OSError as exc:
        exc.filename = os.fspath(first)
        raise


def _change(contents: dict[Path, bytes]) -> bool:
    """Write both at once; False if the file system cannot do that."""
    paths = list(contents)
    with _staging(paths[0]) as staging:
        for part in (OLD, NEW):
            (staging / part).mkdir()
        for path, data in contents.items():
            _write(staging / NEW / path.name, data)
        sync(staging / NEW)
        with alone_in(staging.parent):
            try:
                _lead_to_old(staging, paths)
            except OSError as exc:
                if exc.errno in _WITHOUT_LINKS:
                    return False
                raise
            os.symlink(NEW, staging / "next")  # noqa: PTH211 - tests let it fail
            os.replace(staging / "next", staging / NOW)
            sync(staging)
            settle(staging)
            sync(staging.parent)
    return True


def _lead_to_old(staging: Path, paths: list[Path]) -> None:
    """Let both names be links that lead to what they hold already, past `now`."""
    os.symlink(OLD, staging / NOW)  # noqa: PTH211 - see above
    for path in paths:
        if path.exists():
            _link(path, staging / OLD / path.name)
    sync(staging / OLD)
    for number, path in enumerate(paths):
        os.symlink(link_past(staging, path.name), staging / str(number))  # noqa: PTH211
    sync(staging)
    sync(staging.parent)  # or the names could lead to a folder that is not there
    for number, path in enumerate(paths):
        os.replace(staging / str(number), path)
    sync(staging.parent)


def _link(source: Path, target: Path) -> None:
    try:
        os.link(source, target)
    except PermissionError:  # of a file of somebody else's
        shutil.copy2(source, target)
        sync(target)


def _write(path: Path, data: bytes) -> None:
    handle = os.open(path, system.CREATE, 0o600)
    with os.fdopen(handle, "wb") as file:
        file.write(data)
        file.flush()
        os.chmod(path, 0o666 & ~umask())
        os.fsync(file.fileno())


@contextlib.contextmanager
def _staging(first: Path) -> Iterator[Path]:
    """Create a locked folder beside a file; in the end settle what it holds and remove it."""
    with alone_in(first.parent):
        remove_litter(first.parent, first.name)
        prefix = temporary_prefix(first.name)
        staging = Path(tempfile.mkdtemp(prefix=prefix, dir=first.parent))
        release = system.hold(staging)
    try:
        staging.chmod(0o777 & ~umask())
        yield staging
    finally:
        try:
            with alone_in(staging.parent):
                settle(staging)
                shutil.rmtree(staging, ignore_errors=True)
        finally:
            release()


def _one_after_the_other(contents: dict[Path, bytes]) -> None:
    """Write the first while there is no second, so that no file lies beside one of another run."""
    (first, one), (second, other) = contents.items()
    before = {path: path.read_bytes() for path in contents if path.exists()}
    try:
        with atomic_file(second) as file:
            file.write(other)
            with atomic_file(first) as beside:
                beside.write(one)
                second.unlink(missing_ok=True)
                sync(second.parent)
    except BaseException:
        for path in contents:
            with contextlib.suppress(OSError):
                if path in before:
                    write_bytes(path, before[path])
                else:
                    path.unlink(missing_ok=True)
        raise

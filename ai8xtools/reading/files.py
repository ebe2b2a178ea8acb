"""Opening and reading files of the user's, with limits."""

from __future__ import annotations

import contextlib
import errno
import os
import stat
from itertools import islice
from pathlib import Path
from typing import BinaryIO

from ai8xtools.reading import system
from ai8xtools.reading.text import line
from ai8xtools.root import IS_INSTALLED, ROOT

MIB = 1 << 20
_SHIPPED = ("networks", "policies", "tests", "trained")
MAX_SOURCE_BYTES = 64 * MIB
"""Of a source or makefile; samples as C arrays have some megabytes."""
_COMPILED = (".c", ".h", ".inc", ".s", ".S")
_STEP = 1 << 16
_MANY = 10_000
"""At most so many files of a folder are considered when suggesting the one that was meant."""
_KINDS = {
    stat.S_IFIFO: "a pipe",
    stat.S_IFCHR: "a device",
    stat.S_IFBLK: "a device",
    stat.S_IFSOCK: "a socket",
}


class ForeignFileError(OSError):
    """A path does not lead to a regular file within the size limit.

    An OSError, so that whoever reports those reports this; `strerror` is the reason, `remedy` says
    what to do about it. `size` is that of a file beyond the limit, else None.
    """

    def __init__(self, reason: str, path: str, remedy: str, size: int | None = None) -> None:
        super().__init__(errno.EINVAL, reason, path)
        self.remedy = remedy
        self.size = size


def shipped(path: str | os.PathLike[str]) -> str | os.PathLike[str]:
    """Return a path, or where an installed package has that file if the current folder has none.

    So `networks/mnist-chw-ai85.yaml` and the like can be named from anywhere. In a checkout a file
    that is missing is missing.
    """
    first, *others = Path(path).parts or ("",)
    if IS_INSTALLED and first in _SHIPPED and ".." not in others and not os.path.lexists(path):
        own = ROOT / path
        return own if own.is_file() else path
    return path


def open_file(path: str | os.PathLike[str], limit: int) -> BinaryIO:
    """Open a regular file of at most `limit` bytes for reading, without ever waiting for it.

    A file that is not there may be one of an installed package: see `shipped`.

    Raises ForeignFileError for a pipe, device or socket and for a larger file; OSError otherwise.
    """
    name = os.fspath(shipped(path))
    try:
        _check(os.stat(name), name, limit)  # noqa: PTH116 - opening a device can have effects
        handle = os.open(name, system.READ)
    except ValueError:  # a zero byte in the name
        raise FileNotFoundError(errno.ENOENT, os.strerror(errno.ENOENT), name) from None
    try:
        _check(os.fstat(handle), name, limit)
        return os.fdopen(handle, "rb")
    except BaseException:
        os.close(handle)
        raise


def read_bytes(path: str | os.PathLike[str], limit: int) -> bytes:
    """Return the content of a regular file of at most `limit` bytes; raises as `open_file`."""
    with open_file(path, limit) as file:
        data = file.read(os.fstat(file.fileno()).st_size)
        more = file.read(_STEP)  # it may have grown, and some files of the system state no size
        while more:
            data += more
            if len(data) > limit:
                raise _too_large(len(data), os.fspath(path), limit)
            more = file.read(_STEP)
    return data


def read_text(
    path: str | os.PathLike[str], limit: int, encoding: str = "utf-8", errors: str = "strict"
) -> str:
    """Return the text of a file with lines that end in a newline, without a mark of byte order.

    Raises what `open_file` does, and UnicodeDecodeError.
    """
    text = read_bytes(path, limit).decode(encoding, errors)
    return text.removeprefix("\ufeff").replace("\r\n", "\n").replace("\r", "\n")


def source_text(path: str | os.PathLike[str], errors: str = "replace") -> str:
    """Return the text of a source or makefile, whatever its encoding; raises as `open_file`."""
    return read_text(path, MAX_SOURCE_BYTES, errors=errors)


def check_sources(folder: Path) -> None:
    """Refuse a folder in which something that is not a file has the name of a source or header.

    A compiler would wait for a pipe, or read a device for ever. Raises what `open_file` does; a
    link that leads nowhere is left to the compiler.
    """
    for path in sorted(folder.iterdir()):
        if path.suffix in _COMPILED:
            with contextlib.suppress(FileNotFoundError):
                _check(path.stat(), str(path), MAX_SOURCE_BYTES)


def real_path(path: str | os.PathLike[str]) -> Path:
    """Return where a path leads past all links; a loop of links, for which Path.resolve() raises
    RuntimeError, leads nowhere else and ends in an OSError once it is opened.
    """
    return Path(os.path.realpath(path))


def where_else(path: str | os.PathLike[str]) -> str:
    """Say which file is probably meant by a path that leads to none: a remedy for messages."""
    from difflib import get_close_matches  # only for messages

    folder, name = os.path.split(os.fspath(path))
    try:
        with os.scandir(folder or ".") as entries:
            names = [entry.name for entry in islice(entries, _MANY)]
    except (OSError, ValueError):
        return (
            f"Check the path: there is no folder {line(folder)}." if folder else "Check the path."
        )
    near = get_close_matches(name, names, 1)
    if not near:
        return "Check the path."
    return f"Check the path: did you mean {line(str(Path(folder, near[0])))}?"


def _check(status: os.stat_result, name: str, limit: int) -> None:
    if stat.S_ISDIR(status.st_mode):
        raise IsADirectoryError(errno.EISDIR, os.strerror(errno.EISDIR), name)
    if not stat.S_ISREG(status.st_mode):
        kind = _KINDS.get(stat.S_IFMT(status.st_mode), "something else")
        raise ForeignFileError(f"it is {kind}, not a regular file", name, "Name a file on a disk.")
    if status.st_size > limit:
        raise _too_large(status.st_size, name, limit)


def _too_large(size: int, name: str, limit: int) -> ForeignFileError:
    return ForeignFileError(
        f"it has {size} bytes, the limit is {limit}",
        name,
        "Check that it is the right file.",
        size,
    )

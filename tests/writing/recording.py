"""Noting every step that a piece of work takes on a disk."""

from __future__ import annotations

import contextlib
import fcntl
import os
import stat
import traceback
from collections.abc import Iterator
from pathlib import Path
from typing import Any

from tests.conftest import ROOT
from tests.writing.calls import CHANGES, EXCHANGE, OPEN, OTHERS, led_past
from tests.writing.disk import (
    FILE,
    FOLDER,
    LINK,
    Disk,
    Filled,
    Held,
    Key,
    Named,
    Reported,
    Synced,
)  # fmt: skip


class Recording:
    """Fills a `Disk` with what happens below a folder."""

    def __init__(self, top: Path) -> None:
        self.disk = Disk()
        self._numbers: dict[tuple[int, int], int] = {}
        self._readers: dict[int, tuple[int, tuple[int, int] | None]] = {}
        self._held: dict[int, Held] = {}
        self._add(top.stat())
        for folder, folders, files in os.walk(top):
            for path in (Path(folder, name) for name in (*folders, *files)):
                key, number = self._key(path), self._number(path)
                assert key is not None
                if number is None:  # no further link to a file
                    content = b""
                    if path.is_symlink():
                        content = os.fsencode(path.readlink())
                    elif path.is_file():
                        content = path.read_bytes()
                    number = self._add(path.lstat(), content)
                self.disk.start[key] = number

    def report(self) -> None:
        """Note that the user has been told that all until now is written."""
        self._look()
        self.disk.steps.append(Reported())

    @contextlib.contextmanager
    def running(self) -> Iterator[None]:
        """Record while the block runs."""
        try:
            with led_past(self._around, *CHANGES, *OTHERS, EXCHANGE, OPEN):
                yield
            self._look()
        finally:
            for reader, _ in self._readers.values():
                os.close(reader)
            self._readers.clear()

    def _add(self, found: os.stat_result, content: bytes = b"") -> int:
        """Number something that exists; `content`: what a file holds, or where a link leads."""
        number = len(self.disk.kinds)
        self._numbers[found.st_dev, found.st_ino] = number
        is_folder, is_link = stat.S_ISDIR(found.st_mode), stat.S_ISLNK(found.st_mode)
        self.disk.kinds[number] = FOLDER if is_folder else LINK if is_link else FILE
        self.disk.made[number] = self._held[number] = content, stat.S_IMODE(found.st_mode)
        return number

    def _number(self, what: Any, *, folder: int | None = None) -> int | None:
        """Return the number of what a path or a handle stands for, not of where a link leads."""
        try:
            found = os.fstat(what) if isinstance(what, int) else os.lstat(what, dir_fd=folder)
        except OSError:
            return None
        return self._numbers.get((found.st_dev, found.st_ino))

    def _key(self, path: Any, folder: int | None = None) -> Key | None:
        """Return the name that a path is; None if it is not below the folder."""
        above, name = os.path.split(os.fspath(path))
        if folder is not None and not above:
            number = self._number(folder)
        else:
            number = self._number(os.path.realpath(above))
        return None if number is None else (number, name)

    def _look(self) -> None:
        """Note what was written to files since the last look."""
        for number, (reader, before) in self._readers.items():
            found = os.fstat(reader)
            size_and_time = found.st_size, found.st_mtime_ns
            if size_and_time != before:
                self._readers[number] = reader, size_and_time
                self._fill(number, os.pread(reader, found.st_size, 0), self._held[number][1])

    def _fill(self, number: int, content: bytes, mode: int) -> None:
        if self._held[number] != (content, mode):
            self._held[number] = content, mode
            self.disk.steps.append(Filled(number, (content, mode)))

    def _around(self, name: str, call: Any, *given: Any, **named: Any) -> Any:
        self._look()
        if name in ("open", "io.open"):
            return self._open(name, call, *given, **named)
        inside = named.get("dir_fd")
        keys = [] if name in ("fsync", "chmod") else [
            self._key(path, inside)
            for path in (given[1:] if name == "symlink" else given) if not isinstance(path, int)
        ]  # fmt: skip
        numbers = [self._number(path, folder=inside) for path in given if name != "symlink"]
        result = call(*given, **named)
        match name:
            case "fsync":
                if numbers[0] is not None:
                    self.disk.steps.append(Synced(numbers[0], _caller()))
            case "chmod":
                if numbers[0] is not None:
                    self._fill(numbers[0], self._held[numbers[0]][0], given[1])
            case "mkdir" | "symlink":
                if keys[0] is not None:
                    content = os.fsencode(given[0]) if name == "symlink" else b""
                    path = given[1] if name == "symlink" else given[0]
                    self._name((keys[0], self._add(os.lstat(path, dir_fd=inside), content)))
            case "link":
                self._name((keys[1], numbers[0]))
            case "unlink" | "remove" | "rmdir":
                self._name((keys[0], None))
            case "replace" | "rename":
                self._name((keys[0], None), (keys[1], numbers[0]))
            case "exchange":
                self._name((keys[0], numbers[1]), (keys[1], numbers[0]))
            case _:
                raise AssertionError(name)
        return result

    def _name(self, *names: tuple[Key | None, int | None]) -> None:
        inside = tuple((key, number) for key, number in names if key is not None)
        if inside:
            self.disk.steps.append(Named(inside))

    def _open(self, name: str, call: Any, path: Any, *given: Any, **named: Any) -> Any:
        inside = named.get("dir_fd")
        is_new = not isinstance(path, int) and self._number(path, folder=inside) is None
        result = call(path, *given, **named)
        if isinstance(path, int):
            return result
        handle = result if name == "open" else result.fileno()
        key, number = self._key(path, inside), self._number(handle)
        if is_new and key is not None:  # whatever had its number before is gone
            number = self._add(os.fstat(handle))
            self._name((key, number))
        if number is not None and number not in self._readers and _may_write(handle):
            self._readers[number] = _open(path, os.O_RDONLY, dir_fd=inside), None
        return result


_open = os.open


def _caller() -> str:
    """Return the line of our source that syncs: file and number."""
    for found in reversed(traceback.extract_stack()):
        path = Path(found.filename)
        ours = path.is_relative_to(ROOT) and not path.is_relative_to(ROOT / "tests")
        if ours and found.name != "sync":
            return f"{path.relative_to(ROOT)}:{found.lineno}"
    return "?"


def _may_write(handle: int) -> bool:
    return fcntl.fcntl(handle, fcntl.F_GETFL) & os.O_ACCMODE != os.O_RDONLY

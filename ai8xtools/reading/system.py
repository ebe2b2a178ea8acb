"""What differs between Linux, macOS and Windows, so that no other module has to know it.

What only some systems have (locks, limits, hang-up signals, folders that can be opened) is looked
for, not concluded from the name of the system. No result depends on it: without locks two runs that
write to one place are not kept apart, without limits a compiler may take all memory.
"""

from __future__ import annotations

import contextlib
import importlib
import os
import re
import select
import stat
import sys
from collections.abc import Callable, Iterable, Iterator
from pathlib import Path, PurePosixPath, PureWindowsPath
from typing import Any


def _module(name: str) -> Any:
    """Return a module that only some systems have, else None."""
    try:
        return importlib.import_module(name)
    except ImportError:
        return None


_fcntl = _module("fcntl")
UNIX = _fcntl is not None
"""Files may be renamed and removed while they are open, and links replaced in one step."""
_COMMON = getattr(os, "O_CLOEXEC", 0) | getattr(os, "O_BINARY", 0)
READ = os.O_RDONLY | getattr(os, "O_NONBLOCK", 0) | _COMMON
"""Flags for opening files of users: without waiting for a pipe."""
CREATE = os.O_WRONLY | os.O_CREAT | os.O_EXCL | _COMMON
"""Flags for creating files that must not exist yet."""
_LONGEST, _AGAIN_SECONDS = 1e8, 5.0
_ITSELF = READ | getattr(os, "O_NOFOLLOW", 0)


def lock(handle: int, *, alone: bool = False, wait: bool = False) -> None:
    """Hold an open file or folder until it is closed; others may hold it too, unless `alone`.

    Raises BlockingIOError if another process holds it and nobody is to `wait`, and OSError where
    the file system has no locks. Windows only locks files that somebody wants alone.
    """
    if _fcntl is not None:
        kind = _fcntl.LOCK_EX if alone else _fcntl.LOCK_SH
        _fcntl.flock(handle, kind if wait else kind | _fcntl.LOCK_NB)
    elif alone and (windows := _module("msvcrt")) is not None:
        try:
            windows.locking(handle, windows.LK_LOCK if wait else windows.LK_NBLCK, 1)
        except PermissionError as exc:
            raise BlockingIOError(exc.errno, exc.strerror) from None


def hold(folder: Path) -> Callable[[], None]:
    """Lock a folder of this process, so that no other run removes it; return a function that
    unlocks it.

    Raises OSError if the folder cannot be opened. Windows cannot open folders: see `unheld`.
    """
    if not UNIX:
        return lambda: None
    handle = os.open(folder, os.O_RDONLY)
    with contextlib.suppress(OSError):  # of a file system without locks
        lock(handle)
    return lambda: os.close(handle)


@contextlib.contextmanager
def unheld(path: Path) -> Iterator[bool]:
    """Run the block while no other process locks a file or folder; yield whether it is a folder.

    Raises OSError if one does or `path` is a link. Windows itself refuses to remove a file that is
    open, and nobody can tell whether a folder is in use: it raises OSError for each.
    """
    if not UNIX:
        if path.is_symlink() or path.is_dir():
            raise PermissionError(f"nobody knows whether {path} is in use")
        yield False
        return
    handle = os.open(path, _ITSELF)
    try:
        lock(handle, alone=True)
        yield stat.S_ISDIR(os.fstat(handle).st_mode)
    finally:
        os.close(handle)


SHELL = next(filter(os.path.exists, ("/bin/sh",)), None)
"""A shell that knows `ulimit` and `trap`; None where there is none."""


def grouped(leader: int = 0) -> dict[str, Any]:
    """Return arguments for subprocess that put a program into a process group.

    It is that of the process `leader`, or a new one. No arguments where there are no groups.
    """
    return {"process_group": leader} if hasattr(os, "setpgid") else {}


def end_group(leader: int) -> None:
    """Ask all programs of a process group to end, including stopped ones."""
    import signal  # takes time to load

    with contextlib.suppress(OSError):  # they have ended
        os.killpg(leader, signal.SIGTERM)
        os.killpg(leader, signal.SIGCONT)


@contextlib.contextmanager
def alarm(seconds: float, end: Callable[[], None]) -> Iterator[None]:
    """Call `end`, which raises, when the block takes longer, and again if that has no effect.

    Nothing happens where the system has no timers, outside the main thread, or if the timer is in
    use.
    """
    import signal  # takes time to load
    import threading

    able = hasattr(signal, "setitimer") and threading.current_thread() is threading.main_thread()
    if not able or signal.getsignal(signal.SIGALRM) is not signal.SIG_DFL:
        yield
        return
    signal.signal(signal.SIGALRM, lambda *_: end())
    signal.setitimer(signal.ITIMER_REAL, min(seconds, _LONGEST), _AGAIN_SECONDS)
    try:
        yield
    finally:
        signal.setitimer(signal.ITIMER_REAL, 0)
        signal.signal(signal.SIGALRM, signal.SIG_DFL)


def reserve(handle: int, count: int) -> None:
    """Reserve `count` bytes of disk space for an open file, if the system supports it. Raises
    OSError.
    """
    if hasattr(os, "posix_fallocate"):
        os.posix_fallocate(handle, 0, count)


def start_of_workers() -> str:
    """Return how processes that load data are started: as copies of this one where that is safe."""
    return "fork" if hasattr(os, "fork") and sys.platform == "linux" else "spawn"


def in_order(paths: Iterable[Path]) -> list[Path]:
    """Return paths by their names, the same everywhere: Windows would take `B` and `b` for one."""
    return sorted(paths, key=lambda path: path.parts)


def relative(path: Path, start: Path) -> str:
    """Return where a path leads from a folder; the path itself where no way leads there.

    So it is between two drives of Windows.
    """
    try:
        return os.path.relpath(path, start)
    except ValueError:
        return str(path)


def stays_below(name: str) -> bool:
    """Whether a relative path from a file stays inside the file's folder, on every system."""
    return "\0" not in name and not any(
        path.drive or path.root or ".." in path.parts
        for path in (PurePosixPath(name), PureWindowsPath(name))
    )


_RESERVED = re.compile(r"(con|prn|aux|nul|com[1-9]|lpt[1-9])( *\.| *$)", re.IGNORECASE)


def is_reserved(name: str) -> bool:
    """Whether Windows takes the name of a file for a device, whatever ending it has."""
    return bool(_RESERVED.match(name))


def ending_signals() -> tuple[int, ...]:
    """Return the signals besides Ctrl-C that ask a program to end, if the system has them."""
    import signal  # takes time to load

    names = ("SIGTERM", "SIGHUP", "SIGBREAK")
    return tuple(getattr(signal, name) for name in names if hasattr(signal, name))


@contextlib.contextmanager
def asked_to_end() -> Iterator[Callable[[], bool]]:
    """Yield a function that tells whether signals have come since it was last called that ask this
    process to end, handled or not.

    Python handles them between its own instructions only, another thread can ask meanwhile. Never
    true outside the main thread, which alone has signals.
    """
    import signal  # takes time to load
    import socket
    import threading

    if threading.current_thread() is not threading.main_thread():
        yield lambda: False
        return
    ours, theirs = socket.socketpair()
    with ours, theirs:
        ours.setblocking(False)
        theirs.setblocking(False)
        numbers = {signal.SIGINT, *ending_signals()}

        def asked() -> bool:
            with contextlib.suppress(BlockingIOError):
                return not numbers.isdisjoint(ours.recv(_SIGNALS))
            return False

        before = signal.set_wakeup_fd(theirs.fileno(), warn_on_full_buffer=False)
        try:
            yield asked
        finally:
            signal.set_wakeup_fd(before)


_SIGNALS = 4096
"""Bytes, of which each is a signal."""


class Terminal:
    """A pseudo-terminal: a serial port of this computer, `name`, with this process behind it."""

    def __init__(self, ours: int, others: int) -> None:
        self.name = os.ttyname(others)
        self._ours, self._others = ours, others  # held open, since without it ours has an end

    @classmethod
    def opened(cls) -> Terminal | None:
        """Return a new one; None where the system has none."""
        tty = _module("tty")
        if tty is None:
            return None
        ours, others = os.openpty()
        tty.setraw(others)
        return cls(ours, others)

    def __enter__(self) -> Terminal:
        return self

    def __exit__(self, *_raised: object) -> None:
        os.close(self._ours)
        os.close(self._others)

    def read(self, seconds: float) -> bytes:
        """Return what has come; wait for the first byte, but no longer than so long."""
        ready, _, _ = select.select([self._ours], [], [], seconds)
        return os.read(self._ours, 4096) if ready else b""

    def write(self, data: bytes) -> None:
        """Send bytes; those that nobody takes are lost."""
        while data:
            _, ready, _ = select.select([], [self._ours], [], 0)
            if not ready:
                return
            data = data[os.write(self._ours, data[:256]) :]

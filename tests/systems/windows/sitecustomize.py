"""Python as on Windows, on whatever system this is: with this folder first in PYTHONPATH.

Modules and names that Windows lacks are taken away; what its files cannot do is refused: links
without a privilege, opening folders, removing, renaming or replacing what this process has open,
names that it reserves, devices. Worker processes are spawned. Separators of paths stay as they are.
"""

from __future__ import annotations

import multiprocessing
import os
import signal
import sys
from pathlib import PurePath
from types import ModuleType
from typing import Any

_HERE = os.path.dirname(os.path.abspath(__file__))
_ROOT = os.path.dirname(os.path.dirname(os.path.dirname(_HERE)))

MODULES = "fcntl resource pwd grp termios tty pty readline syslog curses"
LACKING = {
    "os": """
        O_CLOEXEC O_DIRECTORY O_NOFOLLOW O_NONBLOCK O_SYNC chown fchmod fchown fdatasync fork
        forkpty fwalk getegid geteuid getgid getloadavg getpgid getpgrp getuid killpg lchown lockf
        mkfifo mknod nice pathconf posix_fallocate posix_spawn pread pwrite sched_getaffinity
        sendfile setpgid setsid statvfs sync sysconf uname wait wait3 wait4
    """.split(),
    "signal": """
        SIGALRM SIGBUS SIGCHLD SIGCONT SIGHUP SIGIO SIGKILL SIGPIPE SIGQUIT SIGSTOP SIGTSTP SIGUSR1
        SIGUSR2 SIGWINCH SIGXCPU SIGXFSZ alarm setitimer pthread_kill pthread_sigmask
    """.split(),
}
_PORTS = {f"{port}{number}" for port in ("com", "lpt") for number in range(1, 10)}
RESERVED = {"con", "prn", "aux", "nul"} | _PORTS


def _asked_by_the_product(depth: int) -> bool:
    """Whether a file of the repository asks; libraries know on which system they really are."""
    name = sys._getframe(depth + 1).f_code.co_filename
    return name.startswith(_ROOT) and "site-packages" not in name


class _Module(ModuleType):
    def __getattribute__(self, name: str) -> Any:
        module = ModuleType.__getattribute__(self, "__name__")
        if name in LACKING[module] and _asked_by_the_product(1):
            raise AttributeError(f"module {module!r} has no attribute {name!r}")
        return ModuleType.__getattribute__(self, name)


def _open_here() -> set[str]:
    """Return the files that this process has open or mapped."""
    handles = "/proc/self/fd"
    found = set()
    for handle in os.listdir(handles):
        try:
            found.add(os.readlink(f"{handles}/{handle}"))
        except OSError:  # the handle of the listing itself
            continue
    with open("/proc/self/maps", encoding="utf-8", errors="surrogateescape") as maps:
        found.update(line.split(None, 5)[5].rstrip("\n") for line in maps if "/" in line)
    return found


def _refuse_open(path: Any) -> None:
    folder, name = os.path.split(os.fsdecode(path))
    place = os.path.join(os.path.realpath(folder), name)
    if any(name == place or name.startswith(place + "/") for name in _open_here()):
        raise PermissionError(13, "[WinError 32] another process uses the file", path)


def _refuse_name(path: Any) -> None:
    for part in filter(None, os.fsdecode(path).split("/")):
        stem = part.split(".")[0].rstrip(" ").lower()
        ends = part.strip(".") and part[-1] in " ."
        if stem in RESERVED or ends or set(part) & set('<>:"|?*\\'):
            raise OSError(22, "[WinError 123] the name is not valid", path)


def _audit(event: str, arguments: tuple[Any, ...]) -> None:
    match event:
        case "open":
            path, mode, flags = arguments
            if isinstance(path, str | bytes | os.PathLike) and path != os.devnull:
                name = os.fsdecode(path)
                if name.startswith("/dev/"):
                    raise FileNotFoundError(2, "No such file or directory", path)
                if mode is None and os.path.isdir(name):  # of os.open; tempfile says its folder
                    raise PermissionError(13, "Permission denied", path)
                if isinstance(flags, int) and flags & os.O_CREAT:
                    _refuse_name(path)
        case "os.mkdir":
            _refuse_name(arguments[0])
        case "os.symlink":
            raise OSError(22, "[WinError 1314] a required privilege is not held", arguments[0])
        case "os.remove" | "os.rmdir":
            _refuse_open(arguments[0])
        case "os.rename":
            source, target = arguments[:2]
            if os.path.isdir(target):
                raise PermissionError(13, "[WinError 5] Access is denied", target)
            _refuse_name(target)
            _refuse_open(source)
            _refuse_open(target)


def _rename(source: Any, target: Any, **more: Any) -> None:
    if os.path.lexists(target):
        raise FileExistsError(17, "[WinError 183] the file exists already", target)
    os.replace(source, target, **more)


_exists = os.path.exists


def _is_there(path: Any) -> bool:
    return _exists(path) and not str(path).startswith(("/bin/", "/dev/"))


if "SPAWNED" in os.environ and any("spawn_main" in word for word in sys.orig_argv):
    with open(os.environ["SPAWNED"], "a", encoding="utf-8") as _noted:
        _noted.write("spawned\n")
for _name in MODULES.split():
    sys.modules[_name] = None  # type: ignore[assignment]
PurePath.__lt__ = lambda one, other: str(one).lower() < str(other).lower()  # type: ignore
multiprocessing.set_start_method("spawn")
os.supports_dir_fd.clear()
import tempfile  # noqa: E402 - it remembers whether folders can be opened

tempfile.TemporaryFile = tempfile.NamedTemporaryFile  # as that module does on Windows
os.rename = _rename
os.path.exists = _is_there
os.__class__ = _Module
signal.__class__ = _Module
sys.addaudithook(_audit)

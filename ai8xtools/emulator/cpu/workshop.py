"""A temporary folder in which compilers process foreign sources within limits.

A compiler runs in a process group of its own, whose leader is a keeper: a shell that waits until
the tool lets go of it, whether the tool ends it or is killed. Then it ends the group and removes
the folder. Memory, the size of a file and processor time are limited by the shell that becomes the
compiler. Where there is no such shell, or the system refuses a limit, compilers run without.
"""

from __future__ import annotations

import contextlib
import os
import shutil
import subprocess
import tempfile
import threading
from collections.abc import Mapping, Sequence
from pathlib import Path
from types import TracebackType
from typing import Self

from ai8xtools.emulator.cpu.deadline import current
from ai8xtools.emulator.errors import EmulatorError
from ai8xtools.reading import MIB
from ai8xtools.reading.system import SHELL, end_group, grouped

FILE_BYTES = 256 * MIB
"""The largest file that a compiler may write; the emulator reads no larger program."""
FOLDER_BYTES = 2 * FILE_BYTES
"""All files of the folder."""
MEMORY_BYTES = 4096 * MIB
"""Address space of a compiler; a usual program takes a quarter of it."""
_LAST_SECONDS = 3600
"""Of processor time, for a compiler that nobody watches because the tool is stopped."""
_LOOK_SECONDS = 0.1
_PRINTED_BYTES = 16 * MIB
_EXHAUSTED = ("out of memory", "bad_alloc", "virtual memory exhausted", "Cannot allocate memory")

_KEEPER = """trap '' HUP INT TERM
while read -r line; do :; done
kill -TERM 0; kill -CONT 0
rm -rf -- "$1" || { sleep 1; rm -rf -- "$1"; }
kill -KILL 0"""
_LIMITED = """{ ulimit -c 0; ulimit -f "$1"; ulimit -v "$2"; ulimit -t "$3"; } 2> /dev/null
shift 3; exec "$@" """
_BLOCK, _KIB = 512, 1024  # units of `ulimit -f` and `ulimit -v`


class Workshop:
    """A temporary folder, `folder`, and the compilers in it; `place` is what messages name.

    Used as a context; at its end, or that of the tool, no compiler runs and the folder is gone.
    """

    def __init__(self, place: Path) -> None:
        self.place = place
        self.folder = Path(tempfile.mkdtemp(prefix="emulator-"))
        self._deadline = current(place)
        self._ended: EmulatorError | None = None
        self._running: set[subprocess.Popen[bytes]] = set()
        self._closing = threading.Event()
        self._watcher: threading.Thread | None = None
        self._keeper: subprocess.Popen[bytes] | None = None
        try:
            self._keeper = self._start_keeper()
        except BaseException:
            self._remove()
            raise

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        self.end()
        self._closing.set()
        if self._keeper is not None and self._keeper.stdin is not None:
            self._keeper.stdin.close()
            self._keeper.wait()
        self._remove()

    def run(self, command: Sequence[str], environment: Mapping[str, str]) -> tuple[int, str]:
        """Run a compiler in the folder; return its status and what it prints as messages.

        Raises EmulatorError (E811) if it takes too long, or more memory or room than it may have.
        """
        with tempfile.NamedTemporaryFile(dir=self.folder) as printed:
            self.check()
            leader = self._keeper.pid if self._keeper is not None else 0
            process = subprocess.Popen(
                [*_limits(), *command],
                cwd=self.folder,
                env=dict(environment),
                stdin=subprocess.DEVNULL,
                stdout=subprocess.DEVNULL,
                stderr=printed,
                **grouped(leader),
            )
            self._running.add(process)
            self._watch()
            try:
                status = process.wait()
            except BaseException:
                self.end()
                raise
            finally:
                self._running.discard(process)
            self.check()
            printed.seek(0)
            text = printed.read(_PRINTED_BYTES).decode(errors="replace")
        if status and any(word in text for word in _EXHAUSTED):
            raise self._refused(f"the compiler needs more than {MEMORY_BYTES // MIB} MiB of memory")
        return status, text

    def check(self) -> None:
        """Raise EmulatorError (E811) if it is too late, or the folder holds too much."""
        if self._ended is not None:
            raise self._ended
        if self._deadline.passed:
            self._ended = self._deadline.error()
        elif _is_full(self.folder):
            self._ended = self._refused(
                f"the compiler writes more than {FILE_BYTES // MIB} MiB into a file, or "
                f"{FOLDER_BYTES // MIB} MiB together"
            )
        if self._ended is not None:
            raise self._ended

    def end(self) -> None:
        """End all compilers; none is started any more."""
        self._ended = self._ended or EmulatorError("E811", "it was ended", str(self.place))
        if self._keeper is not None and self._keeper.poll() is None:
            end_group(self._keeper.pid)  # the keeper itself stays
        else:
            for process in tuple(self._running):
                process.kill()

    def _refused(self, message: str) -> EmulatorError:
        remedy = "Look for macros, arrays and sections of this size in its sources."
        return EmulatorError("E811", message, str(self.place), remedy)

    def _start_keeper(self) -> subprocess.Popen[bytes] | None:
        if SHELL is None or not grouped():
            return None
        return subprocess.Popen(
            [SHELL, "-c", _KEEPER, "keeper", str(self.folder)],
            stdin=subprocess.PIPE,
            stdout=subprocess.DEVNULL,
            stderr=subprocess.DEVNULL,
            **grouped(),
        )

    def _watch(self) -> None:
        if self._watcher is None:
            self._watcher = threading.Thread(target=self._look, daemon=True)
            self._watcher.start()

    def _look(self) -> None:
        """End compilers that go beyond a limit."""
        while not self._closing.wait(_LOOK_SECONDS):
            try:
                self.check()
            except EmulatorError:
                self.end()

    def _remove(self) -> None:
        shutil.rmtree(self.folder, ignore_errors=True)


def _limits() -> list[str]:
    """Return the beginning of a command that limits what the rest of it may take."""
    if SHELL is None:
        return []
    numbers = (FILE_BYTES // _BLOCK, MEMORY_BYTES // _KIB, _LAST_SECONDS)
    return [SHELL, "-c", _LIMITED, "limited", *map(str, numbers)]


def _is_full(folder: Path) -> bool:
    """Whether the files below a folder are as large as they may be, one or all of them."""
    total = 0
    for place, _, names in os.walk(folder):
        for name in names:
            with contextlib.suppress(OSError):  # it may be gone again
                size = Path(place, name).lstat().st_size
                total += size
                if size >= FILE_BYTES or total > FOLDER_BYTES:
                    return True
    return False

"""Starting train.py in processes of its own, without importing PyTorch anew for each.

A server imports what train.py needs, once, and divides itself for each process that is wanted.
"""

from __future__ import annotations

import contextlib
import multiprocessing
import os
import signal
import socket
import sys
from multiprocessing import connection, forkserver
from pathlib import Path

import pytest

from tests.conftest import ROOT

_SECONDS = 300


class Training:
    """A run of train.py, in one process or in several that train together.

    `lines` reads what they print, as they print it.
    """

    def __init__(self, options: list[str], processes: int = 0) -> None:
        context = multiprocessing.get_context("forkserver")
        context.set_forkserver_preload([f"{__package__}.imports"])
        with pytest.MonkeyPatch.context() as patch:
            patch.setenv("PYTHONPATH", str(ROOT))
            forkserver.ensure_running()
        receiver, sender = context.Pipe(duplex=False)
        environments = _together(processes) if processes else [{}]
        self._processes = [
            context.Process(target=_train, args=(options, {**os.environ, **more}, sender))
            for more in environments
        ]
        for process in self._processes:
            process.start()
        sender.close()
        self.lines = os.fdopen(os.dup(receiver.fileno()), errors="replace")
        receiver.close()

    def wait(self, seconds: float = _SECONDS) -> bool:
        """Wait for all processes; tell whether they have ended."""
        ready = connection.wait([p.sentinel for p in self._processes], seconds)
        while ready and len(ready) < len(self._processes):
            for process in self._processes:
                process.join(seconds)
            ready = connection.wait([p.sentinel for p in self._processes], 0)
        return bool(ready)

    def kill(self) -> None:
        """End all processes at once, as a power failure does, with those that load their data.

        One of these that has just begun would not see that its parent is gone, and wait forever.
        """
        for process in self._processes:
            with contextlib.suppress(ProcessLookupError):
                os.kill(process.pid or 0, signal.SIGSTOP)
        tasks = [Path(f"/proc/{process.pid}/task") for process in self._processes]
        lists = [one.read_text() for task in tasks for one in task.glob("*/children")]
        for process in self._processes:
            process.kill()
        for number in "".join(lists).split():
            with contextlib.suppress(ProcessLookupError):
                os.kill(int(number), signal.SIGKILL)

    def finish(self) -> tuple[int, str]:
        """Wait for the end; return the highest exit status and what was not read yet."""
        text = self.lines.read()
        self.lines.close()
        assert self.wait(), "train.py does not end"
        return max(abs(process.exitcode or 0) for process in self._processes), text


def _together(processes: int) -> list[dict[str, str]]:
    """Return what torch.distributed.run tells each process."""
    with socket.socket() as free:
        free.bind(("127.0.0.1", 0))
        port = free.getsockname()[1]
    common = {"MASTER_ADDR": "127.0.0.1", "MASTER_PORT": str(port), "WORLD_SIZE": str(processes)}
    return [{**common, "RANK": str(i), "LOCAL_RANK": str(i)} for i in range(processes)]


def _train(options: list[str], environment: dict[str, str], output: connection.Connection) -> None:
    """Be train.py; the server has imported it."""
    assert "ai8xtools.training.session" in sys.modules, "the server has not imported train.py"
    os.dup2(output.fileno(), 1)
    os.dup2(output.fileno(), 2)
    output.close()
    os.environ.clear()
    os.environ.update(environment)
    multiprocessing.set_start_method(None, force=True)  # type: ignore[arg-type]  # as in a new process
    import train
    from ai8xtools.diagnostics import run

    sys.argv = ["train.py", *options]
    sys.exit(run(train.main))

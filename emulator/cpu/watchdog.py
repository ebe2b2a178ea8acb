"""Ending a program that takes too long, and noticing one that waits."""

from __future__ import annotations

import threading
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager

IDLE_SECONDS = 0.02  # a program that leaves the bus alone for so long is waiting


@contextmanager
def watched(
    time_limit: float,
    count_accesses: Callable[[], int],
    on_timeout: Callable[[], None],
    on_idle: Callable[[], None],
) -> Iterator[None]:
    """Watch a program from a thread: `time_limit` in seconds.

    `on_timeout` is called when time is up, `on_idle` whenever `count_accesses` stood still.
    """
    finished = threading.Event()
    deadline = time.monotonic() + time_limit

    def watch() -> None:
        accesses = -1
        while not finished.wait(IDLE_SECONDS):
            idle = accesses == count_accesses()
            accesses = count_accesses()
            if time.monotonic() > deadline:
                on_timeout()
            elif idle:
                on_idle()

    thread = threading.Thread(target=watch, daemon=True)
    thread.start()
    try:
        yield
    finally:
        finished.set()
        thread.join()

"""Ending a program that takes too long, and noticing one that waits."""

from __future__ import annotations

import threading
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager

from ai8xtools.reading.system import asked_to_end

IDLE_SECONDS = 0.02
"""A program that computes for so long without using the bus is waiting."""
_BRIEF_SECONDS = 0.001
"""The same of one that has just been found to wait for interrupts."""


@contextmanager
def watched(
    time_limit: float,
    count_accesses: Callable[[], int],
    on_timeout: Callable[[], None],
    on_tick: Callable[[bool], bool],
    on_signal: Callable[[], None],
) -> Iterator[None]:
    """Watch a program from a thread: `time_limit` in seconds.

    `on_timeout` is called when time is up, and again until the program has ended, `on_tick` every
    now and then before that; it learns whether `count_accesses` stands still, and tells whether the
    program will soon do so again. Seconds are processor
    time: on a busy machine a program that has to wait for its turn is neither idle nor late.

    `on_signal` is called when a signal has asked this process to end, and again until the program
    stands still: the signal is not handled while it runs.
    """
    finished = threading.Event()
    deadline = time.process_time() + time_limit

    def watch() -> None:
        accesses, since, ending = -1, time.process_time(), False
        patience, waited = IDLE_SECONDS, since
        while not finished.wait(patience / 2):
            ending = ending or ends()
            if ending:
                on_signal()
            now = time.process_time()
            if accesses != count_accesses():
                accesses, since = count_accesses(), now
            if now > deadline:
                on_timeout()
                continue
            idle = now - since >= patience
            again = on_tick(idle)
            if idle:
                since = now
            if idle and again:
                patience, waited = _BRIEF_SECONDS, now
            elif now - waited > IDLE_SECONDS:
                patience = IDLE_SECONDS

    with asked_to_end() as ends:
        thread = threading.Thread(target=watch, daemon=True)
        try:  # an interrupt may come while it starts
            thread.start()
            yield
        finally:
            finished.set()
            if thread.is_alive():
                thread.join()

"""Signals that end the program: everything is left as it was before."""

from __future__ import annotations

import contextlib
import os
import signal
from collections.abc import Iterator
from types import FrameType

from ai8xtools.reading.system import ending_signals


class Terminated(KeyboardInterrupt):
    """The system or another program asks this one to end; handled like Ctrl-C."""


@contextlib.contextmanager
def ending_as_interrupts() -> Iterator[None]:
    """Raise Terminated for SIGTERM and its like, KeyboardInterrupt for SIGINT, within the block.

    An interrupted import may end as another error; it is raised as the interrupt it was. A signal
    that was to be ignored (nohup) stays ignored. Processes that the block starts by
    forking end at once, as they would without it.
    """
    owner = os.getpid()
    arrived: list[int] = []

    def interrupt_noted(number: int, frame: FrameType | None) -> None:
        arrived.append(number)
        signal.default_int_handler(number, frame)

    def end(number: int, _frame: FrameType | None) -> None:
        if os.getpid() != owner:
            signal.signal(number, signal.SIG_DFL)
            os.kill(os.getpid(), number)
        arrived.append(number)
        raise Terminated

    try:
        signal.signal(signal.SIGTERM, signal.getsignal(signal.SIGTERM))
    except ValueError:  # only the main thread has signals
        yield
        return
    handled = {number: signal.getsignal(number) for number in ending_signals()}
    before = {n: handler for n, handler in handled.items() if handler == signal.SIG_DFL}
    interrupt = signal.getsignal(signal.SIGINT)
    if interrupt in (signal.SIG_DFL, signal.default_int_handler):
        signal.signal(signal.SIGINT, interrupt_noted)
    for number in before:
        signal.signal(number, end)
    try:
        yield
    except ImportError as exc:
        if arrived:  # a library that was being loaded tells of the interrupt in its own way
            raise (KeyboardInterrupt if signal.SIGINT in arrived else Terminated) from exc
        raise
    finally:
        for number, handler in before.items():
            signal.signal(number, handler)
        if interrupt is not None:
            signal.signal(signal.SIGINT, interrupt)

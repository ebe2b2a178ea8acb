"""How far long work is: a line of the terminal that whatever is printed next replaces.

Nothing is shown when standard error is no terminal, and for work that ends within a second.
"""

from __future__ import annotations

import contextlib
import os
import sys
import time
from collections.abc import Callable, Iterable, Iterator
from typing import TypeVar

from ai8xtools.reading.streams import erase_line, show_line
from ai8xtools.reading.text import cleaned

_FIRST_SECONDS, _EVERY_SECONDS = 1.0, 0.2
T = TypeVar("T")


class Progress:
    """Shows how much of `total` is done, and the time that is left at the same pace.

    `total` is in any unit; None if nobody knows it.
    """

    def __init__(self, title: str, total: float | None) -> None:
        self._title, self._total = title, total
        self._began = time.monotonic()
        self._next = self._began + _FIRST_SECONDS
        self._done = 0.0
        self._shown = sys.stderr.isatty() and os.environ.get("TERM") != "dumb"

    def advance(self, steps: float = 1) -> None:
        """Note that more is done."""
        self.reach(self._done + steps)

    def reach(self, done: float, title: str | None = None) -> None:
        """Note how much is done in all, perhaps with another title."""
        self._done = done
        self._title = title or self._title
        now = time.monotonic()
        if self._shown and now >= self._next:
            self._next = now + _EVERY_SECONDS
            show_line(self.text(now - self._began))

    def text(self, seconds: float) -> str:
        """Return the line after some seconds."""
        if not self._total:
            return f"{cleaned(self._title)}: {clock(seconds)}"
        share = min(self._done / self._total, 1.0)
        left = f", {clock(seconds / share - seconds)} left" if share else ""
        return f"{cleaned(self._title)}: {100 * share:.0f} %{left}"

    def close(self) -> None:
        """Take the line away."""
        if self._shown:
            erase_line()


def clock(seconds: float) -> str:
    """Return a duration as minutes and seconds, with hours if there are any: 1:02:03."""
    minutes, rest = divmod(round(seconds), 60)
    hours, minutes = divmod(minutes, 60)
    return f"{hours}:{minutes:02}:{rest:02}" if hours else f"{minutes}:{rest:02}"


@contextlib.contextmanager
def progress(title: str, total: float | None) -> Iterator[Callable[[float], None]]:
    """Show progress during the block, which calls what it gets with each advance."""
    line = Progress(title, total)
    try:
        yield line.advance
    finally:
        line.close()


def tracked(title: str, items: Iterable[T], total: int | None = None) -> Iterator[T]:
    """Yield the items, and show how many of them are done; `total` defaults to their length."""
    count = len(items) if total is None else total  # type: ignore[arg-type]  # a sequence then
    with progress(title, count) as advance:
        for item in items:
            yield item
            advance(1)

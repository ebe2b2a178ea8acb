"""The time in which a project of somebody else is read and compiled."""

from __future__ import annotations

import contextlib
import time
from collections.abc import Iterator
from contextvars import ContextVar

from ai8xtools.emulator.errors import EmulatorError
from ai8xtools.reading.system import alarm
from ai8xtools.values import frozen

READING_SECONDS = 120.0
"""Without a limit of the user's."""


class _TimeUp(BaseException):
    """Not an error, so that code which tries an alternative after an error does not go on."""


@frozen
class Deadline:
    """When the reading of a project has to end, on the clock of `time.monotonic`."""

    ends: float
    seconds: float
    place: str

    @property
    def passed(self) -> bool:
        """Whether it is too late."""
        return time.monotonic() > self.ends

    def error(self) -> EmulatorError:
        """Return what to raise then (E811)."""
        return EmulatorError(
            "E811",
            f"reading and compiling it takes longer than {self.seconds:g} s",
            self.place,
            "Look for macros and includes that multiply, or give it more time with --time-limit of "
            "emulate.py.",
        )


_CURRENT: ContextVar[Deadline | None] = ContextVar("deadline", default=None)


def current(place: object) -> Deadline:
    """Return the deadline of the block `within`, else one of its own."""
    deadline = _CURRENT.get()
    now = time.monotonic()
    return deadline or Deadline(now + READING_SECONDS, READING_SECONDS, str(place))


@contextlib.contextmanager
def within(seconds: float, place: object) -> Iterator[None]:
    """Raise EmulatorError (E811) if the block takes longer; the innermost blocks add no time.

    What is computed meanwhile is interrupted where the system has timers and this is the main
    thread. Elsewhere only compilers are.
    """
    if _CURRENT.get() is not None:
        yield
        return
    deadline = Deadline(time.monotonic() + seconds, seconds, str(place))
    token = _CURRENT.set(deadline)

    def end() -> None:
        raise _TimeUp

    try:
        with alarm(seconds, end):
            yield
    except _TimeUp:
        raise deadline.error() from None
    finally:
        _CURRENT.reset(token)

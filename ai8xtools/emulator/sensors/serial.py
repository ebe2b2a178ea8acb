"""A serial line: what a program sends and receives over the console's UART, if somebody is there.

Real time passes while a program waits for bytes.
"""

from __future__ import annotations

from collections.abc import Callable
from queue import Empty, SimpleQueue
from typing import Protocol

from ai8xtools.emulator.bits import truncated

NAME = "serial"
_PATIENCE_SECONDS = 0.01
"""How long a program that looks for a byte waits for one."""


class ClosedLineError(Exception):
    """Nobody is at the other end any more."""


class Line(Protocol):
    """The other end of a line. Raises ClosedLineError once it is closed."""

    def read(self, seconds: float) -> bytes:
        """Return what has come; wait for the first byte, but no longer than so long."""

    def write(self, data: bytes) -> None:
        """Send bytes."""

    def when_closed(self, stop: Callable[[], None]) -> None:
        """Have a function called by whoever closes the other end, as often as that is done."""


class Serial:
    """The UART of a board; without a `line` nothing is connected to it."""

    def __init__(self, line: Line | None) -> None:
        self._line = line
        self._received, self._sent = bytearray(), bytearray()

    @property
    def connected(self) -> bool:
        """Whether there is a line."""
        return self._line is not None

    def attach(self, stop: Callable[[], None]) -> None:
        """Tell it how to end the program, which may not look for bytes when the line is closed."""
        if self._line is not None:
            self._line.when_closed(stop)

    def level(self) -> int:
        """Return how many bytes have come; wait a little if there is none."""
        if self._line is None:
            return 0
        if self._sent:
            self._line.write(bytes(self._sent))
            self._sent.clear()
        if not self._received:
            self._received += self._line.read(_PATIENCE_SECONDS)
        return len(self._received)

    def take(self) -> int:
        """Return the next byte; 0 if there is none."""
        return self._received.pop(0) if self._received else 0

    def send(self, byte: int) -> None:
        """Send a byte, not later than the program looks for one."""
        self._sent.append(truncated(byte, 8))


class LineEnd:
    """An end of a line within this process."""

    def __init__(
        self, incoming: SimpleQueue[bytes | None], outgoing: SimpleQueue[bytes | None]
    ) -> None:
        self._incoming, self._outgoing = incoming, outgoing
        self._other: LineEnd | None = None
        self._stop: Callable[[], None] = lambda: None

    def connect(self, other: LineEnd) -> None:
        """Say which the other end is."""
        self._other = other

    def when_closed(self, stop: Callable[[], None]) -> None:
        """Have a function called by whoever closes the other end, as often as that is done."""
        self._stop = stop

    def read(self, seconds: float) -> bytes:
        """Return what has come."""
        try:
            data = self._incoming.get(timeout=seconds)
        except Empty:
            return b""
        if data is None:
            self._incoming.put(None)
            raise ClosedLineError
        return data

    def write(self, data: bytes) -> None:
        """Send bytes."""
        self._outgoing.put(data)

    def close(self) -> None:
        """Let the other end know that nobody is here any more."""
        self._outgoing.put(None)
        if self._other is not None:
            self._other._stop()


def line_pair() -> tuple[LineEnd, LineEnd]:
    """Return both ends of a new line."""
    first: SimpleQueue[bytes | None] = SimpleQueue()
    second: SimpleQueue[bytes | None] = SimpleQueue()
    ends = LineEnd(first, second), LineEnd(second, first)
    ends[0].connect(ends[1])
    ends[1].connect(ends[0])
    return ends

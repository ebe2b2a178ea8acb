"""What a program sends and receives over its UARTs: a line with somebody at its end, or a recording
that is sent to it as soon as the program looks for it, line by line, or byte by byte where each
interrupts it.

Real time passes while a program waits for bytes of a line.
Source: docs/emulator.md, "Recordings in the place of sensors".
"""

from __future__ import annotations

from collections.abc import Callable
from queue import Empty, SimpleQueue
from typing import Protocol

from ai8xtools.emulator.bits import truncated
from ai8xtools.emulator.sensors.clock import NEVER, Board
from device.fields import Field, Register, flag

NAME = "uart"
_DEPTH = 8
_SPINS = 200
"""As often it is asked while it computes, and waits for a byte or not."""
_BYTE_US = 87.0
"""Of ten bits at 115,200 a second."""
_LOOKS = 20_000
"""As often a program looks for a byte, while nothing else happens, before it waits in vain."""
CONSOLE, UARTS = 0x40042000, (0x40042000, 0x40043000, 0x40044000, 0x40081400)
"""Addresses of the UARTs' registers."""
_STATUS, _ENABLE, _FLAGS, _FIFO = 0x04, 0x08, 0x0C, 0x20
_STATUS_FIELDS = Register(
    "STATUS",
    0,
    "what the FIFOs hold",
    (
        flag("empty", 4, "nothing was received"),
        flag("full", 5, "no more can be received"),
        flag("sent", 6, "nothing is to be sent"),
        Field("level", 8, 4, "bytes that were received"),
    ),
)
_RECEIVED = Register("INT", 0, "interrupts", (flag("received", 4, "bytes were received"),))
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
    """The UARTs of a board, with a `line` or the bytes that are sent to the program: `recording`.

    `delivered` counts those of the recording that the program has taken; `awaited` tells whether it
    has ever looked for some in vain.
    """

    def __init__(
        self, line: Line | None, recording: bytes = b"", board: Board | None = None
    ) -> None:
        self._line, self._board = line, board
        self._received, self._sent = bytearray(recording), bytearray()
        self._enabled: set[int] = set()  # UARTs that interrupt the program
        self._due: float | None = None  # the next interrupt
        self._looks, self._seen = 0, -1
        self._serving = False  # the program handles an interrupt, for which one byte
        self._came = 0  # has come
        self._pauses = False  # a line has been sent
        self.delivered = 0
        self.awaited = False
        self.copies = False
        """Whether DMA takes what is received."""
        self.on_text: Callable[[str], None] = lambda _text: None
        """Gets what is sent over the console by its registers."""

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
            if self._serving:
                return self._came
            if self._pauses:
                self._pauses = False
                return 0
            if not self._received:
                self._look()
            return min(len(self._received), _DEPTH)
        if self._sent:
            self._line.write(bytes(self._sent))
            self._sent.clear()
        if not self._received:
            self._received += self._line.read(_PATIENCE_SECONDS)
        return len(self._received)

    def take(self) -> int:
        """Return the next byte; 0 if there is none."""
        if not self._received:
            return 0
        self.delivered += self._line is None
        self._looks = self._came = 0
        self._pauses = self._line is None and self._received[0] in b"\r\n"
        return self._received.pop(0)

    def _look(self) -> None:
        """The program looks for a byte in vain: it ends if it does nothing else any more."""
        self.awaited = True
        if self._board is None:
            return
        if self._board.count != self._seen:
            self._seen, self._looks = self._board.count, 0
        self._looks += 1
        if self._looks > _LOOKS:
            self._board.is_over(NAME)

    def news(self) -> None:
        """Something else has happened: the program does not only look for bytes."""
        self._looks = 0

    def wait(self) -> None:
        """The program does nothing until a byte comes; it ends if none will."""
        if self._line is None and not self._received:
            self._looks = _LOOKS
            self._look()

    # Registers and interrupts

    def read(self, address: int) -> int | None:
        """Return what a register of a UART reads; None for others, and where it is memory."""
        register = _register(address)
        if self._line is not None or register not in (_STATUS, _FLAGS, _FIFO):
            return None
        if register == _FIFO:
            return self.take()
        level = self.level()
        if register == _FLAGS:
            return _RECEIVED.pack(received=int(level > 0))
        return _STATUS_FIELDS.pack(
            empty=int(not level), full=int(level == _DEPTH), sent=1, level=level
        )

    def write(self, address: int, value: int) -> None:
        """A register of a UART is written."""
        register = _register(address)
        if register == _ENABLE:
            kept = self._enabled - {address}
            self._enabled = kept | {address} if _RECEIVED.unpack(value)["received"] else kept
        elif register == _FIFO and address - _FIFO == CONSOLE:
            self.on_text(chr(truncated(value, 8)))

    @property
    def listens(self) -> bool:
        """Whether bytes that come interrupt the program, or are copied."""
        return self._line is None and (bool(self._enabled) or self.copies)

    def next_us(self, *, alone: bool, spins: bool) -> float:
        """Return how long a program that sleeps, or `spins`, waits for the next byte; it ends if
        there is none, and it waits for nothing else.
        """
        self._serving = False
        if not self.listens or self._board is None:
            return NEVER
        if not self._received:
            self.awaited = True
            self._looks += 1
            if alone and (not spins or self._looks > _SPINS):
                self._board.is_over(NAME)
            return NEVER
        if self._due is None:
            self._due = self._board.now + _BYTE_US
        return max(0.0, self._due - self._board.now)

    def interrupts(self) -> bool:
        """Whether a byte comes now."""
        self._serving = False
        if self._board is None or self._due is None or self._due > self._board.now:
            return False
        self._due = None
        self._serving = self.listens and bool(self._received)
        self._came = int(self._serving)
        return self._serving

    def send(self, byte: int) -> None:
        """Send a byte, not later than the program looks for one."""
        self._sent.append(truncated(byte, 8))


def _register(address: int) -> int | None:
    """Return the offset of a register of a UART."""
    offsets = (address - base for base in UARTS)
    return next((offset for offset in offsets if 0 <= offset <= _FIFO), None)


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

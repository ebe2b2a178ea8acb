"""The computer's side: inputs to the board, outputs back, whatever the line does to bytes.

Every request may be repeated without harm. One without an answer is repeated; a board that has
forgotten what it was told gets it again. What is returned is what the board has computed: outputs
and inputs have checksums of their own, beside those of the frames.
"""

from __future__ import annotations

import secrets
import struct
import time
import zlib
from collections.abc import Callable
from typing import Protocol

from ai8xtools.bench.description import BenchDescription
from ai8xtools.bench.frames import PIECE_BYTES, Decoder, Frame, Message, Refusal, answer_to, encoded
from ai8xtools.diagnostics.errors import ToolError

TRIES = 10
"""How often a request is made, and an input sent after the board has restarted."""
_WORD, _RUN, _PIECE = struct.Struct("<I"), struct.Struct("<II"), struct.Struct("<IIH")
_RAN = struct.Struct("<II")
_REMEDY = (
    "Check port and --baud, that the board runs the program of this project, and that no other "
    "program uses the port."
)
_LONGER = 4
"""How much longer than any before it an inference may take."""


class BoardError(ToolError):
    """A board does not answer (E886), or not as one with the program of the project (E887)."""


class _ForgottenError(Exception):
    """The board has restarted, or has not what is asked for."""


class Line(Protocol):
    """A serial line."""

    def read(self, seconds: float) -> bytes:
        """Return what has been received; wait for the first byte, but no longer than so long."""

    def write(self, data: bytes) -> None:
        """Send bytes."""


class BenchBoard:
    """The program of `--application bench` at the other end of a line.

    `place` names the line in messages. An answer may take `patience` seconds, the first inference
    `run_seconds`, later ones four times the longest so far if that is less; then a request is made
    again, at most `tries` times, and `remedy` is what to do about a board that is silent.
    `retries` counts requests that were repeated, `resets` inputs that were sent again because the
    board had restarted or lost them. `microseconds` are those of each inference; 0: not known.
    """

    def __init__(
        self,
        line: Line,
        place: str,
        patience: float = 1.0,
        run_seconds: float = 60.0,
        now: Callable[[], float] = time.monotonic,
        tries: int = TRIES,
        remedy: str = _REMEDY,
    ) -> None:
        self._tries, self._remedy = tries, remedy
        self.retries = self.resets = 0
        self.microseconds: list[int] = []
        self._line, self._place, self._now = line, place, now
        self._patience, self._run_seconds = patience, run_seconds
        self._longest: float | None = None
        self._decoder = Decoder()
        self._sequence = secrets.randbelow(1 << 15)
        self._number = secrets.randbelow(1 << 31)
        self._encoded = b""
        self.description = self._hello()

    def infer(self, data: bytes) -> bytes:
        """Return the outputs for an input: bytes of int8 by channel, row and column, to integers in
        little-endian order by output, channel, row and column.

        Raises BoardError: no answer (E886), the board has another program or reports an error
        (E887).
        """
        for _ in range(TRIES):
            try:
                return self._infer(data)
            except _ForgottenError:
                self.resets += 1
        raise BoardError(
            "E886", f"the board lost its input {TRIES} times, one after the other", self._place,
            "It restarts again and again, or its memory is not reliable: check its supply.",
        )  # fmt: skip

    def _hello(self) -> BenchDescription:
        self._encoded = self._ask(Message.HELLO)
        description = BenchDescription.decoded(self._encoded)
        if description is None:
            raise BoardError(
                "E887", "the board's program is of another version", self._place,
                "Generate the project with this version, and flash it.",
            )  # fmt: skip
        return description

    def _infer(self, data: bytes) -> bytes:
        for at in range(0, len(data), PIECE_BYTES):
            self._ask(Message.INPUT, _WORD.pack(at) + data[at : at + PIECE_BYTES])
        self._number = (self._number + 1) % (1 << 32)
        answer = self._ask(Message.RUN, _RUN.pack(self._number, zlib.crc32(data)))
        size, output = self.description.output_bytes, b""
        while len(output) < size:
            count = min(PIECE_BYTES, size - len(output))
            piece = self._ask(Message.GET, _PIECE.pack(self._number, len(output), count))
            if len(piece) != count:
                raise self._strange(f"{len(piece)} bytes of an output instead of {count}")
            output += piece
        if len(answer) != _RAN.size or answer[:4] != _WORD.pack(zlib.crc32(output)):
            raise self._strange("an output with another checksum than it has told")
        self.microseconds.append(_RAN.unpack(answer)[1])
        return output

    def _ask(self, kind: int, data: bytes = b"") -> bytes:
        """Return the answer to a request."""
        for attempt in range(self._tries):
            self.retries += attempt > 0
            self._sequence = (self._sequence + 1) & 0x7FFF
            self._line.write(encoded(Frame(kind, self._sequence, data)))
            answer = self._answer(kind)
            if answer is not None:
                return answer
        raise BoardError(
            "E886",
            f"the board does not answer (requests: {self._tries})",
            self._place,
            self._remedy,
        )

    def _answer(self, kind: int) -> bytes | None:
        """Return the answer to the last request; None if it has to be repeated."""
        began, deadline = None, self._now() + self._patience
        while (left := deadline - self._now()) > 0:
            for frame in self._decoder.feed(self._line.read(left)):
                if frame.kind == Message.STARTED and kind != Message.HELLO:
                    self._check_restart(frame.data)
                elif frame.kind == Message.REFUSED and frame.data == Refusal.BAD_FRAME:
                    return None
                elif frame.sequence != self._sequence:
                    continue  # an answer that comes late
                elif frame.kind == Message.BEGUN and kind == Message.RUN and began is None:
                    began = self._now()
                    deadline = began + self._run_patience
                elif frame.kind == Message.REFUSED:
                    self._check_refusal(frame.data)
                elif frame.kind == answer_to(kind):
                    if began is not None:
                        self._longest = max(self._longest or 0.0, self._now() - began)
                    return frame.data
        return None

    @property
    def _run_patience(self) -> float:
        if self._longest is None:
            return self._run_seconds
        return min(self._run_seconds, self._patience + _LONGER * self._longest)

    def _check_restart(self, encoded: bytes) -> None:
        if encoded != self._encoded:
            raise self._strange("a restart with another network")
        raise _ForgottenError

    def _check_refusal(self, reason: bytes) -> None:
        if reason == Refusal.MISSING and self._encoded:
            raise _ForgottenError
        what = "that the network cannot run" if reason == Refusal.FAILED else "a refusal"
        raise self._strange(what)

    def _strange(self, what: str) -> BoardError:
        return BoardError(
            "E887", f"the board reports {what}", self._place,
            "Flash the program of this project, and try again.",
        )  # fmt: skip

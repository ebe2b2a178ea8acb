"""Whether a program makes progress, what it waits for if not, and when it prints nothing new.

Source: docs/generated-project.md, "Console".
"""

from __future__ import annotations

import re
import time
from collections.abc import Callable, Sequence

from ai8xtools.emulator.errors import EmulatorError, OutOfTimeError

PASS, FAIL = "*** PASS ***", "*** FAIL ***"
QUIET_SECONDS = 2.0
"""Of processor time; a program that has passed and does nothing new for so long is ended."""
REPEATING_SECONDS = 5.0
"""The same of one that has no verdict of its own: its network has run and its output was read."""
PATIENCE = 50_000
"""Calls of one stand-in, with nothing new between them, after which a program waits for it."""
INPUTS = ("camera", "get_camera", "i2s", "MXC_I2S", "MXC_PCIF", "MXC_CSI2", "f_read")
"""Beginnings of functions that would deliver the input of a network."""
IMAGES = ("camera_get_image", "camera_get_raw", "get_camera_stream_buffer")
"""Functions that deliver random images."""
ALONE = "Run the network without main.c: --accelerator-only."
"""What to do without hardware."""
_DIGITS = re.compile(r"\d+")


class Progress:
    """What a program has done so far, as far as it is new.

    `stand_ins` counts the calls of functions that have no hardware behind them, by name.
    """

    def __init__(self, clock: Callable[[], float] = time.process_time) -> None:
        self.console = ""
        self.inferences = 0
        self.stand_ins: dict[str, int] = {}
        self._clock = clock
        self._news_at = self._fresh_at = clock()
        self._delivered = 0  # by sensors
        self._calls: dict[str, int] = {}  # of stand-ins since the last news
        self._ticks = 0  # of timers since then
        self._line = ""  # what is printed of it so far
        self._lines: set[str] = set()  # without their numbers

    @property
    def passed(self) -> bool:
        """Whether the program has reported success and never failure."""
        return PASS in self.console and FAIL not in self.console

    @property
    def satisfied(self) -> bool:
        """Whether the program has passed and does nothing new any more."""
        return self.passed and self._clock() - self._news_at > QUIET_SECONDS

    def repeats(self, delivered: int) -> bool:
        """Whether a program has long had no new input and printed no new line, but old ones.

        `delivered` counts what sensors have delivered.
        """
        if delivered != self._delivered:
            self._delivered, self._fresh_at = delivered, self._clock()
        return self.inferences > 0 and self._clock() - self._fresh_at > REPEATING_SECONDS

    def printed(self, character: str) -> None:
        """The program prints a character; after it has passed, lines as before are nothing new."""
        self.console += character
        if character != "\n":
            self._line += character
            if not self.passed:
                self._news()
            return
        line, self._line = _DIGITS.sub("0", self._line), ""
        if line not in self._lines:
            self._fresh_at = self._clock()
        if line not in self._lines or not self.passed:
            self._news()
        self._lines.add(line)

    def inferred(self, *, anew: bool = True) -> None:
        """The network has run to its end; `anew`: on an input that it had not had before."""
        self.inferences += 1
        if anew:
            self._fresh_at = self._clock()
        self._news()

    def called(self, name: str) -> None:
        """A stand-in is called.

        Raises EmulatorError (E825) if the program does nothing else any more.
        """
        self.stand_ins[name] = self.stand_ins.get(name, 0) + 1
        self._calls[name] = self._calls.get(name, 0) + 1
        if self._calls[name] > PATIENCE and not self.passed:
            raise EmulatorError(
                "E825",
                f"the program waits for {name}(), which stands in for hardware that is not here",
                remedy=ALONE,
            )

    def input_stand_ins(self) -> list[str]:
        """Return the functions without hardware that would have delivered data, as called."""
        return [name for name in self.stand_ins if name.startswith(INPUTS)]

    def never_delivers(self) -> str:
        """Say which hardware would have delivered the first input; empty if none is missing."""
        sources = self.input_stand_ins()
        if not sources or self.inferences:
            return ""
        return (
            f", and {sources[-1]}() stands in for hardware that is not here and never delivers or "
            "interrupts"
        )

    def random_input(self) -> str | None:
        """Return the function, as called, that gave the program random data as its input."""
        return next((name for name in self.stand_ins if name in IMAGES), None)

    def only_ticks(self) -> bool:
        """The program sleeps once more; return whether it has long done nothing else."""
        self._ticks += 1
        return self._ticks > PATIENCE and not self.passed

    def explain_timeout(
        self, error: OutOfTimeError, repetitions: Sequence[str], unheard: str = ""
    ) -> OutOfTimeError:
        """Return the error of a program out of time, with what explains it.

        `repetitions` are loops of the program that repeat parts of an inference, `unheard` tells of
        an interrupt that it does not handle.
        """
        if unheard and not self.inferences:
            return OutOfTimeError(
                "E822",
                f"{error.message}{unheard}",
                error.place,
                "Enable the interrupt in its driver and with NVIC_EnableIRQ(), and define its "
                "handler.",
            )
        if repetitions:
            return OutOfTimeError(
                "E822",
                f"{error.message}: to measure power, {'; '.join(repetitions)}",
                error.place,
                "Shorten these loops with --shorten-loops, or give it more time with --time-limit.",
            )
        if never := self.never_delivers():
            return OutOfTimeError("E822", f"{error.message}{never}", error.place, ALONE)
        often = max(self._calls, key=lambda name: self._calls[name], default="")
        if self._calls.get(often, 0) > 1000:
            return OutOfTimeError(
                "E822",
                f"{error.message}, and calls {often}(), which stands in for hardware that is not "
                "here",
                error.place,
                ALONE,
            )
        if self.inferences > 1:
            return OutOfTimeError(
                "E822",
                f"{error.message}, after {self.inferences} inferences",
                error.place,
                "A program that goes on for ever gives no verdict; run the network without main.c: "
                "--accelerator-only.",
            )
        return error

    def _news(self) -> None:
        self._news_at = self._clock()
        self._calls.clear()
        self._ticks = 0

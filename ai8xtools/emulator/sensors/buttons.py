"""Buttons and inputs of a board without hands: pressed when the program waits for nothing else.

Source: docs/emulator.md, "Firmware of others".
"""

from __future__ import annotations

from ai8xtools.emulator.sensors.clock import NEVER, Board

NAME = "buttons"
_PRESSES = 10
_WAIT_US, _PRESS_US = 500_000.0, 150_000.0
_LOOK_US = 1000.0


class Buttons:
    """The buttons of a board. `presses` counts how often one was pressed."""

    def __init__(self, board: Board) -> None:
        self._board = board
        self.presses = 0
        self.pins = 0
        """How many inputs may interrupt the program."""
        self._since: float | None = None  # the program looks, and nothing else happens
        self._looked = -1.0
        self._held = False
        self._due: float | None = None  # an interrupt, if nothing else wakes the program

    def news(self) -> None:
        """Something else has happened: the program has not waited for a button alone."""
        self._since, self._held = None, False

    def look(self) -> bool:
        """Whether a button is pressed; time passes while the program does nothing but look."""
        if self._board.now == self._looked:
            self._board.pass_time(_LOOK_US)
        self._looked = now = self._board.now
        if self._since is None:
            self._since = now
        waited = now - self._since
        if waited < _WAIT_US:
            return False
        if not self._held and not self._press():
            return False
        self._held = waited < _WAIT_US + _PRESS_US
        if not self._held:
            self._since = now
        return self._held

    def _press(self) -> bool:
        if self.presses == _PRESSES:
            self._board.is_over(NAME)
            return False
        self.presses += 1
        self._held = True
        return True

    def next_us(self, *, alone: bool) -> float:
        """Return how long a program waits for an input, if it waits for nothing else."""
        if not alone or not self.pins:
            self._due = None
            return NEVER
        if self._due is None:
            self._due = self._board.now + _WAIT_US
        return max(0.0, self._due - self._board.now)

    def interrupts(self) -> bool:
        """Whether an input changes now."""
        if self._due is None or self._due > self._board.now:
            return False
        self._due = None
        pressed = self._press()
        self._held = False
        return pressed

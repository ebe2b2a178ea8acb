"""The Arm core of a pair: its program starts the RISC-V core and waits for it."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING

from ai8xtools.emulator.state.power import CPU1_CLOCK, is_running

if TYPE_CHECKING:
    from ai8xtools.emulator.firmware.board import Board


class Starter:
    """What the Arm core's program does beside a RISC-V core."""

    def __init__(self, board: Board) -> None:
        self._board = board
        self._done = False

    def asleep(self, alone: bool) -> None:
        """The program sleeps, as it should."""

    @property
    def expecting(self) -> bool:
        """Whether the RISC-V core was started and has not finished."""
        return not self._done and is_running(self._board.bus.words, CPU1_CLOCK)

    @property
    def due(self) -> bool:
        """Whether the RISC-V core was started and has not finished."""
        return self.expecting

    @property
    def live(self) -> bool:
        """The other core decides."""
        return True

    def spins(self, place: str, variables: Sequence[str]) -> None:
        """The other core decides."""

    @property
    def satisfied(self) -> bool:
        """Whether the programs have passed and do nothing new any more."""
        return self._board.satisfied

    def text(self, character: str) -> None:
        """The program prints a character."""
        self._board.text(character)

    def stand_in(self, name: str) -> None:
        """The program calls a function that has no hardware behind it."""
        self._board.stand_in(name)

    def measured(self, microseconds: int) -> None:
        """The program has measured a time."""
        self._board.measured(microseconds)

    @property
    def device_microseconds(self) -> float:
        """Estimated time that the accelerator has taken."""
        return self._board.device_microseconds

    def wait(self, sleeping: bool) -> int:
        """The program waits for the RISC-V core."""
        if not sleeping and not self.expecting:
            return 0
        self._done = True
        return self._board.run_second()

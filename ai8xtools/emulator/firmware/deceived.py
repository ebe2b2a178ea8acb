"""Whether a program that reports success looks at the output: it runs again with a wrong output.

Source: docs/emulator.md, "The verdict".
"""

from __future__ import annotations

import contextlib
from collections.abc import Collection

from ai8xtools.emulator.bits import WORD_LIMIT, changed
from ai8xtools.emulator.errors import EmulatorError
from ai8xtools.emulator.firmware.board import Board


class _DeceivingBoard(Board):
    """A board on which words of the output are inverted after each inference."""

    inverted: Collection[int] = ()

    def _infer(self) -> None:
        super()._infer()
        for address in self.inverted:
            value = self.bus.words.get(address, 0)
            self.bus.words[address] = changed(value, 0, WORD_LIMIT - 1)


def is_deceived(board: Board, outputs: Collection[int], time_limit: float) -> bool:
    """Run the program of a board once more, with each word of `outputs` inverted.

    Return whether it reports success all the same.
    """
    wrapper = board.wrapper.image if board.wrapper else None
    again = _DeceivingBoard(board.core.image, board.chip, board.bus.apb_base, wrapper=wrapper,
                            recorded=board.sensors.recorded)  # fmt: skip
    again.inverted = outputs
    with contextlib.suppress(EmulatorError):
        again.run(time_limit)
    return again.progress.passed

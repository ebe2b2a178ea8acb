"""The answer files of a project with several networks: each is compared when its network starts.

Source: docs/library.md, "Several networks in the accelerator".
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from functools import partial
from pathlib import Path

from ai8xtools.answer import FILE_NAME, Answer, read_answer
from ai8xtools.commands.emulate.known_answer import AnswerCheck, describe_answer
from ai8xtools.emulator import Board
from ai8xtools.emulator.state.memory import Memory
from ai8xtools.synthesis.residents import answer_in_turn
from device import UnknownDeviceError, chip_named


class AnswersInTurn:
    """Compares the networks of a program with their answer files while it runs."""

    def __init__(self, answers: Sequence[Answer]) -> None:
        self._checks = []
        for own in answers:
            others = [answer for answer in answers if answer is not own]
            expected = answer_in_turn(own, others, chip_named(own.chip))
            name = f"{own.symbol_prefix}_{FILE_NAME}"
            self._checks.append(AnswerCheck(expected, name, others))
        self._started: dict[str, Memory] = {}  # what the accelerator held, by file
        self._current = self._checks[0]

    def watch(self, board: Board) -> None:
        """Compare words and layers each time a network starts."""
        board.before_first_run = board.before_later_run = partial(self._start, board)

    def finish(self, board: Board) -> AnswerCheck:
        """Compare the last inference; return a check that objects, or that of the last network."""
        self._compare_layers(board)
        return next((check for check in self._checks if check.objection), self._current)

    def describe(self) -> Iterator[str]:
        """Yield lines on what differs from the answer files, or that nothing does."""
        for check in self._checks:
            if check.file in self._started:
                name = check.answer.symbol_prefix
                lines = describe_answer(check, self._started[check.file])
                yield from (f"{name}: {line}" for line in lines)

    def _start(self, board: Board, memory: Memory) -> None:
        if self._started:
            self._compare_layers(board)
        self._current = min(self._checks, key=partial(_others, memory))
        if self._current.file not in self._started:
            self._started[self._current.file] = memory.snapshot()
        self._current.compare_start(memory)

    def _compare_layers(self, board: Board) -> None:
        check = self._current
        if check.layers is None and check.file in self._started and board.last_run is not None:
            check.compare_layers(board.last_run, self._started[check.file])


def answers_in_turn(project: Path, *, enabled: bool) -> AnswersInTurn | None:
    """Return the checks of a project with answer files of several networks; None if it has none, or
    unless it is `enabled`.

    Raises AnswerError: damaged (E850) or of a newer version (E851); OSError for what is no file.
    """
    paths = sorted(project.glob(f"*_{FILE_NAME}")) if enabled else []
    answers = [read_answer(path) for path in paths]
    try:
        return AnswersInTurn(answers) if len(answers) > 1 else None
    except UnknownDeviceError:
        return None


def _others(memory: Memory, check: AnswerCheck) -> int:
    """Return how many registers are not those of a network."""
    registers = check.answer.registers
    pairs = zip(registers.addresses.tolist(), registers.values.tolist(), strict=True)
    return sum(memory.registers.get(address, 0) != value for address, value in pairs)

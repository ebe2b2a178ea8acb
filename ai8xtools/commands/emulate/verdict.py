"""The verdict on a program: PASS needs evidence that the result was computed and compared."""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np

from ai8xtools.answer import FILE_NAME
from ai8xtools.commands.emulate.evidence import sample_evidence
from ai8xtools.commands.emulate.known_answer import AnswerCheck, refusal
from ai8xtools.commands.emulate.recordings import Played
from ai8xtools.commands.emulate.runs import WRONG_REGISTERS
from ai8xtools.emulator import Board, FirmwareOutcome
from ai8xtools.emulator.firmware.deceived import is_deceived
from ai8xtools.emulator.words.addresses import DATA, AddressMap
from ai8xtools.values import frozen

_DRIVERS = {
    "camera": "get_camera_stream_buffer",
    "microphone": "MXC_I2S_Init",
    "series": "MXC_I2C_MasterTransaction",
    "uart": "MXC_UART_Read",
}
"""Functions of the drivers that deliver the data of sensors."""


@frozen
class Verdict:
    """Whether the program passed, and the last line of the output.

    `reported_failure` says that the program itself found its result wrong; `reason` is a sentence
    to show before the last line.
    """

    passed: bool
    line: str
    reported_failure: bool = False
    reason: str = ""


def judge(
    board: Board,
    outcome: FirmwareOutcome,
    check: AnswerCheck | None,
    played: Played = Played(),  # noqa: B008
    *,
    lost: bool = False,
    words_changed: bool = False,
) -> Verdict:
    """Return the verdict on a program that has ended.

    `played` stands for its sensors. `lost`: its answer file is missing; `words_changed`: its words
    differ from the file on purpose.
    """
    if outcome.reported_failure:
        return Verdict(False, "FAIL", reported_failure=True)
    if outcome.errors:
        return Verdict(False, "FAIL", reason=WRONG_REGISTERS)
    objection = refusal(check, words_changed=words_changed)
    if objection is not None and outcome.inferences:
        return Verdict(False, "FAIL", reason=objection)
    missing = _missing(board, outcome)
    if missing is None and not outcome.reported_success:
        missing = _doubtful(board, outcome)
        if missing is None:
            notes = [*_done(board, outcome, check, played), *_lost(lost)]
            return Verdict(True, f"DONE ({'; '.join(notes)})")
    if missing is None:
        missing = _uncompared(board, outcome, check)
    if missing is not None:
        return Verdict(False, f"NOT PASSED: {missing}")
    notes = [_inferences(outcome), *_lost(lost)]
    notes += _unchecked(board, outcome, check)
    if not _has_input(board):
        notes.append("the input is all zeros")
    return Verdict(True, f"PASS{_evidence(board, check)} ({'; '.join(notes)})")


def _lost(lost: bool) -> list[str]:
    return [f"{FILE_NAME} is missing"] if lost else []


def _doubtful(board: Board, outcome: FirmwareOutcome) -> str | None:
    """Say what speaks against a program that says nothing of its output; None if nothing does."""
    assert outcome.run is not None
    if outcome.exit_code:
        return f"the program ended with status {outcome.exit_code}"
    if not _has_input(board) and not board.sensors.count:
        return "the input is all zeros: the program has loaded none"
    if any(not finding.harmless for finding in outcome.run.findings):
        return "the program compares nothing, and the warnings above say what may be wrong"
    return None


def _done(
    board: Board, outcome: FirmwareOutcome, check: AnswerCheck | None, played: Played
) -> Iterator[str]:
    """Say what is known of a program that says nothing of its output itself."""
    yield _inferences(outcome)
    yield from _input(board, played, input_of(board))
    if board.repeats:
        yield "it repeats itself"
    if board.waits:
        yield board.waits
    trusted = check if check is not None and check.all_words_right and check.has_results else None
    if trusted is not None and _outputs(board, outcome, trusted) <= board.results_read:
        yield f"words and layers are as in {trusted.file}, the program itself compares nothing"
    else:
        yield "nothing is said of the output"


def input_of(board: Board) -> str | None:
    """Return what gave a program its input: a sensor, or a function that stands for hardware."""
    return board.sensors.source or board.progress.random_input()


def _input(board: Board, played: Played, source: str | None) -> Iterator[str]:
    """Say where the input came from."""
    if source is None:
        return
    file = played.of(source) if board.sensors.source else None
    if file is not None:
        yield f"{board.sensors.delivered} of {file}"
        return
    function = board.progress.random_input() or _DRIVERS[source]
    yield f"the input is random: {function}() stands in for hardware"


def _evidence(board: Board, check: AnswerCheck | None) -> str:
    """Return the evidence for the verdict if there is no answer file."""
    if check is not None and check.all_words_right and check.has_results:
        return ""
    run, samples = board.first_run, len(board.inputs)
    return f" {sample_evidence(board.first_memory, run, board.results_read, samples)}"


def _inferences(outcome: FirmwareOutcome) -> str:
    return "1 inference" if outcome.inferences == 1 else f"{outcome.inferences} inferences"


def _missing(board: Board, outcome: FirmwareOutcome) -> str | None:
    """Return which required step the program left out; None if none."""
    if not outcome.started:
        status = f"; it ended with status {outcome.exit_code}" if outcome.exit_code else ""
        return f"the program never started the accelerator{status}"
    if not outcome.inferences:
        return "the accelerator was started, but the program did not wait until it had finished"
    if not board.has_data(board.results_read if board.repeats or board.waits else outcome.read):
        return "the program never read the output of the accelerator"
    return None


def _uncompared(board: Board, outcome: FirmwareOutcome, check: AnswerCheck | None) -> str | None:
    """Say why the output does not count as compared; None if it does.

    It does if the program writes the words of its answer file and read every word of the results.
    Otherwise a comparison of its own must notice wrong ones: a function check_output() that accepts
    the output, refuses altered ones, and reads only what the program has read, or the program as a
    whole, which must not report success when it runs again and all results are inverted.
    """
    outputs = _outputs(board, outcome, check)
    own = outputs & outcome.own
    if own:
        return f"the program wrote {len(own)} of {len(outputs)} words of the output itself"
    trusted = check is not None and check.all_words_right and check.has_results
    if trusted and outputs <= outcome.read:
        return None
    checked = board.checked_words()
    if checked and checked <= outcome.read:
        return None
    if outputs & outcome.read and not is_deceived(board, outputs, board.time_limit):
        return None
    if check is not None and check.applies and not trusted:
        return (
            f"the words differ from {check.file}, and the program has no comparison of its own "
            "that notices wrong results"
        )
    seen = len(outputs & outcome.read)
    return f"the program read {seen} of {len(outputs)} words of the output and compared none"


def _outputs(board: Board, outcome: FirmwareOutcome, check: AnswerCheck | None) -> frozenset[int]:
    """Return the addresses of the results: as the answer file says, or of the last layer."""
    addresses = board.bus.addresses
    assert addresses is not None and outcome.run is not None
    named: frozenset[int] = frozenset()
    if check is not None and check.applies:
        named = check.output_addresses(addresses)
    return named or _last_outputs(outcome, addresses)


def _unchecked(board: Board, outcome: FirmwareOutcome, check: AnswerCheck | None) -> Iterator[str]:
    """Say what the verdict does not cover, for the last line."""
    if check is None or check.all_words_right:
        return
    if not check.applies:
        yield f"{check.file} is that of another program"
        return
    unread = _outputs(board, outcome, check) - outcome.read
    note = f"the words differ from {check.file} on purpose"
    yield f"{note}, {len(unread)} words of the output were not read" if unread else note


def _has_input(board: Board) -> bool:
    """Tell whether a program gave the accelerator any data that is not zero."""
    writes, addresses = board.bus.writes(), board.bus.addresses
    assert addresses is not None
    _, area, _ = addresses.split(writes.address)
    is_data = (area == DATA) | np.isin(writes.address, [*addresses.fifos])
    return bool(writes.value[is_data].any())


def _last_outputs(outcome: FirmwareOutcome, addresses: AddressMap) -> frozenset[int]:
    """Return the addresses of the words that the last layer wrote."""
    assert outcome.run is not None
    done = outcome.run.layers[-1]
    base = [
        addresses.apb_base + addresses.chip.data_address(i) for i in done.place.instance.tolist()
    ]
    return frozenset((np.array(base)[:, None] + 4 * done.words).reshape(-1).tolist())

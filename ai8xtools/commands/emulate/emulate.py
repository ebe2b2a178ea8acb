"""What emulate.py does: run the firmware of a project, or recorded words, and explain the result.

The C files are compiled as they are and main() runs from reset on an emulated core with the
accelerator behind its bus. Recorded words are executed without firmware.
"""

from __future__ import annotations

import codecs
import io
from collections.abc import Iterator
from pathlib import Path

import numpy as np

from ai8xtools.checkpoint.atomic import write_bytes
from ai8xtools.commands.emulate.alone import emulate_alone
from ai8xtools.commands.emulate.arguments import EmulateOptions
from ai8xtools.commands.emulate.debugging import options_for_gdb, served, server_for
from ai8xtools.commands.emulate.in_turn import AnswersInTurn, answers_in_turn
from ai8xtools.commands.emulate.known_answer import AnswerCheck, answer_of, describe_answer
from ai8xtools.commands.emulate.last_line import tell
from ai8xtools.commands.emulate.notes import show_notes, show_stand_ins
from ai8xtools.commands.emulate.plain import (
    core_of,
    emulate_plain,
    refuse_options,
    refuse_silent_line,
    refuse_unknown_core,
)
from ai8xtools.commands.emulate.runs import WRONG_REGISTERS, show_run
from ai8xtools.commands.emulate.timing import describe_times, write_time_files
from ai8xtools.commands.emulate.trained_on import trained_on
from ai8xtools.commands.emulate.verdict import input_of, judge
from ai8xtools.commands.loader.origin import lacks_answer
from ai8xtools.commands.same_files import refuse_overwriting, refuse_project_files
from ai8xtools.diagnostics import note, suggest
from ai8xtools.emulator import (
    Accelerator,
    AddressMap,
    Board,
    EmulatorError,
    FirmwareOutcome,
    NetworkRun,
    Writes,
)
from ai8xtools.emulator.cpu.deadline import within
from ai8xtools.emulator.errors import NoProgramError, RecordingError, StoppedError
from ai8xtools.emulator.report.departure import departure_of_words, outputs_at
from ai8xtools.emulator.report.describe import (
    describe_departure,
    describe_registers,
    describe_unwritten,
    describe_word,
)
from ai8xtools.emulator.report.trace import as_csv, as_text, trace
from ai8xtools.emulator.state.memory import Memory
from ai8xtools.emulator.words.recording import read_words

SHOWN_MISMATCHES = 10


def emulate(options: EmulateOptions) -> int:
    """Run what the options name; return 0 if the result is right."""
    note(subject=options.words or options.project)
    written = [("--trace", options.trace), ("--dump", options.dump)]
    written += [("--profile", options.profile), ("--vcd", options.vcd)]
    refuse_overwriting(
        [(option, None if path is None else str(path)) for option, path in written],
        (options.words, options.input, options.labels),
    )
    refuse_project_files(written, options.project)
    if options.words is not None and options.decompile is not None:
        from ai8xtools.commands.emulate.decompiling import decompile_words  # it needs the loader

        return decompile_words(Path(options.words), options.decompile, options)
    if options.words is not None:
        return emulate_words(Path(options.words), options)
    assert options.project is not None, "the command line names one of both"
    with within(options.tree.seconds, options.project):
        core = core_of(options)
        refuse_options(options, core)
        if core is None:
            refuse_unknown_core(Path(options.project))
    if options.prove:
        suggest("make", "-C", options.project)
        from ai8xtools.commands.emulate.proving import (  # it needs the network loader
            prove_project,
            prove_software,
        )

        if core is not None:
            return prove_software(Path(options.project), core, options)
        return prove_project(Path(options.project), options)
    if options.explain:
        from ai8xtools.commands.emulate.explaining import explain_project  # it needs the loader

        return explain_project(Path(options.project), options)
    if options.decompile is not None:
        from ai8xtools.commands.emulate.decompiling import decompile_project  # it needs the loader

        return decompile_project(Path(options.project), options.decompile, options)
    if options.serial is not None or options.serve:
        from ai8xtools.commands.emulate.bench import emulate_board, serve_board  # few ask for it

        if options.serve:
            return serve_board(Path(options.project), core, options)
        return emulate_board(Path(options.project), core, options)
    if options.input is None and not options.accelerator_only:
        refuse_silent_line(Path(options.project), power=options.power)
    if core is not None:
        return emulate_plain(Path(options.project), core, options)
    suggest("emulate.py", options.project, "--prove")
    if options.accelerator_only:
        return emulate_alone(Path(options.project), options)
    if options.input is not None:
        from ai8xtools.commands.emulate.data_set import (
            emulate_data_set,  # it needs the network loader
        )

        return emulate_data_set(Path(options.project), options)
    try:
        return emulate_project(options.project, options)
    except NoProgramError as error:
        if options.gdb is not None or options.profile is not None or options.vcd is not None:
            raise
        print(f"note: {error.message}: the network is run alone, as with --accelerator-only")
        return emulate_alone(Path(options.project), options)


def emulate_project(project: str, options: EmulateOptions) -> int:
    """Run a project; return 0 if it reports success."""
    server = server_for(options)
    if server is not None:
        options = options_for_gdb(options)
    phases, tree = None, options.tree
    if options.power:
        from ai8xtools.commands.emulate.power import (  # few ask for it
            options_for_power,
            power_of_board,
            watched_board,
        )

        tree = options_for_power(tree, Path(project))
    check = answer_of(Path(project), enabled=options.answer)
    turns = None if check else answers_in_turn(Path(project), enabled=options.answer)
    recorded = options.played.recorded(Path(project))
    board = Board.with_project(project, options.chip, options.apb_base, Screen(), tree, recorded)
    if options.power:
        phases = watched_board(board)
    show_notes(board, options.verbose)
    if check is not None:
        check.watch(board)
    if turns is not None:
        turns.watch(board)
    try:
        with served(server, board):
            outcome = board.run(options.time_limit_s)
    except RecordingError:  # nothing is wrong with the program
        raise
    except EmulatorError as error:
        show_answer(board, check, stopped=isinstance(error, StoppedError))
        show_turns(board, turns)
        raise
    finally:  # also, and above all, of a program that goes wrong
        show_stand_ins(board, options.played, options.verbose)
        if options.trace is not None and board.bus.addresses is not None:
            write_trace(board.bus.writes(), board.bus.addresses, options.trace)
        write_time_files(board, options)
    for line in describe_times(board):
        print(line)
    if phases is not None:
        for line in power_of_board(board, phases):
            print(line)
    if outcome.run is not None:
        show_run(outcome.run, board.accelerator.memory, options, not outcome.reported_failure)
    trained = trained_on(Path(project))
    if trained is not None and trained.sample_class is not None:
        print(f"The sample is of the class {trained.sample_class}.")
    show_answer(board, check)
    check = show_turns(board, turns) or check
    lost = check is None and options.answer and lacks_answer(Path(project))
    verdict = judge(
        board, outcome, check, options.played, lost=lost, words_changed=options.words_changed
    )
    if verdict.reported_failure:
        explain_failure(board, outcome)
    if verdict.reason:
        print(verdict.reason)
    tell(verdict.line, None if trained is None else trained.doubt)
    return 0 if verdict.passed else 1


def show_answer(board: Board, check: AnswerCheck | None, *, stopped: bool = False) -> None:
    """Show what differs from the answer file, if there is one.

    Of a program that was `stopped` before the network started, what it has written is compared.
    """
    waits = bool(board.sensors.recorded.silent) and not board.bus.was_started
    if check is None or waits:  # for a sensor that never delivers: nothing is wrong with its words
        return
    check.takes_input = input_of(board) is not None
    check.compare_unstarted(board, stopped=stopped)
    if check.words is None:
        return
    memory = check.unstarted or board.accelerator.memory
    check.compare_layers(board.first_run, memory)
    for line in describe_answer(check, memory):
        print(line)


def show_turns(board: Board, turns: AnswersInTurn | None) -> AnswerCheck | None:
    """Show how networks that take turns differ from their answer files; return what decides."""
    if turns is None or not board.bus.was_started:
        return None
    decisive = turns.finish(board)
    for line in turns.describe():
        print(line)
    return decisive


class Screen:
    """Shows what the program prints, as it prints it: bytes of UTF-8 that come one by one."""

    def __init__(self) -> None:
        self._decoder = codecs.getincrementaldecoder("utf-8")("replace")

    def __call__(self, text: str) -> None:
        """Show the next characters, each of them a byte."""
        shown = self._decoder.decode(text.encode("latin-1", "replace"))
        print(shown, end="", flush=text == "\n")


def explain_failure(board: Board, outcome: FirmwareOutcome) -> None:
    """Say which layer wrote the first value that is not as the program expects it."""
    addresses = board.bus.addresses
    if outcome.run is None or outcome.failed_at is None or addresses is None:
        print("The program gave up before it checked a result.")
        return
    memory = board.accelerator.memory
    wrong, complete = board.wrong_words()
    if wrong:
        print(_count_wrong(len(wrong), complete))
        print("\n".join(_explain_words(outcome.run, memory, wrong)))
        return
    # All that is known is where the program looked last
    place = addresses.describe(outcome.failed_at)
    print(f"The last word read was 0x{outcome.failed_at:08x} ({place}).")
    for done, _, _ in outputs_at(outcome.run, addresses, outcome.failed_at):
        print(f"It holds {describe_word(outcome.run, addresses, outcome.failed_at)}.")
        print("\n".join(describe_registers(memory, done.config.layer)))
        break
    else:
        print("\n".join(describe_unwritten(outcome.run, memory, outcome.failed_at)))


def _count_wrong(count: int, complete: bool) -> str:
    text = f"{count} words of the output differ from what the program expects."
    return text if complete else f"At least {text}"


def _explain_words(
    run: NetworkRun, memory: Memory, wrong: list[tuple[int, int, int]]
) -> Iterator[str]:
    """Yield lines that tell which layer wrote the first of the wrong words, or that none did."""
    departure = departure_of_words(run, memory.addresses, wrong)
    if departure is not None:
        yield from describe_departure(memory, departure)
    elif wrong:
        yield from describe_unwritten(run, memory, wrong[0][0])


def emulate_words(path: Path, options: EmulateOptions) -> int:
    """Execute recorded words; return 0 if the result is as expected."""
    if options.chip is None:
        raise EmulatorError("E802", "recorded words do not name the device", "--device", "Name it.")
    recording = read_words(path)
    addresses = AddressMap(options.chip, options.apb_base)
    if options.trace is not None:
        write_trace(recording.writes, addresses, options.trace)
    accelerator = Accelerator(options.chip, options.apb_base)
    accelerator.write(recording.writes)
    executed = accelerator.run()
    words = accelerator.data_words()
    mismatches = recording.mismatches(words)
    passed = not mismatches and not executed.errors
    show_run(executed, accelerator.memory, options, passed)
    if options.dump is not None:
        dump(words, options.dump)
    for address, expected, actual in mismatches[:SHOWN_MISMATCHES]:
        holds = describe_word(executed, addresses, address)
        place = f"0x{address:08x}, {holds}" if holds else f"0x{address:08x}"
        print(f"{place}: expected 0x{expected:08x}, found 0x{actual:08x}")
    for line in _explain_words(executed, accelerator.memory, mismatches):
        print(line)
    count = len(recording.expected)
    if count:
        print(f"{count - len(mismatches)} of {count} expected words are right")
    else:
        print(f"{len(executed.layers)} layers executed; the recording expects nothing")
        if passed:
            return 0
    if executed.errors and not mismatches:
        print(WRONG_REGISTERS)
    tell("PASS" if passed else "FAIL")
    return 0 if passed else 1


def write_trace(writes: Writes, addresses: AddressMap, path: Path) -> None:
    """Write the program of the accelerator as a table; complete or not at all."""
    rows = trace(writes, addresses)
    text = as_csv(rows) if path.suffix.lower() == ".csv" else as_text(rows)
    write_bytes(path, text.encode())


def dump(words: dict[int, int], path: Path) -> None:
    """Write the words of data memory, by ascending address; complete or not at all."""
    buffer = io.BytesIO()
    addresses = sorted(words)
    np.savez_compressed(
        buffer,
        addr=np.array(addresses, np.uint32),
        value=np.array([words[address] for address in addresses], np.uint32),
    )
    write_bytes(path, buffer.getvalue())

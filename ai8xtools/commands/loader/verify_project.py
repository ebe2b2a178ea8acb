"""What `ai8xize.py --verify-project` does: compare the words of an existing project, run nothing.

The functions of the project that write words run on an emulated core; the network does not.
"""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

from ai8xtools.answer import Answer
from ai8xtools.diagnostics import Diagnostic, DiagnosticError, Place, refused
from ai8xtools.diagnostics.errors import ToolError
from ai8xtools.emulator import Effect, EmulatorError, WordDifference, Writes, compare, count_words
from ai8xtools.emulator.comparison.partial import accepted_writes, next_word, written_so_far
from ai8xtools.emulator.comparison.places import describe_wrong
from ai8xtools.emulator.comparison.words import compare_words
from ai8xtools.emulator.errors import OtherChipError
from ai8xtools.emulator.firmware.alone import NetworkAlone
from ai8xtools.emulator.state.memory import Memory
from ai8xtools.synthesis.answer import build_answer
from ai8xtools.synthesis.pipeline import Synthesis
from ai8xtools.synthesis.words import PhaseWords, phase_words

SHOWN_DIFFERENCES = 10


def verify_project(
    result: Synthesis, folder: Path, *, apb_base: int, repeat: int, fixed_input: bool
) -> Iterator[str]:
    """Compare the words that the C in a folder writes with those of a program.

    `repeat` and `fixed_input` are options of the program (see `build_answer`). Yields what was
    found right. Raises DiagnosticError that names the first wrong words (E840) or says that the
    project is of another network (E844); EmulatorError as `NetworkAlone`.
    """
    network = NetworkAlone(folder, result.chip, apb_base, load=False)
    phases = phase_words(result.program)
    answer = build_answer(result, "", repeat, 0, fixed_input=fixed_input)
    has_sample = network.has_sample
    if not has_sample:
        answer = answer.without_input()
        phases["load_input"] = PhaseWords({}, ())
    problem: ToolError | None = None
    try:
        network.load()
        network.start(sample=has_sample)
    except OtherChipError:
        raise
    except EmulatorError as error:
        if network.board.bus.addresses is None:
            raise
        problem = error
    writes = network.board.bus.writes()
    memory = accepted_writes(Memory(result.chip, apb_base), writes)
    expected = answer if problem is None else written_so_far(memory, answer)
    diagnostics = list(_differences(memory, expected, phases, folder, complete=problem is None))
    try:
        Memory(result.chip, apb_base).write(writes)
    except EmulatorError as error:
        problem = problem or error
    if problem is not None:
        diagnostics.append(_stop(memory, answer, problem, folder, unexplained=not diagnostics))
    if diagnostics:
        raise DiagnosticError(diagnostics)
    yield f"verified {count_words(_effects(phases))} accelerator words of {folder}"
    if not has_sample:
        yield f"{folder} has no sample; its input was not compared"


def _differences(
    memory: Memory,
    answer: Answer,
    phases: dict[str, PhaseWords],
    folder: Path,
    *,
    complete: bool,
) -> Iterator[Diagnostic]:
    """Yield what is wrong: words when the network would start, else the order of control words."""
    place = Place(file=str(folder))
    right = Memory(memory.chip, answer.apb_base)
    right.write(_writes(phases))
    words = compare_words(memory, answer, right)
    if words.stranger:
        raise refused(
            "E844",
            f"the project is not of this network: {words.stranger}",
            place,
            "Check the folder, and that description and options are those of the project.",
        )
    texts = [describe_wrong(memory, answer, word) for word in words.wrong[:SHOWN_DIFFERENCES]]
    count = len(words.wrong)
    if not count and complete:
        differences = _control(memory, phases)
        texts, count = [str(text) for text in differences[:SHOWN_DIFFERENCES]], len(differences)
    for text in texts:
        yield Diagnostic("E840", f"wrong word: {text}", place)
    if count:
        number = "1 word differs" if count == 1 else f"{count} words differ"
        yield Diagnostic("E840", f"{number} from the program", place)


def _control(memory: Memory, phases: dict[str, PhaseWords]) -> list[WordDifference]:
    """Compare the words whose order counts."""
    control = [write for words in phases.values() for write in words.control]
    effects = {"in order": Effect({}, memory.control)}
    return compare(effects, {"in order": Effect({}, control)}, memory.addresses)


def _stop(
    memory: Memory, answer: Answer, problem: ToolError, folder: Path, *, unexplained: bool
) -> Diagnostic:
    """Return the error that ended the project's functions, with the word that was due."""
    following = next_word(memory, answer) if unexplained else None
    remedy = problem.remedy
    if following is not None:
        phase, address = following
        place = memory.addresses.describe(address)
        remedy = f"All words before are right; next comes {phase}: 0x{address:08x}, {place}."
    return Diagnostic(problem.code, problem.message, Place(file=str(folder)), remedy)


def _effects(phases: dict[str, PhaseWords]) -> dict[str, Effect]:
    return {
        phase: Effect(words.words, words.control, words.pushes) for phase, words in phases.items()
    }


def _writes(phases: dict[str, PhaseWords]) -> Writes:
    rows: list[tuple[int, int, int]] = []
    for words in phases.values():
        rows += [(4, address, value) for address, value in words.words.items()]
        rows += [(4, address, value) for address, value in words.control]
        rows += [(4, address, value) for address, many in words.pushes.items() for value in many]
    return Writes.of(rows)

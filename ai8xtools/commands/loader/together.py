"""Networks of --also with the one beside them, as a written project has them: verified, proven.

Source: docs/library.md, "Several networks in the accelerator".
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path

from ai8xtools.answer import Answer
from ai8xtools.commands.loader.options import LoaderOptions
from ai8xtools.commands.loader.origin import made_again, rebuilt
from ai8xtools.commands.proof.reference import Reference
from ai8xtools.diagnostics import Diagnostic, DiagnosticError, Place, refused
from ai8xtools.emulator.comparison.layers import compare_layers
from ai8xtools.emulator.comparison.places import describe_wrong
from ai8xtools.emulator.comparison.words import compare_words
from ai8xtools.emulator.firmware.residents import Residents
from ai8xtools.synthesis.residents import answer_in_turn
from device import Chip

_SHOWN = 10


def verify_together(
    network: Residents, answers: Sequence[Answer], chip: Chip, folder: Path
) -> Iterator[str]:
    """Let each network take its turn with its sample, and compare its words and layers.

    Yields what was found right. Raises DiagnosticError that names network and word (E840), layer
    (E841) or register (E842); EmulatorError as the networks do.
    """
    place = Place(file=str(folder))
    for prefix, answer in {f"{answer.symbol_prefix}_cnn": answer for answer in answers}.items():
        name, others = answer.symbol_prefix, [one for one in answers if one is not answer]
        assert answer.sample is not None, "networks that have none are refused"
        memory = network.begin(prefix, answer.sample)
        expected = answer_in_turn(answer, others, chip)
        words = compare_words(memory, expected, others=others)
        told = [f"{name}: {describe_wrong(memory, expected, word)}" for word in words.wrong]
        told += [f"{name}: {words.stranger}"] if words.stranger else []
        if told:
            rest = f"{name}: {len(told)} words differ from the program"
            raise DiagnosticError(
                [Diagnostic("E840", one, place) for one in (*told[:_SHOWN], rest)]
            )
        run = network.execute()
        first = compare_layers(run, answer).first
        if first is not None:
            text = f"{name}: the emulated accelerator does not compute the expected output"
            raise refused("E841", text, place, f"First difference: {first}")
        if run.errors:
            wrong = [f"{name}: a register is wrong: {error}" for error in run.errors]
            raise DiagnosticError([Diagnostic("E842", one, place) for one in wrong])
        yield f"{name}: verified {words.compared} accelerator words and {len(run.layers)} layers"


def references_of(
    project: Path, prefixes: Sequence[str], own: Mapping[str, Reference] | None = None
) -> Mapping[str, Reference]:
    """Return the networks that are in an accelerator together, by the prefix of their functions:
    the `own` ones, and those that the first lines of the others' C files name.

    Raises EmulatorError: description or checkpoint are not there (E881).
    """
    from ai8xtools.commands.loader.arguments import parse

    def read(words: Sequence[str]) -> tuple[LoaderOptions, None]:
        return parse(words), None

    known = own or {}
    return {
        prefix: known.get(prefix)
        or rebuilt(made_again(project, read, _reference, f"{prefix}.c"), project / f"{prefix}.c")
        for prefix in prefixes
    }


def _reference(options: LoaderOptions, _kind: None) -> Reference:
    from ai8xtools.synthesis.pipeline import examine

    network = examine(options.config_file, options.chip, options.resolve, options.encode)[0]
    rounding = options.encode.average_rounding
    return Reference.of(options.description_name, network, average_rounding=rounding)

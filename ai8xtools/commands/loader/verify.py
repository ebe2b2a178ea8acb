"""What `ai8xize.py --verify` does: run the firmware in the emulator and compare it word by word."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

from ai8xtools.diagnostics import Diagnostic, DiagnosticError, Place, refused
from ai8xtools.emulator import NetworkRun, compare, count_words, run_loader
from ai8xtools.emulator.firmware.loader import LoaderRecord
from ai8xtools.emulator.report.cycles import format_cycles, network_cycles
from ai8xtools.emulator.report.departure import Departure, SimulatedChannel, departure_of_layers
from ai8xtools.emulator.report.describe import describe_departure
from ai8xtools.synthesis.encode.numbering import Numbering
from ai8xtools.synthesis.mapping import MappedLayer
from ai8xtools.synthesis.network import Tensor
from ai8xtools.synthesis.pipeline import Synthesis
from ai8xtools.synthesis.place.outputs import delivery_of, pieces_of
from ai8xtools.synthesis.words import phase_words

SHOWN_DIFFERENCES = 10


def verify(
    result: Synthesis,
    folder: Path,
    *,
    apb_base: int,
    check_output: bool,
    cycles: bool,
    prefix: str | None = None,
    alone: bool = False,
) -> Iterator[str]:
    """Run the project's loader on an emulated core and compare every word and the output.

    Yields what was found right, and with `cycles` a table of the layers' times. `check_output`
    means that the program has a sample whose result is known, `prefix` how names of a library
    begin, `alone` that there is no main(). Raises DiagnosticError naming the first differences,
    EmulatorError.
    """
    expected = {
        phase: (words.words, words.control, words.pushes)
        for phase, words in phase_words(result.program).items()
    }
    record = run_loader(
        folder,
        result.chip.name,
        apb_base=apb_base,
        prefix=f"{prefix}_" if prefix else "",
        alone=alone,
    )
    differences = compare(record.effect(), expected, record.addresses)
    place = Place(file=str(folder))
    if differences:
        shown = [Diagnostic("E840", str(d), place) for d in differences[:SHOWN_DIFFERENCES]]
        rest = f"{len(differences)} words differ from the program"
        raise DiagnosticError([*shown, Diagnostic("E840", rest, place)])
    yield f"verified {count_words(expected)} accelerator words"
    if not check_output:
        return
    run = record.execute()
    if not (record.check_output() and record.check_is_alive()):
        raise refused(
            "E841",
            "the emulated accelerator does not compute the expected output",
            place,
            _explanation(result, record, run),
        )
    if run.errors:
        raise DiagnosticError(
            [Diagnostic("E842", f"a register is wrong: {error}", place) for error in run.errors]
        )
    yield f"verified {len(result.program.expected)} words of the expected output"
    if cycles:
        yield "\n".join(cycle_table(result, record, run))


def cycle_table(result: Synthesis, record: LoaderRecord, run: NetworkRun) -> list[str]:
    """Return the cycles of the executed registers, beside those of the network loader."""
    numbering = _numbering(result)
    statistics = {s.index: s.cycles for s in result.summary.statistics.layers}
    analytic = {
        numbering.number(layer): cycles
        for layer in result.network.layers
        if (cycles := statistics.get(layer.index)) is not None
    }
    assert record.accelerator is not None
    executed = [done.config for done in run.layers]
    return format_cycles(network_cycles(record.accelerator.memory, executed), analytic)


def simulated_channels(layer: MappedLayer, output: Tensor) -> Iterator[SimulatedChannel]:
    """Yield the channels of a simulated layer with their places in data memory."""
    source = delivery_of(layer)
    for piece in pieces_of(source):
        for number, lane in enumerate(piece.lanes):
            word = layer.out_offset // 4 + piece.word
            yield SimulatedChannel(piece.instance, lane, word, output[piece.channel + number])


def departure(result: Synthesis, record: LoaderRecord, run: NetworkRun) -> Departure | str | None:
    """Return where the emulated layers first depart from the simulation."""
    outputs = result.activations.outputs
    simulated = {
        number: list(simulated_channels(layer, outputs[layer.index]))
        for number, layer in _simulated_layers(result).items()
    }
    return departure_of_layers(run, record.addresses, simulated)


def _simulated_layers(result: Synthesis) -> dict[int, MappedLayer]:
    """Return the layers whose simulated output is known, by hardware layer."""
    numbering = _numbering(result)
    outputs = result.activations.outputs
    return {
        numbering.number(layer): layer for layer in result.mapped.layers if layer.index in outputs
    }


def coverage(simulated: set[int], executed: set[int]) -> Iterator[str]:
    """Yield what a comparison without a difference has shown, and which layers it left out."""
    if simulated == executed:
        yield "All layers are as simulated; check_output() compares something else."
        return
    if simulated & executed:
        yield f"As simulated: {_layers(simulated & executed)}."
    if simulated - executed:
        yield f"Simulated, but not executed: {_layers(simulated - executed)}."
    if executed - simulated:
        yield f"Executed, but not compared with a simulation: {_layers(executed - simulated)}."


def _layers(numbers: set[int]) -> str:
    names = ", ".join(map(str, sorted(numbers)))
    return f"layer {names}" if len(numbers) == 1 else f"layers {names}"


def _explanation(result: Synthesis, record: LoaderRecord, run: NetworkRun) -> str:
    difference = departure(result, record, run)
    findings = [f"{finding.severity.value}: {finding}" for finding in run.findings]
    if difference is None:
        executed = {done.config.layer for done in run.layers}
        lines = [*coverage(set(_simulated_layers(result)), executed)]
    elif isinstance(difference, str):
        lines = [f"First difference: {difference}"]
    else:
        assert record.accelerator is not None
        lines = [*describe_departure(record.accelerator.memory, difference)]
    return "\n".join([*lines, *findings])


def _numbering(result: Synthesis) -> Numbering:
    return Numbering.of(result.network, result.chip, 1)

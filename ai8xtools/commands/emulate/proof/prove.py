"""`emulate.py PROJECT --prove`: prove the words of a project, or refute them."""

from __future__ import annotations

from pathlib import Path

import numpy as np

from ai8xtools.commands.emulate.arguments import EmulateOptions
from ai8xtools.commands.emulate.proof.comparison import Comparison, Question, compare
from ai8xtools.commands.emulate.proof.counterexample import Counterexample, counterexample
from ai8xtools.commands.emulate.runs import WRONG_REGISTERS
from ai8xtools.commands.emulate.simulation import Simulation, built_again, built_of
from ai8xtools.emulator import EmulatorError, NetworkAlone
from ai8xtools.emulator.decode.own_input import loaded_input
from ai8xtools.emulator.firmware.repeated import result_places
from ai8xtools.emulator.machine.batch import NetworkBatch
from ai8xtools.synthesis.network import Layer

_SHOWN = 5


def prove_project(project: Path, options: EmulateOptions) -> int:
    """Return 0 if the project computes its network for every input.

    Raises EmulatorError: description or checkpoint are not there (E881), it can be neither proven
    nor refuted (E882), and as the emulator does.
    """
    network = NetworkAlone(
        project, options.chip, options.apb_base, options.tree, options.time_limit_s
    )
    for note in network.notes:
        print(f"note: {note}")
    run = network.run(None if network.has_sample else np.zeros(network.input_shape, np.int8))
    suspicious = [finding for finding in run.findings if not finding.harmless]
    for finding in suspicious[:_SHOWN]:
        print(f"{finding.severity.value}: {finding}")
    if suspicious:
        print(WRONG_REGISTERS, "FAIL", sep="\n")
        return 1
    simulation = _simulation(project, network, options)
    places = result_places(network, run)
    if not places.of_program:
        raise _unproven("cnn_unload() does more than to copy bytes")
    accelerator = network.board.accelerator
    if accelerator.goes_on:
        raise _unproven("the network may end early: data decides what is executed")
    try:
        batch = NetworkBatch(accelerator, (places.instance, places.offset))
    except EmulatorError as error:
        raise _unproven(error.message) from None
    question = Question(simulation, batch, accelerator.memory)
    if network.sample_memory is not None:
        _check_sample(question, network)
    comparison = compare(question)
    if not len(comparison.wrong):
        print(_proven(question))
        return 0
    example = counterexample(question, comparison)
    if example is None:
        raise _unproven(
            f"{_difference(comparison)}, but no input was found for which the output differs"
        )
    print("\n".join(_refuted(question, comparison, example)))
    return 1


def _simulation(project: Path, network: NetworkAlone, options: EmulateOptions) -> Simulation:
    if options.config_file is None:
        simulation = built_again(project)
    else:
        memory = network.board.accelerator.memory
        rounding = bool(memory.control_register("CTL")["average_rounding"])
        simulation = built_of(
            options.config_file, options.checkpoint_file, memory.chip, average_rounding=rounding
        )
    if isinstance(simulation, str):
        raise EmulatorError(
            "E881", simulation, str(project),
            "Name the files with --config-file and --checkpoint-file.",
        )  # fmt: skip
    return simulation


def _check_sample(question: Question, network: NetworkAlone) -> None:
    """Refuse a sample that the program does not load as it stands in the network."""
    assert network.sample_memory is not None
    loaded = loaded_input(network.sample_memory).astype(np.int64)
    placed = question.placed(question.simulation.network.sample, loaded)
    wrong = np.argwhere(placed != loaded)
    if len(wrong):
        channel, row, column = wrong[0].tolist()
        raise _unproven(
            f"the sample that the program loads is not that of {question.simulation.name}: channel "
            f"{channel}, row {row}, column {column} is {loaded[tuple(wrong[0])]}, not "
            f"{placed[tuple(wrong[0])]}"
        )


def _unproven(reason: str) -> EmulatorError:
    return EmulatorError("E882", f"neither proven nor refuted: {reason}")


def _proven(question: Question) -> str:
    layers = len(question.batch.steps)
    return (f"PROVEN: {layers} layers compute {question.simulation.name} for every input, at every "
            "inference; probability of an error below 2^-64, see docs/proof.md")  # fmt: skip


def _difference(comparison: Comparison) -> str:
    if comparison.layer is None:
        return f"cnn_unload() delivers another value as byte {comparison.wrong[0]}"
    return f"the accelerator does not compute {comparison.layer} as the network does"


def _refuted(question: Question, comparison: Comparison, example: Counterexample) -> list[str]:
    layer, place = _value_at(question, comparison, example.byte)
    difference = _difference(comparison)
    return [
        f"{difference[0].upper()}{difference[1:]}.",
        f"Counterexample: {example.recipe}: byte {example.byte} of the result ({layer}, "
        f"{place}) is {example.found:#04x}, of the network {example.expected:#04x}",
        "REFUTED",
    ]


def _value_at(question: Question, comparison: Comparison, byte: int) -> tuple[Layer, str]:
    """Return which value of which layer a byte of the result should be."""
    for layer, order in zip(question.outputs, comparison.orders, strict=True):
        size = layer.output_width // 8
        if byte < size * len(order):
            rows, columns = layer.out_dim
            channel, pixel = divmod(int(order[byte // size]), rows * columns)
            return layer, f"channel {channel}, row {pixel // columns}, column {pixel % columns}"
        byte -= size * len(order)
    raise AssertionError("the byte is one of the result")

"""Proving the network of a project, and telling what came of it."""

from __future__ import annotations

import io
from pathlib import Path

import numpy as np

from ai8xtools.checkpoint.atomic import write_bytes
from ai8xtools.commands.proof.judgement import Judgement, judge
from ai8xtools.commands.proof.reference import Expected, Reference
from ai8xtools.diagnostics import note as note_outcome
from ai8xtools.emulator import EmulatorError, NetworkAlone
from ai8xtools.emulator.firmware.repeated import result_places
from ai8xtools.emulator.state.memory import Memory

_SHOWN = 5


def prove(
    network: NetworkAlone,
    reference: Reference,
    file: Path | None = None,
    *,
    own_sample: bool = True,
) -> bool:
    """Tell whether the network of a project is computed for every input, and print why.

    An input for which it is not goes to the `file` (.npy), complete or not at all.
    A project with an `own_sample` has that of the network, others may have another one.
    Raises EmulatorError: it can be neither proven nor refuted (E882), and as the emulator does.
    """
    loaded: list[Memory] = []

    def keep(memory: Memory, **_is_sample: bool) -> None:
        loaded.append(memory.snapshot())

    network.before_run = keep
    run = network.run(None if network.has_sample else np.zeros(network.input_shape, np.int8))
    if network.board.accelerator.goes_on:
        raise unproven("the network may end early: data decides what is executed")
    places = result_places(network, run)
    if not places.of_program:
        raise unproven("there is no cnn_unload(), or it does more than to copy bytes")
    judgement = judge(
        reference,
        loaded[0],
        (places.instance, places.offset),
        has_sample=network.has_sample,
        own_sample=own_sample,
    )
    return print_judgement(judgement, reference, file)


def print_judgement(judgement: Judgement, reference: Expected, file: Path | None) -> bool:
    """Print a judgement, and tell whether the network is computed for every input.

    An input for which it is not goes to the `file` (.npy). Raises EmulatorError E882 if it is
    neither proven nor refuted.
    """
    for note in judgement.notes:
        print(f"note: {note}")
    for finding in judgement.findings[:_SHOWN]:
        print(f"{finding.severity.value}: {finding}")
    if judgement.proven:
        note_outcome(verdict="passed", reason="the network is computed for every input")
        print(f"PROVEN: {reference.size} compute {reference.name} for "
              f"every input, at every inference; probability of an error {reference.certainty}, "
              "see docs/proof.md")  # fmt: skip
        return True
    for reason in judgement.reasons:
        print(f"{reason[0].upper()}{reason[1:]}.")
    example = judgement.example
    if example is None:
        raise unproven(
            "registers are suspicious, see above" if judgement.findings else
            "no input was found for which the output differs"
        )  # fmt: skip
    if file is not None:
        buffer = io.BytesIO()
        np.save(buffer, example.image.astype(np.int8))
        write_bytes(file, buffer.getvalue())
    where = example.stopped or f"byte {example.byte} of the result ({judgement.place})"
    note_outcome(verdict="failed", reason=f"REFUTED: {where}")
    recipe = example.recipe or "an input that was searched for (--dump writes it)"
    differs = "" if example.stopped else (
        f" is {example.actual:#04x}, of the network {example.expected:#04x}"
    )  # fmt: skip
    print(f"Counterexample: {recipe}: {where}{differs}", "REFUTED", sep="\n")
    return False


def unproven(reason: str) -> EmulatorError:
    """Return the error for what is neither proven nor refuted, and why."""
    return EmulatorError("E882", f"neither proven nor refuted: {reason}")

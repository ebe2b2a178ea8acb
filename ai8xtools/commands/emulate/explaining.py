"""`emulate.py PROJECT --explain`: why a project computes something else than its description."""

from __future__ import annotations

from pathlib import Path

import numpy as np

from ai8xtools.commands.emulate.arguments import EmulateOptions
from ai8xtools.commands.emulate.loaded import network_alone
from ai8xtools.commands.emulate.simulation import synthesized_again
from ai8xtools.commands.explain.explanation import ReferenceRun, explained, paragraph
from ai8xtools.commands.loader.origin import rebuilt
from ai8xtools.commands.proof.delivered import delivered
from ai8xtools.diagnostics import note
from ai8xtools.emulator import EmulatorError, NetworkAlone
from ai8xtools.emulator.decode.own_input import loaded_input, set_input
from ai8xtools.emulator.firmware.repeated import data_places, departing_bytes, result_places
from ai8xtools.emulator.state.memory import Memory
from ai8xtools.synthesis.options import EncodeOptions, PlaceOptions, ResolveOptions
from ai8xtools.synthesis.pipeline import Synthesis, synthesize


def explain_project(project: Path, options: EmulateOptions) -> int:
    """Explain a project in one paragraph; return 0 if nothing departs from its description.

    Raises EmulatorError: description or checkpoint are not there (E881), and as loading a project
    does.
    """
    network = network_alone(project, options)
    network.start(sample=network.has_sample)
    memory = network.board.accelerator.memory.snapshot()
    reference = ReferenceRun(_reference(project, network, options))
    if options.config_file is not None or not network.has_sample:
        _same_input(reference.memory, memory)
    explanation = explained(reference, memory)
    wrong = paragraph(reference, explanation) if explanation else of_results(network, reference)
    text = wrong or "Nothing departs: words, layers and results are those of the description."
    note(verdict="failed" if wrong else "passed", reason=text)
    print(text)
    return int(bool(wrong))


def _reference(project: Path, network: NetworkAlone, options: EmulateOptions) -> Synthesis:
    if options.config_file is None:
        result = synthesized_again(project)
    else:
        memory = network.board.accelerator.memory
        rounding = bool(memory.control_register("CTL")["average_rounding"])
        resolve = ResolveOptions(
            checkpoint_file=options.checkpoint_file, sample_shape=network.input_shape
        )
        encode = EncodeOptions(
            PlaceOptions(overlap_data=True),
            apb_base=options.apb_base,
            average_rounding=rounding,
        )
        result = synthesize(options.config_file, memory.chip, resolve, encode)
    return rebuilt(result, project)


def _same_input(reference: Memory, actual: Memory) -> None:
    """Give both the same input: that of the project, or if it has none, that of the description."""
    shapes = loaded_input(reference), loaded_input(actual)
    if shapes[0].shape != shapes[1].shape:
        raise EmulatorError(
            "E881", f"the description's input is {shapes[0].shape}, the program's {shapes[1].shape}"
        )
    actual.data_written[:] = reference.data_written
    set_input(actual, shapes[0])


def of_results(network: NetworkAlone, reference: ReferenceRun) -> str:
    """Say what is wrong behind the last layer, if something is."""
    try:
        network.run(None if network.has_sample else np.zeros(network.input_shape, np.int8))
    except EmulatorError as error:
        return f"The words are right, but the program goes wrong: {error.message}"
    final = reference.result.network.final
    if final.final_scale == 0 and network.has("unload"):
        text = _of_unloading(network, reference)
        if text:
            name = reference.name(reference.numbers[final.index]).rstrip(",")
            return f"All layers are right. The cause is cnn_unload(): {text} of {name}."
    if network.comparison is False:
        return (
            "All words and layers are right. The cause is what the program compares with "
            "(sampleoutput.h): it expects other results."
        )
    return ""


def _of_unloading(network: NetworkAlone, reference: ReferenceRun) -> str:
    """Say which byte of the result is another one; where the program reads it if it copies."""
    memory, addresses = network.board.accelerator.memory, delivered(reference.result.program)
    base, chip = memory.addresses.apb_base, memory.chip
    instance, offset = data_places(memory, addresses - base)
    wrong = departing_bytes(network, (instance, offset))
    if not len(wrong):
        return ""
    byte = int(wrong[0])
    if byte >= len(addresses):
        return f"it delivers more than the {len(addresses)} bytes of the result"
    right, right_place = int(memory.data_bytes[instance[byte], offset[byte]]), int(addresses[byte])
    delivered_byte = int(network.unloaded(len(addresses), fill=0)[byte])
    places = result_places(network, reference.run)
    reason = f"which stands at 0x{right_place:08x}"
    if places.of_program and byte < len(places.instance):
        read = base + chip.data_address(int(places.instance[byte]), int(places.offset[byte]))
        reason = f"as it reads 0x{read:08x}, not 0x{right_place:08x}"
    values = f"{delivered_byte:#04x}, not {right:#04x}"
    if delivered_byte == right:
        values = f"{right:#04x}, which is right for this input only"
    return f"it delivers {values}, {reason}, as byte {byte} of the result"

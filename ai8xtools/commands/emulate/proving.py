"""`emulate.py PROJECT --prove`: prove the words of a project, or refute them."""

from __future__ import annotations

import re
from pathlib import Path

from ai8xtools.commands.decompile.modes import any_input_port
from ai8xtools.commands.emulate.arguments import DEFAULT_LEVEL, EmulateOptions
from ai8xtools.commands.emulate.loaded import loaded
from ai8xtools.commands.emulate.plain import library_of
from ai8xtools.commands.emulate.simulation import (
    Operators,
    built_again,
    built_for_software,
    built_of,
    operators_again,
)
from ai8xtools.commands.loader.origin import rebuilt
from ai8xtools.commands.loader.together import references_of
from ai8xtools.commands.proof.operators import OperatorQuestion, OperatorReference, apart
from ai8xtools.commands.proof.project import print_judgement, prove, unproven
from ai8xtools.commands.proof.reference import Reference
from ai8xtools.commands.proof.residents import prove_residents
from ai8xtools.commands.proof.software import (
    CompiledQuestion,
    judge_program,
    prefix_of,
    text_without_prefix,
    unknown_kernels,
    without_prefix,
)
from ai8xtools.emulator import EmulatorError, NetworkAlone
from ai8xtools.emulator.cpu.architecture import ARCHITECTURES
from ai8xtools.emulator.firmware.residents import Residents
from ai8xtools.emulator.plain import compile_plain
from ai8xtools.reading import source_text

_HOP = re.compile(r"\bCNN_HOP_BYTES (\d+)\b")


def prove_project(project: Path, options: EmulateOptions) -> int:
    """Return 0 if the project computes its network for every input.

    Raises EmulatorError as `prove`, and: description or checkpoint are not there (E881).
    """
    network = loaded(Residents, project, options)
    if network.prefixes:
        _refuse_description(network, options)
        references = references_of(project, network.prefixes)
        return 0 if prove_residents(network, references, options.dump) else 1
    reference = _reference(project, network, options)
    own_sample = options.config_file is None
    return 0 if prove(network, reference, options.dump, own_sample=own_sample) else 1


def prove_software(project: Path, core: str, options: EmulateOptions) -> int:
    """Return 0 if a program without accelerator computes its network for every input.

    Raises EmulatorError as `prove_project`, and: its kernels are not known (E882).
    """
    prefix = prefix_of(project)
    if prefix is None or library_of(project)[0]:
        raise unproven("only the kernels of C projects are known, no containers, no library of Arm")
    code = f"{prefix}cnn.c"
    operators = None if options.config_file else operators_again(project, code)
    if isinstance(operators, str):
        raise EmulatorError("E881", operators, str(project))
    if operators is not None:
        return _prove_operators(operators, project, prefix, core, options)
    if options.config_file is None:
        simulation = rebuilt(built_again(project, code, stream=True), project)
    else:
        simulation = built_for_software(options.config_file, options.checkpoint_file)
    reference = Reference(  # C computes what the known answer is made of
        simulation.name, simulation.network, simulation.average_rounding
    )
    level = options.optimization or DEFAULT_LEVEL
    program = compile_plain(project, ARCHITECTURES[core], f"-O{level}",
                            seconds=options.tree.seconds)  # fmt: skip
    hop = _HOP.search(source_text(project / f"{prefix}cnn.h"))
    question = CompiledQuestion(
        reference,
        without_prefix(program.image, prefix),
        options.time_limit_s,
        hop_bytes=int(hop[1]) if hop else 0,
    )
    judgement = judge_program(question, unknown_kernels(project, prefix))
    return 0 if print_judgement(judgement, reference, options.dump) else 1


def _prove_operators(
    operators: Operators, project: Path, prefix: str, core: str, options: EmulateOptions
) -> int:
    """Return 0 if a program computes its graph of operators for every input."""
    reference = OperatorReference(
        operators.name, operators.graph, operators.sample, operators.widths
    )
    level = options.optimization or DEFAULT_LEVEL
    program = compile_plain(project, ARCHITECTURES[core], f"-O{level}", [apart(prefix)],
                            seconds=options.tree.seconds)  # fmt: skip
    texts = (text_without_prefix(project, prefix, name) for name in ("cnn.c", "weights.h"))
    question = OperatorQuestion(
        reference, without_prefix(program.image, prefix), options.time_limit_s, 1, 0, *texts
    )
    judgement = judge_program(question, unknown_kernels(project, prefix))
    return 0 if print_judgement(judgement, reference, options.dump) else 1


def _refuse_description(network: Residents, options: EmulateOptions) -> None:
    if options.config_file is not None:
        raise EmulatorError(
            "E881", f"it holds {len(network.prefixes)} networks: {', '.join(network.prefixes)}",
            "--config-file", "Leave it out: the C files of each network name its description.",
        )  # fmt: skip


def _reference(project: Path, network: NetworkAlone, options: EmulateOptions) -> Reference:
    if options.config_file is None:
        simulation = built_again(project)
    else:
        memory = network.board.accelerator.memory
        rounding = bool(memory.control_register("CTL")["average_rounding"])
        simulation = built_of(
            options.config_file,
            options.checkpoint_file,
            memory.chip,
            network.input_shape,
            average_rounding=rounding,
            input_port=any_input_port(memory),
        )
    simulation = rebuilt(simulation, project)
    return Reference.of(
        simulation.name, simulation.network, average_rounding=simulation.average_rounding
    )

"""`emulate.py PROJECT --prove`: prove the words of a project, or refute them."""

from __future__ import annotations

from pathlib import Path

from ai8xtools.commands.emulate.arguments import EmulateOptions
from ai8xtools.commands.emulate.loaded import network_alone, rebuilt
from ai8xtools.commands.emulate.simulation import built_again, built_of
from ai8xtools.commands.proof.project import prove
from ai8xtools.commands.proof.wanted import Wanted
from ai8xtools.emulator import NetworkAlone


def prove_project(project: Path, options: EmulateOptions) -> int:
    """Return 0 if the project computes its network for every input.

    Raises EmulatorError as `prove`, and: description or checkpoint are not there (E881).
    """
    network = network_alone(project, options)
    reference = _reference(project, network, options)
    own_sample = options.config_file is None
    return 0 if prove(network, reference, options.dump, own_sample=own_sample) else 1


def _reference(project: Path, network: NetworkAlone, options: EmulateOptions) -> Wanted:
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
        )
    simulation = rebuilt(simulation, project)
    return Wanted.of(
        simulation.name, simulation.network, average_rounding=simulation.average_rounding
    )

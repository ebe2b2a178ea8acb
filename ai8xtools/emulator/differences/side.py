"""One of two projects that are compared: loaded into an accelerator, and run if that is possible.

Projects of all generations of the SDK can be read, as `NetworkAlone` does.
"""

from __future__ import annotations

from pathlib import Path

import numpy as np

from ai8xtools.emulator.checks.finding import LayerReport
from ai8xtools.emulator.checks.impossible import refuse_impossible
from ai8xtools.emulator.comparison.places import decoded
from ai8xtools.emulator.decode.config import LayerConfig
from ai8xtools.emulator.errors import EmulatorError
from ai8xtools.emulator.firmware.alone import NetworkAlone
from ai8xtools.emulator.firmware.repeated import ResultPlaces, result_places
from ai8xtools.emulator.machine.accelerator import NetworkRun
from ai8xtools.emulator.state.memory import Memory
from ai8xtools.values import frozen
from device import Chip


@frozen
class LoadedWords:
    """What was written before the network starts, the layers that will be executed, by number, and
    whether an input is among it. Layers whose registers make no sense are left out.
    """

    memory: Memory
    layers: dict[int, LayerConfig]
    has_input: bool

    @classmethod
    def of(cls, memory: Memory, *, has_input: bool) -> LoadedWords:
        """Decode the layers from the first to the last."""
        layers: dict[int, LayerConfig] = {}
        number: int | None = memory.control_register("LCNT_MAX")["first"]
        while number is not None and number not in layers and number < memory.chip.max_layers:
            layers[number] = decoded(memory, number)
            number = layers[number].next_layer
        possible = {n: config for n, config in layers.items() if _is_possible(memory, config)}
        return cls(memory, possible, has_input)


def _is_possible(memory: Memory, config: LayerConfig) -> bool:
    try:
        refuse_impossible(LayerReport(memory, config, []), from_fifo=False)
    except EmulatorError:
        return False
    return True


@frozen
class Side:
    """A project. `run` and `places` are None if the network does not run, for the reason in
    `problem`.
    """

    folder: Path
    network: NetworkAlone
    loaded: LoadedWords
    run: NetworkRun | None
    places: ResultPlaces | None
    problem: str


def read_side(folder: Path, chip: Chip, apb_base: int) -> Side:
    """Compile the network of a project, load it, and run it on its sample.

    Raises EmulatorError as `NetworkAlone`, and if the network cannot be started.
    """
    network = NetworkAlone(folder, chip, apb_base)
    before: list[Memory] = []

    def keep(memory: Memory, **_is_sample: bool) -> None:
        before.append(memory.snapshot())

    network.before_run = keep
    run, places, problem = None, None, ""
    try:
        run = network.run(None if network.has_sample else np.zeros(network.input_shape, np.int8))
        places = result_places(network, run)
    except EmulatorError as error:
        if not before:
            raise
        problem = error.message
    loaded = LoadedWords.of(before[0], has_input=network.has_sample)
    return Side(folder, network, loaded, run, places, problem)

"""The network loader's simulation of a project, if its description still exists.

A project tells in its first lines how it was made. The description and the checkpoint named there
are read again; paths count from the current folder, or from one that the project is in.
"""

from __future__ import annotations

import itertools
import math
import os
from collections.abc import Mapping, Sequence
from dataclasses import replace
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, TypeVar

import numpy as np
from numpy.typing import NDArray

from ai8xtools.answer import FILE_NAME, read_answer
from ai8xtools.commands.emulate.output_maps import combined, output_maps
from ai8xtools.commands.loader.options import LoaderOptions
from ai8xtools.commands.loader.origin import made_again
from ai8xtools.diagnostics import DiagnosticError, refuse_errors
from ai8xtools.emulator import EmulatorError
from ai8xtools.emulator.comparison.words import compare_words
from ai8xtools.emulator.firmware.data_set import FirmwareOnData
from ai8xtools.synthesis.layout import InputPort
from ai8xtools.synthesis.network import Network
from ai8xtools.synthesis.options import ResolveOptions
from ai8xtools.synthesis.simulate import simulate
from ai8xtools.values import frozen
from device import Chip

if TYPE_CHECKING:
    from ai8xtools.frontends.graph.nodes import Graph
    from ai8xtools.synthesis.pipeline import Synthesis

Integers = NDArray[np.int64]
Result = TypeVar("Result")

_SAMPLE_REMEDY = (
    "Put it there, below the current folder: train.py --evaluate -8 --save-sample 1 makes it."
)
_WEIGHTS = ("cnn_load_weights", "cnn_load_bias")
_NO_OPERATORS = "no graph of operators"


@frozen
class Simulation:
    """The network that a project was made of; `name` is that of its description.

    `order` tells which values of the `outputs`, indices of layers, one after the other and each
    counted by channels, rows and columns, those of the program are.
    """

    name: str
    network: Network
    average_rounding: bool
    outputs: tuple[int, ...] = ()
    order: Integers | None = None

    def values(self, image: NDArray[np.integer]) -> Integers:
        """Return the outputs for an input in the order of the program, [value].

        Channels that only fill the last of several passes are left out.
        """
        shape = self.network.sample.shape
        channels = shape[0] if image.shape[1:] == shape[1:] else None
        sample = image[:channels].astype(np.int64).reshape(shape)
        network = replace(self.network, sample=sample)
        outputs = simulate(network, average_rounding=self.average_rounding).outputs
        delivered = self.outputs
        if network.exit is not None:
            delivered = tuple(layer.index for layer in network.delivered(outputs))
        values = np.concatenate([outputs[index].reshape(-1) for index in delivered])
        return values if self.order is None else values[self.order]


@frozen
class Operators:
    """A graph of operators with a `sample` of its input; results have so many bytes a value."""

    name: str
    graph: Graph
    sample: Integers
    widths: tuple[int, ...]


def delivered_by(
    simulation: Simulation, shape: tuple[int, int, int], sizes: Sequence[int]
) -> Simulation | str:
    """Return a simulation with all outputs, or why it is not that of a program with an input of
    this shape and as many values in each of its outputs."""
    network = simulation.network
    if network.exit is not None:
        return "the network may end early"
    marked = {layer.index for layer in network.outputs()}
    outputs = tuple(layer.index for layer in network.executed() if layer.index in marked)
    values = simulate(network, average_rounding=simulation.average_rounding).outputs
    if math.prod(network.sample.shape) != math.prod(shape) or [
        values[index].size for index in outputs
    ] != [*sizes]:
        return f"the input or the outputs of {simulation.name} are not those of the program"
    return replace(simulation, outputs=outputs)


def simulation_of(project: Path, firmware: FirmwareOnData) -> Simulation | str:
    """Return the simulation of a project, or why there is none that could be compared with."""
    simulation = built_again(project)
    if isinstance(simulation, str):
        return simulation
    return _suitable(simulation, firmware, project)


def built_again(project: Path, *files: str, stream: bool = False) -> Simulation | str:
    """Return the network that a project, or some of its `files`, name as their source, or why there
    is none; that of a `stream` only if it is asked for.
    """
    return made_again(project, partial(_options, stream=stream), _simulation, *files)


def operators_again(project: Path, *files: str) -> Operators | str | None:
    """Return the graph of operators that some files of a project name as their source, or why there
    is none; None if the source is no such graph.
    """
    found = made_again(project, _operator_options, lambda _, made: made or _NO_OPERATORS, *files)
    return None if found is _NO_OPERATORS else found


def synthesized_again(project: Path) -> Synthesis | str:
    """Return the words of the network that a project names as its source, or why there are none."""
    return made_again(project, _options, _synthesized)


def written_again(project: Path) -> Mapping[str, str | bytes] | str:
    """Return the files that the command of a project would write, or why there are none.

    They have the project's answer file, if it has one.
    """
    return made_again(project, _options, partial(_written, project))


def built_of(
    description: str,
    checkpoint: str | None,
    chip: Chip,
    input_shape: tuple[int, ...],
    *,
    average_rounding: bool,
    input_port: InputPort,
) -> Simulation | str:
    """Return the network of a description and a checkpoint, or why there is none.

    Without the sample of its data set it has random data of the `input_shape`.
    """
    from ai8xtools.synthesis.understand import understand

    options = ResolveOptions(
        checkpoint_file=checkpoint, sample_shape=input_shape, input_port=input_port,
        allow_streaming=True,
    )  # fmt: skip
    network, _, complaints = understand(description, chip, options)
    refuse_errors(complaints)
    return Simulation(Path(description).name, network, average_rounding)


def built_for_software(description: str, checkpoint: str | None) -> Simulation:
    """Return the network of a description and a checkpoint without the accelerator's limits."""
    files = ["--config-file", description]
    files += [] if checkpoint is None else ["--checkpoint-file", checkpoint]
    options, _ = _options(["--device", "MCU", "--prefix", "network", "--test-dir", ".", *files])
    try:
        return _simulation(options, alone=True)
    except DiagnosticError as error:
        complaints = [
            replace(one, remedy=_SAMPLE_REMEDY) if "--sample-input" in (one.remedy or "") else one
            for one in error.diagnostics
        ]
        raise DiagnosticError(complaints) from None


def _simulation(options: LoaderOptions, alone: bool) -> Simulation:
    network = _network(options, alone=alone)
    return Simulation(options.description_name, network, options.encode.average_rounding)


def _synthesized(options: LoaderOptions, alone: bool) -> Synthesis:
    from ai8xtools.synthesis.pipeline import synthesize

    if alone:
        raise EmulatorError("E881", "the project runs without the accelerator")
    return synthesize(options.config_file, options.chip, options.resolve, options.encode)


def _written(project: Path, options: LoaderOptions, alone: bool) -> Mapping[str, str | bytes]:
    from ai8xtools.commands.loader.create import embedded, synthesized

    if alone or options.rtl is not None:
        raise EmulatorError("E881", "the project has other files")
    files = embedded(options, synthesized(options)).files
    answer = project / FILE_NAME
    if answer.is_file() and answer.read_bytes() != files.get(FILE_NAME):
        raise EmulatorError("E881", "the network of the project has changed")
    return files


def _operator_options(words: Sequence[str]) -> tuple[LoaderOptions, Operators | None]:
    """Return what a command line asks for, and the graph of operators that it takes.

    Raises EmulatorError E881 for a stream of one.
    """
    from ai8xtools.commands.software.arguments import parse
    from ai8xtools.commands.software.graphs import source_of
    from ai8xtools.commands.software.operators import lowered

    software = parse(words)
    source = source_of(software.source, software)
    if source is None:
        return software.source, None
    if software.stream is not None:
        raise EmulatorError("E881", "the network is a stream")
    network, path, steps = lowered(software.source, source)
    widths = tuple(steps.tensors[one].bytes_per_value for one in steps.outputs)
    made = Operators(Path(path).name, network.operators, network.sample, widths)
    return replace(software.source, model=None, config_file=path), made  # no description


def _options(words: Sequence[str], *, stream: bool = False) -> tuple[LoaderOptions, bool]:
    """Return what a command line asks for, and whether that is without the accelerator.

    Raises EmulatorError E881 for what is no description, and for a stream unless `stream`.
    """
    if "--device=MCU" in words or ("--device", "MCU") in itertools.pairwise(words):
        from ai8xtools.commands.software.arguments import parse as parse_software
        from ai8xtools.commands.software.graphs import source_of

        software = parse_software(words)
        if software.qformat:
            raise EmulatorError(
                "E881", "the checkpoint holds the network, which no description has"
            )
        if software.stream is not None and not stream:
            raise EmulatorError("E881", "the network is a stream")
        if source_of(software.source, software) is not None:
            raise EmulatorError("E881", "the network is a graph of its own, not a description")
        return software.source, True
    from ai8xtools.commands.loader.arguments import parse

    return parse(words), False


def _network(options: LoaderOptions, *, alone: bool) -> Network:
    if alone:
        from ai8xtools.commands.software.planning import understood

        return understood(options, None)[0]
    from ai8xtools.synthesis.pipeline import examine

    return examine(options.config_file, options.chip, options.resolve, options.encode)[0]


def _has_its_weights(project: Path, firmware: FirmwareOnData) -> bool:
    """Tell whether the answer file says that kernels and biases are those of the project."""
    path = project / FILE_NAME
    if not os.path.lexists(path):
        return False
    words = compare_words(firmware.memory, read_answer(path))
    return not words.stranger and not any(word.phase in _WEIGHTS for word in words.wrong)


def _suitable(simulation: Simulation, firmware: FirmwareOnData, project: Path) -> Simulation | str:
    """Return a simulation if its outputs are those of the firmware, or why they are not."""
    sample = simulation.network.sample
    shape = firmware.input_shape
    squeezed = [tuple(n for n in size if n > 1) for size in (sample.shape, shape)]
    is_filled = sample.shape[0] < shape[0] and sample.shape[1:] == shape[1:]
    if squeezed[0] != squeezed[1] and not is_filled:
        return f"the description's input is {sample.shape}, the program's {shape}"
    maps = output_maps(project, firmware)
    if maps is None:
        return "it is not known in which order the program has the outputs"
    network = simulation.network
    marked = {layer.index for layer in network.outputs()}
    outputs = [layer.index for layer in network.executed() if layer.index in marked]
    if len(maps) == 1:
        outputs = [network.final.index]
    if len(outputs) != len(maps):
        return f"the program delivers {len(maps)} of {len(outputs)} outputs"
    simulation = replace(simulation, outputs=tuple(outputs), order=combined(maps))
    expected = simulation.values(sample)
    differs = bool((expected != firmware.sample_values[0]).any())
    if differs and firmware.sample_is_right and _has_its_weights(project, firmware):
        return f"{simulation.name} or its checkpoint has changed since the project was made"
    return simulation

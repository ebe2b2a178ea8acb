"""A real board on a data set: `emulate.py PROJECT --serial PORT --input DATA`.

Every output is compared with the same program in the emulator, and with the simulation of the
network. `--serve` puts the program behind a port of this computer instead.
Source: docs/applications.md, "A board on the desk".
"""

from __future__ import annotations

import contextlib
import statistics
import time
from collections.abc import Iterator
from pathlib import Path
from typing import NoReturn

import numpy as np
from numpy.typing import NDArray

from ai8xtools.bench.description import BenchDescription
from ai8xtools.bench.exchange import BenchBoard, BoardError, Line
from ai8xtools.bench.frames import MOST_BYTES
from ai8xtools.bench.ports import opened
from ai8xtools.commands.emulate.arguments import EmulateOptions
from ai8xtools.commands.emulate.data_set import (
    count_text,
    departures_of,
    inputs_of,
    summary,
)
from ai8xtools.commands.emulate.emulated_board import EmulatedBoard, check_bench, runner_of
from ai8xtools.commands.emulate.last_line import tell
from ai8xtools.commands.emulate.own_data import Samples, show_accuracy
from ai8xtools.commands.emulate.scores import check_labels
from ai8xtools.commands.emulate.simulation import Simulation, built_again, delivered_by
from ai8xtools.commands.emulate.trained_on import class_lines, trained_on
from ai8xtools.emulator import EmulatorError
from ai8xtools.reading.progress import tracked
from ai8xtools.reading.system import Terminal
from ai8xtools.reading.text import line

Integers = NDArray[np.int64]

_SHOWN = 5
_BITS_PER_BYTE = 10
_LEAST_SECONDS = 0.5
"""Of waiting for an answer, beside the time of the bytes."""
_RELAY_SECONDS = 0.002
_OTHERS = 4
"""How many bytes may be on the way besides those of a request and its answer, in frames."""


def emulate_board(project: Path, core: str | None, options: EmulateOptions) -> int:
    """Run a data set on the board at a port; return 1 if an output is not as it has to be.

    Raises BoardError: no answer (E886), another program (E887); InputError (E885): the port.
    """
    assert options.serial is not None
    check_bench(project, core, "--serial")
    with EmulatedBoard(runner_of(project, core, options)) as emulated:
        limit = options.time_limit_s
        twin = BenchBoard(emulated, f"{project} in the emulator", limit, limit, tries=1,
                     remedy="Give it more time with --time-limit.")  # fmt: skip
        inputs = inputs_of(options, twin.description.input, trained_on(project))
        _, labels, samples = inputs
        if labels is not None and samples is None and _is_class(twin.description):
            check_labels(labels, twin.description.outputs[0].channels, options.labels)
        with opened(options.serial, options.baud) as port:
            board = BenchBoard(port, options.serial, _patience(options.baud), options.time_limit_s)
            description, own = board.description, twin.description
            if description != own:
                raise BoardError(
                    "E887", f"the board has {_text(description)}, the project {_text(own)}",
                    options.serial, "Flash the program of this project.",
                )  # fmt: skip
            print(f"Board at {options.serial}: {_text(description)}")
            return _compare(project, options, board, twin, inputs)


def _is_class(description: BenchDescription) -> bool:
    """Whether a network has one output, with a value for each class."""
    return [one.size for one in description.outputs] == [description.outputs[0].channels]


def _compare(
    project: Path,
    options: EmulateOptions,
    board: BenchBoard,
    twin: BenchBoard,
    inputs: tuple[NDArray[np.int8], Integers | None, Samples | None],
) -> int:
    """Run all inputs on the board and its twin; print what they gave, and the verdict."""
    description, trained = board.description, trained_on(project)
    images, labels, samples = inputs
    began, pairs = time.monotonic(), []
    for number in tracked("Inputs", range(len(images))):
        pairs.append((_values(board, images[number]), _values(twin, images[number])))
    seconds = time.monotonic() - began
    values, emulated = (np.stack(one) for one in zip(*pairs, strict=True))
    print(f"{count_text(len(images))} in {seconds:.1f} s, with the emulator beside it; "
          f"requests repeated: {board.retries}, restarts of the board: {board.resets}")  # fmt: skip
    for line_of_times in _times(board, twin):
        print(line_of_times)
    simulation = _simulation(project, description)
    doubt = None
    if samples is not None and samples.trained.is_marked:
        doubt = _show_marks(simulation, description, values, samples, project)
    elif labels is not None and _is_class(description):
        doubt = show_accuracy(values, labels, samples, options.labels)
    else:
        for line in class_lines(values, trained):
            print(line)
    wrong = False
    for name, expected in (("the emulator", emulated), *_simulated(simulation, images)):
        departures = departures_of(expected, values)
        print(summary(name, len(images), departures))
        wrong |= bool(departures)
        for departure in departures[:_SHOWN]:
            print(f"  {departure.text(name)}")
    verdict = "FAIL" if wrong else f"PASS ({count_text(len(images))} on the board)"
    tell(verdict, doubt)
    return int(wrong)


def _values(board: BenchBoard, image: NDArray[np.int8]) -> Integers:
    """Return the integers of all outputs for an input [channel, row, column]."""
    data, values = board.infer(np.ascontiguousarray(image).tobytes()), []
    for output in board.description.outputs:
        values.append(np.frombuffer(data[: output.size_bytes], f"<i{output.bits // 8}"))
        data = data[output.size_bytes :]
    return np.concatenate(values).astype(np.int64)


def _simulation(project: Path, description: BenchDescription) -> Simulation | str:
    """Return the simulation of the network on a board, or why there is none."""
    simulation = built_again(project)
    if isinstance(simulation, str):
        return simulation
    return delivered_by(simulation, description.input, [one.size for one in description.outputs])


def _simulated(
    simulation: Simulation | str, images: NDArray[np.int8]
) -> Iterator[tuple[str, Integers]]:
    """Yield the name and the outputs of a simulation, if there is one."""
    if isinstance(simulation, str):
        print(f"note: not compared with the simulation of ai8xize.py: {simulation}")
        return
    expected = np.stack([simulation.values(image) for image in images])
    yield f"the simulation of {simulation.name}", expected


def _show_marks(
    simulation: Simulation | str,
    description: BenchDescription,
    values: Integers,
    samples: Samples,
    project: Path,
) -> str | None:
    """Print how well the outputs fit the marks, if it is known which output is which."""
    if isinstance(simulation, str):
        return None
    from ai8xtools.commands.emulate.marked import Map, show_marks  # loads torch

    maps, first = [], 0
    for index, one in zip(simulation.outputs, description.outputs, strict=True):
        part = values[:, first : first + one.size]
        shape = len(values), one.channels, one.rows, one.columns
        maps.append(Map(simulation.network.layer(index).name or "", part.reshape(shape)))
        first += one.size
    return show_marks(maps, samples, project)


def _times(board: BenchBoard, twin: BenchBoard) -> Iterator[str]:
    """Yield how long inferences took, if the board measures it."""
    measured, estimated = (statistics.median(one.microseconds) for one in (board, twin))
    if measured:
        beside = f"; estimated by the emulator: {estimated:,.0f} µs" if estimated else ""
        longest = max(board.microseconds)
        yield f"An inference took {measured:,.0f} µs (median; longest: {longest:,} µs){beside}"


def _patience(baud: int) -> float:
    """Return the seconds within which an answer comes."""
    return _LEAST_SECONDS + _OTHERS * MOST_BYTES * _BITS_PER_BYTE / baud


def _text(network: BenchDescription) -> str:
    shape = "x".join(map(str, network.input))
    outputs = ", ".join(
        f"{o.channels}x{o.rows}x{o.columns} of {o.bits} bits" for o in network.outputs
    )
    return f"network {line(network.name)}, input {shape}, output {outputs}"


def serve_board(project: Path, core: str | None, options: EmulateOptions) -> int:
    """Run the program behind a port of this computer until Ctrl-C.

    Raises EmulatorError (E805): this system has no such ports.
    """
    check_bench(project, core, "--serve")
    run = runner_of(project, core, options)
    terminal = Terminal.opened()
    if terminal is None:
        raise EmulatorError(
            "E805", "this system has no pseudo-terminals", "--serve", "Use a real board.",
        )  # fmt: skip
    print(f"Serial port: {terminal.name} (until Ctrl-C)", flush=True)
    with terminal, EmulatedBoard(run) as emulated, contextlib.suppress(KeyboardInterrupt):
        relay(emulated, terminal)
    tell("DONE (the board is switched off)")
    return 0


def relay(board: Line, others: Line) -> NoReturn:
    """Pass bytes on in both directions, until reading or writing raises."""
    while True:
        board.write(others.read(_RELAY_SECONDS))
        others.write(board.read(_RELAY_SECONDS))

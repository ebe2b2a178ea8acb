"""A real board on a data set: `emulate.py PROJECT --serial PORT --input DATA`.

Every output is compared with the same program in the emulator, and with the simulation of the
network. `--serve` puts the program behind a port of this computer instead.
Source: docs/applications.md, "A board on the desk".
"""

from __future__ import annotations

import time
from collections.abc import Iterator
from pathlib import Path
from typing import NoReturn

import numpy as np
from numpy.typing import NDArray

from ai8xtools.bench.description import Description
from ai8xtools.bench.exchange import Board, BoardError, Line
from ai8xtools.bench.frames import MOST_BYTES
from ai8xtools.bench.ports import opened
from ai8xtools.commands.emulate.arguments import EmulateOptions
from ai8xtools.commands.emulate.data_set import count_text, departures_of, inputs_of, summary
from ai8xtools.commands.emulate.emulated_board import EmulatedBoard, check_bench, runner_of
from ai8xtools.commands.emulate.last_line import tell
from ai8xtools.commands.emulate.own_data import show_accuracy
from ai8xtools.commands.emulate.simulation import Simulation, built_again, delivered_by
from ai8xtools.commands.emulate.trained_on import class_lines, trained_on
from ai8xtools.emulator import EmulatorError
from ai8xtools.reading.system import Terminal

Integers = NDArray[np.int64]

_SHOWN = 5
_BITS_PER_BYTE = 10
_LEAST_SECONDS = 0.5
"""Of waiting for an answer, beside the time of the bytes."""
_EMULATED_SECONDS = 600.0
_RELAY_SECONDS = 0.002
_OTHERS = 4
"""How many bytes may be on the way besides those of a request and its answer, in frames."""


def emulate_board(project: Path, core: str | None, options: EmulateOptions) -> int:
    """Run a data set on the board at a port; return 1 if an output is not as it has to be.

    Raises BoardError: no answer (E886), another program (E887); InputError (E885): the port.
    """
    assert options.serial is not None
    check_bench(project, "--serial")
    run = runner_of(project, core, options)
    with opened(options.serial, options.baud) as port, EmulatedBoard(run) as emulated:
        board = Board(port, options.serial, _patience(options.baud), options.time_limit_s)
        twin = Board(emulated, str(project), _EMULATED_SECONDS, _EMULATED_SECONDS)
        told = board.description
        if told != twin.description:
            raise BoardError(
                "E887", f"the board has {_text(told)}, the project {_text(twin.description)}",
                options.serial, "Flash the program of this project.",
            )  # fmt: skip
        print(f"Board at {options.serial}: {_text(told)}")
        return _compare(project, options, board, twin)


def _compare(project: Path, options: EmulateOptions, board: Board, twin: Board) -> int:
    told, trained = board.description, trained_on(project)
    images, labels, samples = inputs_of(options, told.input, trained)
    began = time.monotonic()
    pairs = [(_values(board, image), _values(twin, image)) for image in images]
    seconds = time.monotonic() - began
    values, emulated = (np.stack(one) for one in zip(*pairs, strict=True))
    print(f"{count_text(len(images))} in {seconds:.1f} s, with the emulator beside it; "
          f"requests repeated: {board.retries}, restarts of the board: {board.resets}")  # fmt: skip
    doubt = None
    if (
        labels is not None
        and len(told.outputs) == 1 == told.outputs[0].rows * told.outputs[0].columns
    ):
        doubt = show_accuracy(values, labels, samples, options.labels)
    else:
        for line in class_lines(values, trained):
            print(line)
    wrong = False
    for name, expected in (("the emulator", emulated), *_simulated(project, told, images)):
        departures = departures_of(expected, values)
        print(summary(name, len(images), departures))
        wrong |= bool(departures)
        for departure in departures[:_SHOWN]:
            print(f"  {departure.text(name)}")
    verdict = "FAIL" if wrong else f"PASS ({count_text(len(images))} on the board)"
    tell(verdict, doubt)
    return int(wrong)


def _values(board: Board, image: NDArray[np.int8]) -> Integers:
    """Return the integers of all outputs for an input [channel, row, column]."""
    data, values = board.infer(np.ascontiguousarray(image).tobytes()), []
    for output in board.description.outputs:
        values.append(np.frombuffer(data[: output.size_bytes], f"<i{output.bits // 8}"))
        data = data[output.size_bytes :]
    return np.concatenate(values).astype(np.int64)


def _simulated(
    project: Path, told: Description, images: NDArray[np.int8]
) -> Iterator[tuple[str, Integers]]:
    """Yield the name and the outputs of the simulation, if there is one."""
    simulation = built_again(project)
    if isinstance(simulation, Simulation):
        simulation = delivered_by(simulation, told.input, [o.size for o in told.outputs])
    if isinstance(simulation, Simulation):
        expected = np.stack([simulation.values(image) for image in images])
        yield f"the simulation of {simulation.name}", expected
    else:
        print(f"note: not compared with the simulation of ai8xize.py: {simulation}")


def _patience(baud: int) -> float:
    """Return the seconds within which an answer comes."""
    return _LEAST_SECONDS + _OTHERS * MOST_BYTES * _BITS_PER_BYTE / baud


def _text(told: Description) -> str:
    shape = "x".join(map(str, told.input))
    outputs = ", ".join(f"{o.channels}x{o.rows}x{o.columns} of {o.bits} bits" for o in told.outputs)
    return f"network {told.name}, input {shape}, output {outputs}"


def serve_board(project: Path, core: str | None, options: EmulateOptions) -> NoReturn:
    """Run the program behind a port of this computer until Ctrl-C.

    Raises EmulatorError (E805): this system has no such ports.
    """
    check_bench(project, "--serve")
    run = runner_of(project, core, options)
    terminal = Terminal.opened()
    if terminal is None:
        raise EmulatorError(
            "E805", "this system has no pseudo-terminals", "--serve", "Use a real board.",
        )  # fmt: skip
    print(f"Serial port: {terminal.name} (until Ctrl-C)", flush=True)
    with terminal, EmulatedBoard(run) as emulated:
        relay(emulated, terminal)


def relay(board: Line, line: Line) -> NoReturn:
    """Pass bytes on in both directions, until reading or writing raises."""
    while True:
        board.write(line.read(_RELAY_SECONDS))
        line.write(board.read(_RELAY_SECONDS))

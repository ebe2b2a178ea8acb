"""The firmware of a project on many inputs: `emulate.py DIR --input FILE` without main()."""

from __future__ import annotations

import time
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path

import numpy as np
from numpy.typing import NDArray

from ai8xtools.commands.emulate.alone import show_words
from ai8xtools.commands.emulate.arguments import EmulateOptions
from ai8xtools.commands.emulate.inputs import fitted, read_inputs, read_labels
from ai8xtools.commands.emulate.known_answer import answer_of, refusal
from ai8xtools.commands.emulate.last_line import tell
from ai8xtools.commands.emulate.output_maps import output_maps
from ai8xtools.commands.emulate.own_data import Samples, show_accuracy, test_samples
from ai8xtools.commands.emulate.runs import WRONG_REGISTERS, show_run
from ai8xtools.commands.emulate.simulation import Simulation, simulation_of
from ai8xtools.commands.emulate.trained_on import TrainedOn, class_lines, trained_on
from ai8xtools.emulator import NetworkAlone
from ai8xtools.emulator.firmware.data_set import KEEPS_ARRAYS, FirmwareOnData
from ai8xtools.reading.progress import tracked
from ai8xtools.values import frozen
from datasets.own.settings import kind_and_path

Integers = NDArray[np.int64]

_SHOWN, _SHOWN_ARRAYS = 5, 8
_PROGRESS_SECONDS = 2.0


@frozen
class OutputDeparture:
    """An input whose output differs: which value, and both values."""

    number: int
    value: int
    expected: int
    actual: int

    def text(self, path: str) -> str:
        """Say it in a sentence; `path` names the other side."""
        return (
            f"input {self.number}, value {self.value}: {path} {self.expected}, found {self.actual}"
        )


def emulate_data_set(project: Path, options: EmulateOptions) -> int:
    """Run the network of a project on each input of a file; return 1 if an output differs."""
    return run_on_data(project, options)[0]


def run_on_data(project: Path, options: EmulateOptions) -> tuple[int, Integers]:
    """Run the network of a project on each input; return the status and the outputs [N, values]."""
    assert options.input is not None
    network = NetworkAlone(
        project,
        options.chip,
        options.apb_base,
        replace(options.tree, flags=KEEPS_ARRAYS),
        options.time_limit_s,
    )
    for note in network.notes:
        print(f"note: {note}")
    trained = trained_on(project)
    images, labels, samples = inputs_of(options, network.input_shape, trained)
    check = answer_of(project, enabled=options.answer)
    if check is not None:
        check.watch_alone(network)
    try:
        firmware = FirmwareOnData(network, fast=options.fast)
        if check is not None and network.has_sample:
            check.compare_layers(firmware.first_run, firmware.memory)
        right = firmware.sample_is_right is not False
        show_run(firmware.first_run, firmware.memory, options, right)
        print("\n".join(_introduction(firmware, images)))
        start = time.process_time()
        values = _values(firmware, images)
        print(_speed(len(images), time.process_time() - start))
        if firmware.may_exit:
            print(_exits(firmware.cycles))
    finally:  # also, and above all, of a network that goes wrong
        show_words(check, network)
    doubt = None
    if samples is not None and trained is not None and trained.is_marked:
        from ai8xtools.commands.emulate.marked import by_maps, show_marks  # loads torch

        maps = by_maps(values, output_maps(project, firmware), project)
        doubt = show_marks(maps, samples, project)
    elif labels is None:
        for line in class_lines(values, trained):
            print(line)
    else:
        doubt = show_accuracy(values, labels, samples, options.labels)
    wrong = False
    for name, count, departures in _comparisons(project, options, firmware, images, values):
        print(summary(name, count, departures))
        wrong |= bool(departures)
        for departure in departures[:_SHOWN]:
            print(f"  {departure.text(name)}")
    reason = refusal(check, words_changed=options.words_changed)
    for text in (WRONG_REGISTERS if firmware.errors else None, reason):
        if text is not None:
            print(text)
    if not right:
        print("The output of the project's own sample is not as the project expects it.")
    failed = wrong or bool(firmware.errors) or not right or reason is not None
    verdict = "FAIL" if failed else f"DONE ({count_text(len(images))})"
    tell(verdict, doubt)
    return int(failed), values


def inputs_of(
    options: EmulateOptions, shape: tuple[int, int, int], trained: TrainedOn | None
) -> tuple[NDArray[np.int8], Integers | None, Samples | None]:
    """Return the inputs [N, C, H, W], their labels [N] if they are known, and where they come
    from if that is the user's own data."""
    assert options.input is not None
    if kind_and_path(str(options.input)):
        samples = test_samples(str(options.input), trained)
        for line in samples.notes:
            print(line)
        return fitted(samples.images, shape), samples.labels, samples
    how = None if trained is None else trained.preparation
    images = np.stack(read_inputs(options.input, shape, how))
    labels = None if options.labels is None else read_labels(options.labels, len(images))
    return images, labels, None


def _introduction(firmware: FirmwareOnData, images: NDArray[np.int8]) -> Iterator[str]:
    shape = "x".join(map(str, images.shape[1:]))
    yield f"Inputs: {len(images)} of {shape} (channels, rows, columns)"
    if firmware.fast:
        yield "The accelerator alone runs on them; the program has loaded the network."
    else:
        names = ", ".join(firmware.array_names[:_SHOWN_ARRAYS])
        if len(firmware.array_names) > _SHOWN_ARRAYS:
            names += f" and {len(firmware.array_names) - _SHOWN_ARRAYS} more arrays"
        yield f"load_input() copies them from {names}; the program runs for each of them."
    if not firmware.places.of_program:
        yield "note: the output is that of the last layer: no cnn_unload() copies it"


def _values(firmware: FirmwareOnData, images: NDArray[np.int8]) -> Integers:
    """Run the network on all inputs; show the progress where that takes time."""
    size = firmware.batch_size
    starts = tracked("Inputs", range(0, len(images), size))
    return np.concatenate([firmware.run(images[first : first + size]) for first in starts])


def _exits(cycles: Integers) -> str:
    """Tell how many inputs left the network early, by their cycles, and what that saves."""
    early, full = int(cycles.min()), int(cycles.max())
    mean = f"{cycles.mean():,.0f} cycles of the accelerator on average"
    if early == full:
        return f"Early exit: all inputs take the same way, {mean}"
    left = int((cycles == early).sum())
    share = f"{left} of {len(cycles)} inputs ({100 * left / len(cycles):.1f} %)"
    return (f"Early exit: {share} end there, after {early:,} cycles; {mean}, "
            f"{100 * cycles.mean() / full:.1f} % of {full:,}")  # fmt: skip


def _speed(count: int, seconds: float) -> str:
    return f"{count / max(seconds, 1e-9):.1f} inputs per second of processor time"


def _comparisons(
    project: Path,
    options: EmulateOptions,
    firmware: FirmwareOnData,
    images: NDArray[np.int8],
    values: Integers,
) -> Iterator[tuple[str, int, list[OutputDeparture]]]:
    """Compare with the accelerator alone and, for some inputs, with the loader's simulation."""
    if not firmware.fast and firmware.can_run_alone:
        words = firmware.alone(images)
        yield "the accelerator alone", len(images), departures_of(words, values)
    count = min(options.compare, len(images))
    simulation = simulation_of(project, firmware) if count else None
    if isinstance(simulation, Simulation):
        expected = np.stack([simulation.values(image) for image in images[:count]])
        yield f"the simulation of {simulation.name}", count, departures_of(expected, values[:count])
    elif simulation is not None:
        print(f"note: not compared with the simulation of ai8xize.py: {simulation}")


def departures_of(expected: Integers, actual: Integers) -> list[OutputDeparture]:
    """Return the first wrong value of each input whose output differs."""
    differs = expected != actual
    return [
        OutputDeparture(number, value, int(expected[number, value]), int(actual[number, value]))
        for number in np.flatnonzero(differs.any(axis=1)).tolist()
        for value in [int(np.argmax(differs[number]))]
    ]


def summary(name: str, count: int, departures: list[OutputDeparture]) -> str:
    """Say how many of so many outputs are as those of another side, which has a name."""
    if not departures:
        return f"As {name}: {count_text(count)}"
    return f"{len(departures)} of {count_text(count)} depart from {name}:"


def count_text(count: int) -> str:
    """Say how many inputs."""
    return "1 input" if count == 1 else f"{count} inputs"

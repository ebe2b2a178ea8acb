"""The first value that one accelerator computes otherwise than another."""

from __future__ import annotations

from collections.abc import Mapping

import numpy as np

from ai8xtools.answer import LayerAnswer
from ai8xtools.emulator import Accelerator, EmulatorError
from ai8xtools.emulator.comparison.places import channels_of
from ai8xtools.emulator.machine.accelerator import NetworkRun
from ai8xtools.emulator.machine.execution import LayerRun
from ai8xtools.emulator.state.memory import Memory
from ai8xtools.values import frozen


@frozen
class First:
    """The first layer that differs, by its hardware number, and how; None: the network stops."""

    layer: int | None
    text: str


def executed(memory: Memory) -> NetworkRun | EmulatorError:
    """Execute what a memory is loaded with, in a copy; an error is what stops it."""
    accelerator = Accelerator(memory.chip, memory.addresses.apb_base)
    accelerator.memory = memory.snapshot()
    try:
        return accelerator.run()
    except EmulatorError as error:
        return error


def first_difference(
    right: NetworkRun, actual: NetworkRun | EmulatorError, answers: Mapping[int, LayerAnswer]
) -> First | None:
    """Return where a run first departs from the right one; None if nowhere."""
    if isinstance(actual, EmulatorError):
        return First(None, f"the network does not run to its end: {actual.message}")
    for number, done in enumerate(right.layers):
        other = actual.layers[number] if number < len(actual.layers) else None
        layer = done.config.layer
        if other is None or other.config.layer != layer:
            return First(layer, "it is not executed")
        text = _difference(done, other, answers.get(layer))
        if text:
            return First(layer, text)
    if len(actual.layers) > len(right.layers):
        surplus = actual.layers[len(right.layers)].config.layer
        return First(surplus, "it is executed, though the network ends before")
    return None


def _difference(right: LayerRun, actual: LayerRun, answer: LayerAnswer | None) -> str:
    if right.output.shape != actual.output.shape:
        shapes = ("x".join(map(str, run.output.shape)) for run in (actual, right))
        return f"its output is {next(shapes)}, it should be {next(shapes)}"
    if right.config.output.wide != actual.config.output.wide:
        widths = (32 if run.config.output.wide else 8 for run in (actual, right))
        return f"its values have {next(widths)} bits, they should have {next(widths)}"
    wrong = right.output != actual.output
    if wrong.any():
        output, row, column = np.argwhere(wrong)[0].tolist()
        channels = channels_of(right.config, answer) if answer is not None else {}
        place = output, row, column
        return (
            f"channel {channels.get(output, output)}, row {row}, column {column} is "
            f"{int(actual.output[place])}, it should be {int(right.output[place])} "
            f"({int(wrong.sum())} of {wrong.size} values differ)"
        )
    places = (
        (right.place.instance, actual.place.instance),
        (right.place.lane, actual.place.lane),
        (right.words, actual.words),
    )
    if any((one != other).any() for one, other in places):
        return "it writes its output to another place"
    return ""

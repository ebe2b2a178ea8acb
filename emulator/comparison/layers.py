"""The data that layers left behind, against an answer file."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from answer import Answer, LayerAnswer, LayerForm
from answer.content import as_grid, hashed_channels, hashed_columns, hashed_rows
from device.chip import PROCESSORS_PER_INSTANCE
from emulator.machine.accelerator import NetworkRun
from emulator.machine.execution import LayerRun
from values import frozen

Integers = NDArray[np.int64]
_WORDS = 2**32
"""More than an instance or the ring of a stream has."""


@frozen
class Pixel:
    """A wrong value: `row` or `column` None where the file does not tell; values likewise."""

    channel: int
    row: int | None = None
    column: int | None = None
    expected: int | None = None
    found: int | None = None

    def __str__(self) -> str:
        named = (("channel", self.channel), ("row", self.row), ("column", self.column))
        place = ", ".join(f"{name} {value}" for name, value in named if value is not None)
        if self.expected is None:
            return place if self.found is None else f"{place}: found {self.found}"
        return f"{place}: expected {self.expected}, found {self.found}"


@frozen
class LayerDeparture:
    """The first layer whose output is not as the simulation had it.

    `pixel` is the first wrong value; None if the output is at another place (`text` tells) or the
    layer was not executed. `wrong_outputs` tells whether a layer with results departs.
    """

    layer: LayerAnswer
    pixel: Pixel | None
    text: str = ""

    def __str__(self) -> str:
        name = f" ({self.layer.name})" if self.layer.name else ""
        return (
            f"layer {self.layer.number}{name}{', ' if self.pixel else ' '}{self.pixel or self.text}"
        )


@frozen
class LayerComparison:
    """Which layers were compared, the first that departs, and those of the results that do."""

    compared: tuple[int, ...]
    missing: tuple[int, ...]
    first: LayerDeparture | None
    wrong_outputs: tuple[int, ...]


def compare_layers(run: NetworkRun, answer: Answer) -> LayerComparison:
    """Compare each executed layer, in the order of execution."""
    known = {layer.number: layer for layer in answer.layers}
    done = [layer for layer in run.layers if layer.config.layer in known]
    departures = [
        departure
        for layer in done
        if (departure := _departure(known[layer.config.layer], layer)) is not None
    ]
    executed = {layer.config.layer for layer in done}
    missing = tuple(number for number in known if number not in executed)
    return LayerComparison(
        tuple(layer.config.layer for layer in done),
        missing,
        departures[0] if departures else None,
        tuple(d.layer.number for d in departures if d.layer.is_output)
        + tuple(number for number in missing if known[number].is_output),
    )


def _departure(layer: LayerAnswer, done: LayerRun) -> LayerDeparture | None:
    wide = done.config.output.wide
    if wide != layer.wide:
        return LayerDeparture(layer, None, f"delivers {32 if wide else 8} bits")
    values, missing = _delivered(layer, done)
    if values is None:
        instance, lane, word = layer.places[missing].tolist()
        text = (
            f"does not deliver channel {missing} at instance {instance} lane {lane} "
            f"word 0x{word:x}, or not all of it"
        )
        return LayerDeparture(layer, None, text)
    pixel = _first_wrong(layer, values)
    return None if pixel is None else LayerDeparture(layer, pixel)


def _delivered(layer: LayerAnswer, done: LayerRun) -> tuple[Integers | None, int]:
    """Return the values of the channels, [channel, row, column], from the words that they are in.

    The hardware may see an image of another shape there. If a channel is not in its words, returns
    None and its number.
    """
    pixels = layer.shape[1] * layer.shape[2]
    lane = layer.places[:, 1]
    words = layer.places[:, 2:] + layer.step * np.arange(pixels)
    if layer.wide:
        words = words + lane[:, None]
    wanted = _keys(layer.places[:, 0], lane, words)
    found = _keys(done.place.instance, done.place.lane, done.words).reshape(-1)
    order = np.argsort(found, kind="stable")
    index = np.minimum(np.searchsorted(found, wanted, sorter=order), len(found) - 1)
    source = order[index]
    absent = (found[source] != wanted).any(axis=1)
    if absent.any():
        return None, int(np.argmax(absent))
    return done.output.reshape(-1)[source].reshape(layer.shape), 0


def _keys(instance: Integers, lane: Integers, words: Integers) -> Integers:
    """Return one number for each place in data memory, [channel, pixel]."""
    unit: Integers = instance * PROCESSORS_PER_INSTANCE + lane
    return unit[:, None] * _WORDS + words


def _first_wrong(layer: LayerAnswer, values: Integers) -> Pixel | None:
    """Return the first wrong value of a layer, as exactly as the file tells."""
    match layer.form:
        case LayerForm.FULL:
            return _of_values(layer, values)
        case LayerForm.CHANNELS:
            wrong = np.flatnonzero((hashed_channels(values) != layer.rows).any(axis=1))
            return Pixel(int(wrong[0])) if len(wrong) else None
        case LayerForm.ROWS | LayerForm.LINES:
            return _of_lines(layer, values)


def _of_values(layer: LayerAnswer, values: Integers) -> Pixel | None:
    assert layer.values is not None
    wrong = np.argwhere(values != layer.values)
    if not len(wrong):
        return None
    channel, row, column = wrong[0].tolist()
    place = channel, row, column
    return Pixel(*place, int(layer.values[place]), int(values[place]))


def _of_lines(layer: LayerAnswer, values: Integers) -> Pixel | None:
    """Compare the hashes of rows, then those of columns, which tell the pixel if only one row of
    the channel or one column is wrong."""
    assert layer.rows is not None
    wrong_rows = hashed_rows(values, layer.width) != layer.rows
    channels = np.flatnonzero(wrong_rows.any(axis=1))
    if not len(channels):
        return None
    channel = int(channels[0])
    lines = np.flatnonzero(wrong_rows[channel])
    same_grid = layer.width == layer.shape[2]
    if layer.columns is None:
        return Pixel(channel, int(lines[0]) if same_grid else None)
    found = hashed_columns(values, layer.width)
    columns = np.flatnonzero(found[channel] != layer.columns[channel])
    if len(lines) > 1 and len(columns) != 1:
        return Pixel(channel, int(lines[0]) if same_grid else None)
    line, column = int(lines[0]), int(columns[0]) if len(columns) else 0
    row, column = divmod(line * layer.width + column, layer.shape[2])
    value = int(as_grid(values, layer.width)[channel].reshape(-1)[row * layer.shape[2] + column])
    return Pixel(channel, row, column, found=value)

"""The data that layers left behind, against an answer file."""

from __future__ import annotations

import copy
import math
from typing import assert_never

import numpy as np
from numpy.typing import NDArray

from ai8xtools.answer import Answer, LayerAnswer, LayerForm
from ai8xtools.answer.content import as_grid, hashed_channels, hashed_columns, hashed_rows
from ai8xtools.emulator.decode.layer import decode_layer
from ai8xtools.emulator.decode.locations import OutputLocations, output_locations
from ai8xtools.emulator.machine.accelerator import NetworkRun
from ai8xtools.emulator.machine.execution import LayerRun
from ai8xtools.emulator.state.memory import Memory
from ai8xtools.values import frozen
from device.chip import PROCESSORS_PER_INSTANCE

Integers = NDArray[np.int64]
_WORDS = 2**32
"""More than an instance or the ring of a stream has."""


@frozen
class Pixel:
    """A wrong value: `row` or `column` None where the file does not give it; values likewise."""

    channel: int
    row: int | None = None
    column: int | None = None
    expected: int | None = None
    actual: int | None = None

    def __str__(self) -> str:
        named = (("channel", self.channel), ("row", self.row), ("column", self.column))
        place = ", ".join(f"{name} {value}" for name, value in named if value is not None)
        if self.expected is None:
            return place if self.actual is None else f"{place}: found {self.actual}"
        return f"{place}: expected {self.expected}, found {self.actual}"


@frozen
class LayerDeparture:
    """The first layer whose output differs from the simulation.

    `pixel` is the first wrong value; None if the output is at another place (`text` tells) or the
    layer was not executed. `wrong_outputs` is whether a layer with results departs.
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


def compare_layers(
    run: NetworkRun, answer: Answer, memory: Memory | None = None
) -> LayerComparison:
    """Compare each executed layer, in the order of execution.

    With `memory`, whose registers were executed, a layer also departs if it delivers channels
    beyond those that its correct registers ask for.
    """
    answers = {layer.number: layer for layer in answer.layers}
    done = [layer for layer in run.layers if layer.config.layer in answers]
    right = None if memory is None else _with_right_registers(memory, answer)
    departures = [
        departure
        for layer in done
        if (departure := _departure(answers[layer.config.layer], layer)) is not None
        or (departure := _surplus(answers[layer.config.layer], layer, right)) is not None
    ]
    executed = {layer.config.layer for layer in done}
    missing = tuple(number for number in answers if number not in executed)
    return LayerComparison(
        tuple(layer.config.layer for layer in done),
        missing,
        departures[0] if departures else None,
        tuple(d.layer.number for d in departures if d.layer.is_output)
        + tuple(number for number in missing if answers[number].is_output),
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


def _with_right_registers(memory: Memory, answer: Answer) -> Memory | None:
    """Return the memory with the registers of the answer; None if it has them already."""
    registers = answer.registers
    right = dict(zip(registers.addresses.tolist(), registers.values.tolist(), strict=True))
    if all(memory.registers.get(address, 0) == value for address, value in right.items()):
        return None
    corrected = copy.copy(memory)
    corrected.registers = memory.registers | right
    return corrected


def _surplus(layer: LayerAnswer, done: LayerRun, right: Memory | None) -> LayerDeparture | None:
    """Describe outputs that a layer delivers beyond those that its correct registers ask for."""
    if right is None:
        return None
    config = decode_layer(right, layer.number)
    expected = output_locations(config)
    most_channels = max(len(expected.word), layer.shape[0])
    most_pixels = max(math.prod(config.output_size), math.prod(layer.shape[1:]))
    channels, pixels = done.words.shape
    places = {*_places(expected), *map(tuple, layer.places.tolist())}
    elsewhere = next((place for place in _places(done.place) if place not in places), None)
    if channels > most_channels or elsewhere is not None:
        instance, lane, word = elsewhere or _places(done.place)[most_channels]
        text = f"delivers another channel at instance {instance} lane {lane} word 0x{word:x}"
        return LayerDeparture(layer, None, text)
    if pixels > most_pixels:
        return LayerDeparture(layer, None, f"delivers {pixels} pixels, not {most_pixels}")
    return None


def _places(place: OutputLocations) -> list[tuple[int, int, int]]:
    columns = place.instance.tolist(), place.lane.tolist(), place.word.tolist()
    return list(zip(*columns, strict=True))


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
    expected = _keys(layer.places[:, 0], lane, words)
    actual = _keys(done.place.instance, done.place.lane, done.words).reshape(-1)
    order = np.argsort(actual, kind="stable")
    index = np.minimum(np.searchsorted(actual, expected, sorter=order), len(actual) - 1)
    source = order[index]
    absent = (actual[source] != expected).any(axis=1)
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
        case _:
            assert_never(layer.form)


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
    hashes = hashed_columns(values, layer.width)
    columns = np.flatnonzero(hashes[channel] != layer.columns[channel])
    if min(len(lines), len(columns)) != 1:
        return Pixel(channel, int(lines[0]) if same_grid else None)
    line, column = int(lines[0]), int(columns[0])
    row, column = divmod(line * layer.width + column, layer.shape[2])
    value = int(as_grid(values, layer.width)[channel].reshape(-1)[row * layer.shape[2] + column])
    return Pixel(channel, row, column, actual=value)

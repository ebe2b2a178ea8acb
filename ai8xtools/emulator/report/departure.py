"""Where the results of a run first depart from what they should be.

Two sources tell what they should be: the words that a program or a recording expects, and what a
simulation computed for each layer.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence

import numpy as np
from numpy.typing import NDArray

from ai8xtools.emulator.bits import WORD_BITS, bytes_at, signed
from ai8xtools.emulator.machine.accelerator import NetworkRun
from ai8xtools.emulator.machine.execution import LayerRun
from ai8xtools.emulator.words.addresses import DATA, INSTANCES_PER_GROUP, AddressMap
from ai8xtools.values import frozen

Integers = NDArray[np.int64]


@frozen
class Departure:
    """One wrong value: the layer that wrote it, which of its values, its address, both values.

    `channel` counts the outputs of the layer from lane 0 of its first data memory instance on.
    """

    layer: LayerRun
    channel: int
    row: int
    column: int
    address: int
    expected: int
    actual: int

    def __str__(self) -> str:
        return (
            f"layer {self.layer.config.layer}, channel {self.channel}, row {self.row}, "
            f"column {self.column} (0x{self.address:08x}): expected {self.expected}, "
            f"found {self.actual}"
        )


@frozen
class SimulatedChannel:
    """What a simulation says of one channel: int64 [row, column], and where it should be.

    `instance` (0 to 15), `lane` and `word` tell the place of its first pixel.
    """

    instance: int
    lane: int
    word: int
    values: Integers


def departure_of_words(
    run: NetworkRun, addresses: AddressMap, wrong: Iterable[tuple[int, int, int]]
) -> Departure | None:
    """Return the first departure among wrong words of data memory: address, expected, found.

    The first is the one of the earliest layer, then channel, row and column. None if no layer wrote
    any of the words.
    """
    order = {done.config.layer: number for number, done in enumerate(run.layers)}
    departures = [d for word in wrong for d in _in_word(run, addresses, *word)]
    return min(
        departures,
        key=lambda d: (order[d.layer.config.layer], d.channel, d.row, d.column),
        default=None,
    )


def departure_of_layers(
    run: NetworkRun, addresses: AddressMap, simulated: Mapping[int, Sequence[SimulatedChannel]]
) -> Departure | str | None:
    """Return where a run first departs from a simulation, by hardware layer; None if nowhere.

    A channel that a layer does not deliver at all is described in words.
    """
    for done in run.layers:
        for number, channel in enumerate(simulated.get(done.config.layer, ())):
            place = done.place
            at = (place.instance, place.lane, place.word)
            channel_place = (channel.instance, channel.lane, channel.word)
            here = np.flatnonzero(
                np.logical_and.reduce([a == b for a, b in zip(at, channel_place, strict=True)])
            )
            values = done.output[here[0]] if len(here) else None
            if values is None or values.shape != channel.values.shape:
                return (
                    f"layer {done.config.layer} does not deliver channel {number} at instance "
                    f"{channel.instance} lane {channel.lane} word {channel.word}"
                )
            if (values != channel.values).any():
                row, column = (int(i) for i in np.argwhere(values != channel.values)[0])
                pixel = row * values.shape[1] + column
                word = int(done.words[here[0], pixel])
                chip = addresses.chip
                return Departure(
                    done,
                    number,
                    row,
                    column,
                    addresses.apb_base + chip.data_address(channel.instance, 4 * word),
                    int(channel.values[row, column]),
                    int(values[row, column]),
                )
    return None


def outputs_at(
    run: NetworkRun, addresses: AddressMap, address: int
) -> Iterator[tuple[LayerRun, list[int], int]]:
    """Yield the layers that wrote the data word at an address, the last first.

    With each come the outputs that the word holds and the pixel.
    """
    group, area, offset = (int(part[0]) for part in addresses.split(np.array([address])))
    if area != DATA:
        return
    unit, rest = divmod(offset, addresses.chip.instance_stride)
    instance, word = group * INSTANCES_PER_GROUP + unit, rest // 4
    for done in reversed(run.layers):
        place, output = done.place, done.config.output
        pixels, step = done.output[0].size, output.step * output.passes
        distance = word - place.word - (place.lane if output.wide else 0)
        held = (place.instance == instance) & (distance % step == 0)
        held &= (distance >= 0) & (distance < pixels * step)
        numbers = np.flatnonzero(held).tolist()
        if numbers:
            yield done, numbers, int(distance[numbers[0]]) // step


def _in_word(
    run: NetworkRun, addresses: AddressMap, address: int, expected: int, actual: int
) -> Iterator[Departure]:
    """Yield the wrong values in a word, as the last layer that wrote it placed them."""
    for done, numbers, pixel in outputs_at(run, addresses, address):
        row, column = divmod(pixel, done.output.shape[2])
        for number in numbers:
            if done.config.output.wide:
                values = signed(expected, WORD_BITS), signed(actual, WORD_BITS)
            else:
                lane = int(done.place.lane[number])
                pair = bytes_at(expected, lane, 1), bytes_at(actual, lane, 1)
                values = signed(pair[0], 8), signed(pair[1], 8)
            if values[0] != values[1]:
                yield Departure(done, number, row, column, address, *values)
        return

"""Biases that differ: of which channel, or that they only stand in other places."""

from __future__ import annotations

from collections.abc import Iterator, Mapping

import numpy as np
from numpy.typing import NDArray

from ai8xtools.answer import LayerAnswer
from ai8xtools.emulator.comparison.places import channels_of, layer_bias_places
from ai8xtools.emulator.decode.weights import bias_values
from ai8xtools.emulator.differences.difference import Difference, Subject
from ai8xtools.emulator.differences.side import LoadedWords
from ai8xtools.emulator.errors import EmulatorError

Integers = NDArray[np.int64]


def bias_differences(
    theirs: LoadedWords, ours: LoadedWords, answers: Mapping[int, LayerAnswer]
) -> Iterator[Difference]:
    """Yield biases that differ by layer and channel."""
    differing = np.argwhere(theirs.memory.bias != ours.memory.bias)
    size = ours.memory.bias.shape[1]
    keys, explained = differing[:, 0] * size + differing[:, 1], np.zeros(len(differing), np.bool_)
    if not len(differing):
        return
    for number in sorted({*theirs.layers, *ours.layers}):
        places = _places(theirs, number), _places(ours, number)
        touched = np.zeros(len(keys), np.bool_)
        for place in places:
            if place is not None:
                group, index = (part[place[1] >= 0] for part in place)
                touched |= np.isin(keys, group * size + index)
        if touched.any():
            explained |= touched
            answer = answers.get(number)
            name = f"layer {number}{f' ({answer.name})' if answer and answer.name else ''}"
            for text in _texts(theirs, ours, number, places, answer):
                yield Difference(Subject.BIASES, f"{name}{text}")
    for group, index in differing[~explained].tolist():
        there, here = (int(side.memory.bias[group, index]) for side in (theirs, ours))
        address = ours.memory.addresses.apb_base + ours.memory.chip.bias_address(group, index)
        yield Difference(
            Subject.UNEXPLAINED,
            f"0x{address:08x} (group {group} bias {index}): there {there}, here {here}: no layer's",
        )


def _places(side: LoadedWords, number: int) -> tuple[Integers, Integers] | None:
    """Return group and index of each bias of a layer; None if the project has no such layer."""
    config = side.layers.get(number)
    if config is None:
        return None
    order = [*side.layers]
    following = order[order.index(number) + 1 :][:1]
    try:
        group, index = layer_bias_places(
            side.memory, config, side.layers[following[0]] if following else None
        )
    except (EmulatorError, ValueError, IndexError):
        return None
    return np.asarray(group), np.asarray(index)


def _texts(
    theirs: LoadedWords,
    ours: LoadedWords,
    number: int,
    places: tuple[tuple[Integers, Integers] | None, tuple[Integers, Integers] | None],
    answer: LayerAnswer | None,
) -> Iterator[str]:
    one, two = places
    config = ours.layers.get(number)
    if one is None or two is None or config is None:
        yield f": its biases can only be read {'here' if one is None else 'there'}"
        return
    there, here = bias_values(theirs.memory, *one), bias_values(ours.memory, *two)
    if there.shape != here.shape:
        yield f": there it has {there.size} biases, here {here.size}"
        return
    wrong = np.flatnonzero((there != here).reshape(-1)).tolist()
    if not wrong:
        yield ": the same biases in other places of the bias memory"
    channels = channels_of(config, answer) if answer and config.kind.sums_channels else {}
    for output in wrong:
        channel = channels.get(output, output)
        yield (
            f", channel {channel}: there {int(there.reshape(-1)[output])}, here "
            f"{int(here.reshape(-1)[output])}"
        )

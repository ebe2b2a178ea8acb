"""The mapping from the values of a program's result to a layer's output."""

from __future__ import annotations

import os
from collections.abc import Sequence
from pathlib import Path

import numpy as np
from numpy.typing import NDArray

from ai8xtools.answer import FILE_NAME, LayerAnswer, read_answer
from ai8xtools.emulator.firmware.data_set import FirmwareOnData
from ai8xtools.emulator.firmware.repeated import OutputPlaces, ResultPlaces
from ai8xtools.values import frozen

Integers = NDArray[np.int64]

_INSTANCE = 2**32
"""More bytes than an instance of data memory has."""


@frozen
class OutputMap:
    """An output of a layer: `order` tells which of its values, counted by channels, rows and
    columns of its `shape`, those of the program are. `name` is that of the layer, if it is known.
    """

    name: str
    shape: tuple[int, int, int]
    order: Integers


def output_maps(project: Path, firmware: FirmwareOnData) -> list[OutputMap] | None:
    """Return the outputs in the order of the program's values; None if they are not known.

    One value for each channel comes in their order; of images the answer file tells where each
    pixel is.
    """
    path, places = project / FILE_NAME, firmware.places
    answers = read_answer(path).layers if os.path.lexists(path) else ()
    named = {layer.number: layer for layer in answers if layer.is_output}
    maps = []
    for output in places.outputs:
        layer = named.get(output.layer)
        if layer is not None:
            order = _order_of(layer, output, places)
            if order is None:
                return None
            maps.append(OutputMap(layer.name, layer.shape, order))
        elif firmware.first_run.layers[-1].config.output_size == (1, 1) == (len(places.outputs), 1):
            count = firmware.sample_values.shape[1]
            maps.append(OutputMap("", (count, 1, 1), np.arange(count)))
        else:
            return None
    return maps


def combined(maps: Sequence[OutputMap]) -> Integers:
    """Return which values, of all outputs one after the other, those of the program are."""
    firsts = np.cumsum([0, *(int(np.prod(output.shape)) for output in maps)])
    pairs = zip(maps, firsts[:-1], strict=True)
    return np.concatenate([output.order + first for output, first in pairs])


def _order_of(layer: LayerAnswer, output: OutputPlaces, places: ResultPlaces) -> Integers | None:
    pixels = layer.step * np.arange(layer.shape[1] * layer.shape[2])
    lane = layer.places[:, 1:2]
    offset = 4 * (layer.places[:, 2:] + pixels + (lane if layer.wide else 0))
    offset = offset + (0 if layer.wide else lane)
    stored = (layer.places[:, :1] * _INSTANCE + offset).reshape(-1)
    chosen = output.positions[:: 4 if layer.wide else 1]
    expected = places.instance[chosen] * _INSTANCE + places.offset[chosen]
    order = np.argsort(stored)
    indices: Integers = order[
        np.minimum(np.searchsorted(stored, expected, sorter=order), len(stored) - 1)
    ]
    return indices if np.array_equal(stored[indices], expected) else None

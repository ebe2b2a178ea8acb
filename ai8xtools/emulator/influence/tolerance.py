"""How far values may depart before a result changes, from the results backwards.

A tolerance says how far each value of an array may go up and down, all of them at the same time,
without a change of any result; it is infinite where no result depends on the value. Tolerances are
lower bounds. All numbers are integers in float64; the last axis of every array counts the inputs,
of which there is one.
"""

from __future__ import annotations

from typing import Any, assert_never

import numpy as np
from numpy.typing import NDArray

from ai8xtools.emulator.decode.config import ActivationFunction, Input, LayerConfig, Output
from ai8xtools.emulator.machine.arithmetic import SHIFT_UNIT, pooling_places
from ai8xtools.values import frozen

Floats = NDArray[np.float64]

_LOWEST, _HIGHEST = -128, 127


@frozen
class Tolerance:
    """How far values may go up and down; both arrays have the shape of the values."""

    up: Floats
    down: Floats

    @classmethod
    def free(cls, shape: tuple[int, ...]) -> Tolerance:
        """Return the tolerance of values on which nothing depends."""
        return cls(np.full(shape, np.inf), np.full(shape, np.inf))

    def free_or_none(self) -> Tolerance:
        """Return the same, but no departure of values on which something depends."""
        way = np.where(np.isinf(self.up) & np.isinf(self.down), np.inf, 0)
        return Tolerance(way, way)

    def limit(self, place: Any, up: Floats, down: Floats) -> None:
        """Limit the tolerance of some of the values; places may occur more than once."""
        np.minimum.at(self.up, place, up)
        np.minimum.at(self.down, place, down)

    def at(self, place: Any) -> Tolerance:
        """Return the tolerance of some of the values."""
        return Tolerance(self.up[place], self.down[place])

    def shaped(self, *shape: int) -> Tolerance:
        """Return the same in another shape."""
        return Tolerance(self.up.reshape(shape), self.down.reshape(shape))


def of_sums(sums: Floats, tolerance: Tolerance, output: Output) -> Tolerance:
    """Return how far sums may depart, given how far the outputs may that are made of them."""
    if output.wide:
        return tolerance.free_or_none()
    bits = SHIFT_UNIT - output.shift
    unit, half = 2.0**bits, 2.0 ** (bits - 1) if bits > 0 else 0.0
    value = np.clip(np.floor((sums + half) / unit), _LOWEST, _HIGHEST)
    low, high = _allowed(value, tolerance, output.activation)
    top = np.where(high >= _HIGHEST, np.inf, np.ceil((high + 1) * unit - half) - 1)
    bottom = np.where(low <= _LOWEST, -np.inf, np.ceil(low * unit - half))
    return Tolerance(top - sums, sums - bottom)


def _allowed(
    value: Floats, tolerance: Tolerance, activation: ActivationFunction
) -> tuple[Floats, Floats]:
    """Return the range within which values may move before the activation."""
    match activation:
        case ActivationFunction.NONE:
            return value - tolerance.down, value + tolerance.up
        case ActivationFunction.RELU:
            result = np.maximum(value, 0)
            low = result - tolerance.down
            return np.where(low <= 0, -np.inf, low), result + tolerance.up
        case ActivationFunction.ABS:
            result = np.minimum(np.abs(value), _HIGHEST)
            least, most = result - tolerance.down, result + tolerance.up
            most = np.where(most >= _HIGHEST, np.inf, most)
            least = np.where(least <= 0, -most, least)  # then the sign does not matter
            return np.where(value >= 0, least, -most), np.where(value >= 0, most, -least)
        case _:
            assert_never(activation)


def of_image(sums: Tolerance, magnitudes: Floats, config: LayerConfig) -> Tolerance:
    """Return how far the image [channel, row, column, 1] may depart that a layer's kernels meet.

    `sums` is the tolerance of its sums [output, ...], `magnitudes` [output] the sum of the
    magnitudes of each output's kernels: all values of a window together may reach that far.
    """
    way = np.minimum(sums.up, sums.down)
    factors = magnitudes[:, None, None, None]
    share = np.where(factors > 0, np.floor(way / np.maximum(factors, 1)), np.inf)
    if config.kind.sums_channels:
        share = share.min(axis=0, keepdims=True)
    rows, columns = config.output_size
    (pad_rows, pad_columns), shape = config.input.pad, config.kernels.shape
    size = rows + shape[0] - 1, columns + shape[1] - 1
    result = np.full((len(share), *size, 1), np.inf)
    for i, j in np.ndindex(shape):
        here = result[:, i : i + rows, j : j + columns]
        np.minimum(here, share, out=here)
    result = result[:, pad_rows : size[0] - pad_rows, pad_columns : size[1] - pad_columns]
    if config.transposed:
        result = result[:, ::2, ::2]
    return Tolerance(result, result)


def of_operands(operands: NDArray[np.integer], image: Tolerance, inputs: Input) -> Tolerance:
    """Return how far operands [operand, channel, row, column, 1] may depart.

    `image` is the tolerance of what becomes of them. Nothing is known of averages and of several
    operands but that some are free.
    """
    values: Floats = operands[0].astype(np.float64)
    result = Tolerance.free(values.shape)
    places = pooling_places(inputs)
    if inputs.pooling and inputs.max_pool and inputs.operands == 1:
        windows = np.stack([values[place] for place in places])
        largest, winner = windows.max(axis=0), windows.argmax(axis=0)
        ways = [
            (largest + image.up - window, np.where(winner == number, image.down, np.inf))
            for number, window in enumerate(windows)
        ]
    else:
        if inputs.operands > 1 or inputs.pooling:
            image = image.free_or_none()
        ways = [(image.up, image.down)] * len(places)
    for place, (up, down) in zip(places, ways, strict=True):
        for target, way in ((result.up[place], up), (result.down[place], down)):
            np.minimum(target, way, out=target)
    return Tolerance(*(np.broadcast_to(way, operands.shape) for way in (result.up, result.down)))

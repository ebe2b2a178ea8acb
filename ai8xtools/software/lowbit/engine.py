"""The engine in Python: integers only, the same as the C."""

from __future__ import annotations

from typing import assert_never

import numpy as np
from numpy.typing import NDArray

from ai8xtools.integers import kernels
from ai8xtools.quantization.lowbit import unpack
from ai8xtools.software.lowbit.network import (
    IMAGE,
    WINDOW,
    Dense,
    DepthwiseChain,
    LowBitNetwork,
    Windows,
)
from ai8xtools.software.lowbit.requantize import Integers, requantize
from ai8xtools.values import frozen


@frozen
class LayerResults:
    """The results of a layer: sums, and the activations after it (none after the last one)."""

    name: str
    sums: Integers
    activations: Integers | None


@frozen
class Run:
    """All layers of a network for some inputs, and the class of each: the first greatest sum."""

    layers: tuple[LayerResults, ...]
    classes: Integers


def input_codes(image: NDArray[np.floating]) -> NDArray[np.int8]:
    """Return a picture as the engine takes it: scaled so that the greatest magnitude is 127.

    Raises ValueError for a picture of zeros only or one that is not finite.
    """
    greatest = float(np.abs(image).max())
    if not 0 < greatest < np.inf:
        raise ValueError("a picture needs a value other than zero, and finite ones only")
    codes: NDArray[np.int8] = np.clip(np.rint(127 * image / greatest), -128, 127).astype(np.int8)
    return codes


def run(network: LowBitNetwork, inputs: NDArray[np.int8]) -> Run:
    """Run a network on inputs [number, bytes]."""
    layers: list[LayerResults] = []
    values = inputs.reshape(len(inputs), -1).astype(np.int64)
    match network.stem:
        case None:
            pass
        case DepthwiseChain() as chain:
            sums = convolved(chain, values)
            values = requantize(sums, network.rule).values
            layers.append(LayerResults("cnn", sums, values))
        case Windows() as windows:
            results = _windowed(network, windows, values)
            layers += results
            values = requantize(results[-1].sums, network.rule).values
        case _:
            assert_never(network.stem)
    for layer in network.layers:
        sums = multiplied(layer, values, network.fine)
        last = layer is network.layers[-1]
        values = sums if last else requantize(sums, network.rule).values
        layers.append(LayerResults(f"L{layer.identifier}", sums, None if last else values))
    return Run(tuple(layers), values.argmax(axis=1))


def integers(layer: Dense, fine: bool = False) -> Integers:
    """Return the weights [outputs, inputs] as the engine multiplies them."""
    table = layer.encoding.table if fine else layer.encoding.values
    return np.array(table)[unpack(layer.words, layer.inputs, layer.encoding)]


def multiplied(layer: Dense, values: Integers, fine: bool = False) -> Integers:
    """Return the sums [number, outputs]; inputs that only fill a row count as zero."""
    weights = integers(layer, fine)[:, : values.shape[1]]
    return kernels.multiplied(values, weights)


def convolved(chain: DepthwiseChain, images: Integers) -> Integers:
    """Return the pooled sums [number, 4 * channels], channel by channel."""
    first, second, third = (kernel.astype(np.int64) for kernel in chain.kernels)
    planes = np.repeat(images.reshape(-1, 1, IMAGE, IMAGE), chain.channels, axis=1)
    planes = _pooled(_convolved(_convolved(planes, first, chain.shift), second, chain.shift))
    planes = _pooled(_convolved(planes, third, chain.shift))
    return planes.reshape(len(images), -1)


def _convolved(planes: Integers, weights: Integers, shift: int) -> Integers:
    windows = kernels.Windows.covering(planes.shape, (3, 3))
    sums = kernels.convolved(planes, weights[:, None], windows, len(weights))
    return np.maximum(sums, 0) >> shift


def _pooled(planes: Integers) -> Integers:
    return kernels.maxima(planes, kernels.Windows.covering(planes.shape, (2, 2), (2, 2)))


def _windowed(network: LowBitNetwork, windows: Windows, images: Integers) -> list[LayerResults]:
    """Return the layers of the windows; the sums of the last one are joined window by window."""
    pictures = images.reshape(-1, IMAGE, IMAGE)
    count, number = len(windows.positions), len(images)
    values = np.stack(
        [
            pictures[:, row : row + WINDOW, column : column + WINDOW].reshape(number, -1)
            for row, column in windows.positions
        ],
        axis=1,
    )
    layers = []
    for place, row in enumerate(windows.layers):
        each = row * count if windows.shared else row
        parts = [multiplied(each[i], values[:, i], network.fine) for i in range(count)]
        sums = np.stack(parts, axis=1)
        if place == len(windows.layers) - 1:
            layers.append(LayerResults(f"window layer {place}", sums.reshape(number, -1), None))
            break
        tokens = requantize(sums.reshape(number * count, -1), network.window_rule).values
        values = tokens.reshape(number, count, -1)
        layers.append(LayerResults(f"window layer {place}", sums, values))
    return layers

"""A network on expressions: the fingerprint of every value that it computes."""

from __future__ import annotations

from collections.abc import Callable, Mapping

import numpy as np

from ai8xtools.emulator.proof.fingerprints import LANES, PRIME, Fingerprints, Mixer
from ai8xtools.emulator.proof.machine import combined, finished, pooled
from ai8xtools.integers.execution import execute
from ai8xtools.integers.kernels import reduced
from ai8xtools.reading.progress import progress
from ai8xtools.synthesis.network import DATA_BUFFER, NETWORK_INPUT, Layer, Network, Tensor
from ai8xtools.synthesis.simulate.operators import accumulate
from ai8xtools.synthesis.simulate.pooling import windows_of
from ai8xtools.synthesis.simulate.simulator import nodes_of
from device.chip import BIAS_UNIT


def network_fingerprints(
    network: Network,
    image: Fingerprints,
    mixer: Mixer,
    *,
    average_rounding: bool,
    earlier: Mapping[int, Fingerprints] | None = None,
) -> Mapping[int, Fingerprints]:
    """Return the fingerprints of the output of every layer, [channel, row, column, lane].

    `image` are those of the input, `earlier` what the inference before has returned.
    """
    values: dict[int, Fingerprints] = {NETWORK_INPUT: image}
    if network.buffer is not None:
        shape = network.buffer.channels, network.buffer.entries, network.buffer.width, LANES
        values[DATA_BUFFER] = (earlier or {}).get(DATA_BUFFER, np.zeros(shape, np.int64))

    def compute(layer: Layer, data: Fingerprints) -> Fingerprints:
        advance(1)
        if layer.buffer_shift:
            return data
        rounding = average_rounding and not layer.operator.one_dimensional
        return _of_layer(data, layer, mixer, rounding=rounding)

    with progress("Layers of the network", len(network.simulated)) as advance:
        return execute(nodes_of(network, compute), values)


def _by_lane(compute: Callable[[int], Tensor]) -> Fingerprints:
    return np.stack([compute(lane) for lane in range(LANES)], axis=-1)


def _of_layer(data: Fingerprints, layer: Layer, mixer: Mixer, *, rounding: bool) -> Fingerprints:
    before, after = layer.in_crop
    data = data[:, before : data.shape[1] - after]
    values = data.reshape(layer.operands, -1, *layer.in_dim, LANES)
    operation = layer.combination or ""
    if layer.combination and not layer.pool_first:
        values = combined(values, operation, mixer)[None]
    values = np.stack([_pooled(value, layer, mixer, rounding=rounding) for value in values])
    value = combined(values, operation, mixer)
    if layer.flatten:
        value = value.reshape(-1, 1, 1, LANES)
    if not layer.has_weights:
        return value
    lanes = np.ascontiguousarray(np.moveaxis(value, -1, 0))
    sums = _by_lane(lambda lane: accumulate(lanes[lane], layer))
    if layer.bias is not None:
        sums += mixer.constants(BIAS_UNIT * layer.bias)[:, None, None]
    activation = "none" if layer.activation is None else layer.activation.value.lower()
    return finished(sums % PRIME, wide=layer.output_width == 32, shift=layer.shift,
                    activation=activation, mixer=mixer)  # fmt: skip


def _pooled(image: Fingerprints, layer: Layer, mixer: Mixer, *, rounding: bool) -> Fingerprints:
    pooling = layer.pooling
    windows = windows_of(pooling, layer.pooled_dim)
    sums = np.moveaxis(reduced(np.moveaxis(image, -1, 0), windows, np.add), 0, -1) % PRIME
    count = pooling.window[0] * pooling.window[1]
    return pooled(sums, count, maximum=not pooling.average, rounding=rounding, mixer=mixer)

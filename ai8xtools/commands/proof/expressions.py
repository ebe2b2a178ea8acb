"""A network on expressions: the fingerprint of every value that it computes."""

from __future__ import annotations

from collections.abc import Callable, Mapping

import numpy as np

from ai8xtools.emulator.proof.fingerprints import LANES, PRIME, Fingerprints, Mixer
from ai8xtools.emulator.proof.machine import combined, finished, pooled
from ai8xtools.synthesis.network import DATA_BUFFER, NETWORK_INPUT, Layer, Network, Tensor
from ai8xtools.synthesis.simulate.operators import accumulate
from ai8xtools.synthesis.simulate.pooling import window
from ai8xtools.synthesis.simulate.simulator import gather, inserted, shifted
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
    outputs: dict[int, Fingerprints] = {NETWORK_INPUT: image}
    if network.buffer is not None:
        shape = network.buffer.channels, network.buffer.entries, network.buffer.width, LANES
        outputs[DATA_BUFFER] = (earlier or {}).get(DATA_BUFFER, np.zeros(shape, np.int64))
    previous = NETWORK_INPUT
    for layer in map(network.layer, network.simulated):
        data = _gathered(layer, previous, outputs)
        if network.reshapes_inputs:
            data = data[layer.channel_skip :][: layer.operands * layer.in_channels]
        rounding = average_rounding and not layer.operator.one_dimensional
        previous = layer.index
        if layer.buffer_shift:
            data = outputs[DATA_BUFFER] = shifted(data, layer.buffer_shift)
            outputs[layer.index] = data
        else:
            outputs[layer.index] = _of_layer(data, layer, mixer, rounding=rounding)
        if layer.buffer_insert:
            outputs[DATA_BUFFER] = inserted(
                outputs[DATA_BUFFER], outputs[layer.index], layer.buffer_insert
            )
    return outputs


def _gathered(layer: Layer, previous: int, outputs: Mapping[int, Fingerprints]) -> Fingerprints:
    lanes = [{n: value[..., lane] for n, value in outputs.items()} for lane in range(LANES)]
    return _by_lane(lambda lane: gather(layer, previous, lanes[lane]))


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
    sums = _by_lane(lambda lane: accumulate(lanes[lane], layer, PRIME))
    if layer.bias is not None:
        sums += mixer.constants(BIAS_UNIT * layer.bias)[:, None, None]
    activation = "none" if layer.activation is None else layer.activation.value.lower()
    return finished(sums % PRIME, wide=layer.output_width == 32, shift=layer.shift,
                    activation=activation, mixer=mixer)  # fmt: skip


def _pooled(image: Fingerprints, layer: Layer, mixer: Mixer, *, rounding: bool) -> Fingerprints:
    pooling = layer.pooling
    sums = window(image, pooling, layer.pooled_dim, np.add) % PRIME
    count = pooling.window[0] * pooling.window[1]
    return pooled(sums, count, maximum=not pooling.average, rounding=rounding, mixer=mixer)

"""Run the network on its sample, layer by layer."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from functools import partial
from operator import itemgetter

import numpy as np

from ai8xtools.integers.execution import Node, execute
from ai8xtools.synthesis.network import DATA_BUFFER, NETWORK_INPUT, Layer, Network, Tensor
from ai8xtools.synthesis.simulate.operators import (
    accumulate,
    activate,
    add_bias,
    clip,
    combine,
    scale,
)
from ai8xtools.synthesis.simulate.pooling import pool
from ai8xtools.values import frozen


@frozen
class LayerTrace:
    """Intermediate values of a layer; all int64 [channel, row, column].

    `input` is what was collected, `operands` the operands in it, `unpooled` what is pooled (the
    combined operands where these come first), `pooled` the result of that. `value` reaches the
    operator, flattened if it is; `accumulator` includes the bias, `clipped` is the output before
    the activation.
    """

    input: Tensor
    operands: tuple[Tensor, ...]
    unpooled: tuple[Tensor, ...]
    pooled: tuple[Tensor, ...]
    value: Tensor
    accumulator: Tensor
    clipped: Tensor
    output: Tensor

    @staticmethod
    def unchanged(data: Tensor) -> LayerTrace:
        """Return the values of a layer that delivers its input."""
        return LayerTrace(data, (data,), (data,), (data,), data, data, data, data)


@frozen
class Activations:
    """Output of every executed layer by index, and traces of all layers where they were asked."""

    outputs: Mapping[int, Tensor]
    traces: Mapping[int, LayerTrace]


def simulate(network: Network, *, average_rounding: bool, keep_traces: bool = False) -> Activations:
    """Return what every layer of a checked network computes for the network's sample."""
    values: dict[int, Tensor] = {NETWORK_INPUT: network.sample}
    if network.buffer is not None:
        shape = (network.buffer.channels, network.buffer.entries, network.buffer.width)
        values[DATA_BUFFER] = np.zeros(shape, np.int64)
    traces: dict[int, LayerTrace] = {}

    def compute(layer: Layer, data: Tensor) -> Tensor:
        trace = run_layer(data, layer, average_rounding=average_rounding)
        if keep_traces:
            traces[layer.index] = trace
        return trace.output

    return Activations(execute(nodes_of(network, compute), values), traces)


def nodes_of(network: Network, compute: Callable[[Layer, Tensor], Tensor]) -> Iterator[Node]:
    """Yield the layers as nodes; `compute` returns the output of one for its collected input.

    Values may have more axes than [channel, row, column].
    """

    def of_layer(layer: Layer, operands: Sequence[Tensor]) -> Tensor:
        data = joined(operands)
        if network.reshapes_inputs:
            data = data[layer.channel_skip :][: layer.operands * layer.in_channels]
        return compute(layer, shifted(data, layer.buffer_shift) if layer.buffer_shift else data)

    def insert(layer: Layer, operands: Sequence[Tensor]) -> Tensor:
        return inserted(operands[0], operands[1], layer.buffer_insert)

    previous = NETWORK_INPUT
    for layer in map(network.layer, network.simulated):
        yield Node(layer.index, layer.sources or (previous,), partial(of_layer, layer))
        previous = layer.index
        if layer.buffer_shift:
            yield Node(DATA_BUFFER, (layer.index,), itemgetter(0))
        if layer.buffer_insert:
            yield Node(DATA_BUFFER, (DATA_BUFFER, layer.index), partial(insert, layer))


def shifted(buffer: Tensor, count: int) -> Tensor:
    """Drop the oldest entries of a rolling buffer [channel, entry, ...] and append zeros."""
    moved = np.zeros_like(buffer)
    moved[:, :-count] = buffer[:, count:]
    return moved


def inserted(buffer: Tensor, values: Tensor, count: int) -> Tensor:
    """Replace the newest entries of a rolling buffer by a layer's output."""
    filled = buffer.copy()
    filled[:, -count:] = values.reshape(filled[:, -count:].shape)
    return filled


def joined(parts: Sequence[Tensor]) -> Tensor:
    """Join what a layer reads: channels of all sources one after the other.

    Sources of different size are joined by pixels instead.
    Source: docs/hardware/arithmetic.md, "Combining operands".
    """
    if len(parts) == 1:
        return parts[0]
    if len({p.shape[1:] for p in parts}) == 1:
        return np.concatenate(parts)
    return np.concatenate([p.reshape(len(p), -1, *p.shape[3:]) for p in parts], axis=1)


def run_layer(data: Tensor, layer: Layer, *, average_rounding: bool) -> LayerTrace:
    """Compute one layer from its collected input."""
    if layer.buffer_shift:
        return LayerTrace.unchanged(data)
    # Conv1d layers always truncate, whatever the option says.
    rounding = average_rounding and not layer.operator.one_dimensional
    before, after = layer.in_crop
    data = data[:, before : data.shape[1] - after]
    operands = tuple(part.reshape(-1, *layer.in_dim) for part in np.split(data, layer.operands))
    unpooled = operands
    if layer.combination and not layer.pool_first:
        unpooled = (combine(operands, layer.combination),)
    pooled = tuple(
        pool(part, layer.pooling, layer.pooled_dim, rounding=rounding) for part in unpooled
    )
    values = pooled
    if layer.combination and layer.pool_first:
        values = (combine(pooled, layer.combination),)
    (value,) = values
    if layer.flatten:
        value = value.reshape(-1, 1, 1)
    sums = clipped = output = value
    if layer.has_weights:
        sums = add_bias(accumulate(value, layer), layer)
        clipped = clip(scale(sums, layer), layer)
        output = activate(clipped, layer)
    return LayerTrace(data, operands, unpooled, pooled, value, sums, clipped, output)

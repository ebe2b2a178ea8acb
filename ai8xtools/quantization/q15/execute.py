"""A network in integers, exactly as its C computes: sums of 32 bits, shifts, saturation.

Source: docs/q15.md, "Arithmetic".
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Sequence
from functools import partial
from typing import assert_never

import numpy as np

from ai8xtools.integers import execution
from ai8xtools.integers.kernels import (
    Windows,
    averages,
    convolved,
    maxima,
    multiplied,
    rounded_shift,
)
from ai8xtools.quantization.formats import Float64s, Int64s, limits, to_fixed
from ai8xtools.quantization.q15.formats import QuantizedLayer
from ai8xtools.quantization.q15.graph import (
    Add,
    Clip,
    Concat,
    Constant,
    Enlarge,
    Flatten,
    Gather,
    Multiply,
    Pool,
    Step,
    Table,
    Weighted,
)
from ai8xtools.quantization.q15.network import QuantizedNetwork

_SUM = 1 << 31
Seen = Callable[[Weighted, Int64s], None]


def quantize_input(network: QuantizedNetwork, samples: Float64s) -> Int64s:
    """Return inputs [N, C, H, W] as integers [N, H, W, C]."""
    return to_fixed(samples.transpose(0, 2, 3, 1), network.fractions[0], network.bits)


def execute(
    network: QuantizedNetwork,
    samples: Int64s,
    seen: Seen | None = None,
    wanted: Collection[int] | None = None,
) -> dict[int, Int64s]:
    """Return maps [N, H, W, C] for inputs [N, H, W, C], by their numbers: all, or the wanted ones.

    `seen` is called with the sums of each weighted step before they wrap around, [N, H, W, C].
    """
    nodes = (
        execution.Node(step.target, step.sources, partial(_computed, network, step, samples, seen))
        for step in network.graph.steps
    )
    return execution.execute(nodes, {0: samples}, wanted)


def _computed(
    network: QuantizedNetwork,
    step: Step,
    samples: Int64s,
    seen: Seen | None,
    inputs: Sequence[Int64s],
) -> Int64s:
    """Return the map of a step [N, H, W, C] from those that it reads."""
    data = inputs[0] if inputs else samples
    match step:
        case Weighted():
            layer = network.layers[step.target]
            sums = weighted_sums(step, layer, data)
            if seen is not None:
                seen(step, sums)
            return finish(sums, layer.formats.out_rshift, network.bits)
        case Pool():
            return pooled(step, data)
        case Clip():
            return np.clip(data, *network.limits_of(step))
        case Add():
            return _added(inputs, network.bits)
        case Enlarge():
            rows, columns = step.factor
            return data.repeat(rows, axis=1).repeat(columns, axis=2)
        case Gather():
            return data[:, step.rows][:, :, step.columns]
        case Flatten():
            axes = (0, *(3 if axis == 0 else axis for axis in step.order))
            return data.transpose(axes).reshape(len(data), 1, 1, -1)
        case Concat():
            return np.concatenate(inputs, axis=3)
        case Table():
            return looked_up(network.arrays[step.target], data, network.bits)
        case Multiply():
            products = inputs[0] * inputs[1]
            return rounded_shift(products, network.shift_of(step)).clip(*limits(network.bits))
        case Constant():
            values = network.arrays[step.target]
            return np.broadcast_to(values, (len(samples), *values.shape))
        case _:
            assert_never(step)


def weighted_sums(step: Weighted, layer: QuantizedLayer, data: Int64s) -> Int64s:
    """Return the sums of a weighted step, bias and rounding included, before they wrap around."""
    formats = layer.formats
    start = (layer.bias << formats.bias_lshift) + ((1 << formats.out_rshift) >> 1)
    if step.linear:
        vectors = data.reshape(len(data), -1)
        sums = multiplied(vectors, layer.weights.reshape(len(layer.weights), -1))
        return sums[:, None, None] + start
    planes = data.transpose(0, 3, 1, 2)
    windows = Windows.covering(planes.shape, step.kernel, step.stride, step.padding,
                               spread=step.spread, extra=step.extra)  # fmt: skip
    sums = convolved(planes, layer.weights.transpose(0, 3, 1, 2), windows, step.groups)
    return sums.transpose(0, 2, 3, 1) + start


def wrapped(sums: Int64s) -> Int64s:
    """Return sums as 32 bits hold them."""
    results: Int64s = (sums + _SUM) % (2 * _SUM) - _SUM
    return results


def finish(sums: Int64s, out_rshift: int, bits: int) -> Int64s:
    """Return the results of sums: wrapped to 32 bits, shifted, saturated."""
    results: Int64s = np.clip(wrapped(sums) >> out_rshift, *limits(bits))
    return results


def looked_up(table: Int64s, data: Int64s, bits: int) -> Int64s:
    """Return what a table makes of data: straight lines between its points of 16 bits."""
    if bits == 8:
        return table[data + 128]
    shift = 16 - (len(table) - 1).bit_length() + 1
    at, rest = (data + 32768) >> shift, data & ((1 << shift) - 1)
    steps = (table[at + 1] - table[at]) * rest + (1 << (shift - 1))
    results: Int64s = table[at] + (steps >> shift)
    return results


def pooled(step: Pool, data: Int64s) -> Int64s:
    """Return pooled maps; averages are truncated toward zero and leave the border out."""
    planes = data.transpose(0, 3, 1, 2)
    windows = Windows(step.size(planes.shape[1:]), step.window, step.stride, step.padding)
    result = averages(planes, windows) if step.average else maxima(planes, windows)
    return result.transpose(0, 2, 3, 1)


def _added(operands: Sequence[Int64s], bits: int) -> Int64s:
    """Return a sum that saturates after each operand."""
    total = operands[0]
    for operand in operands[1:]:
        total = np.clip(total + operand, *limits(bits))
    return total

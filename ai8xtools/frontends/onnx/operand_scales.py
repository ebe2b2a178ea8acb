"""Whether a checkpoint's weights take operands in the order in which a graph has them.

An import gives each result a scale: the weights of the checkpoint are the graph's, times the scale
of the result, divided by that of what they take. Where the operands of a layer have several, the
same weights with operands in another order compute something else.
Source: docs/checkpoints.md, "ONNX graphs".
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from itertools import permutations
from typing import Any

import numpy as np
from numpy.typing import NDArray

from ai8xtools.frontends.accelerator.lowering import Parts
from ai8xtools.frontends.layers import INPUT, DescribedLayer

Array = NDArray[Any]
_FIT = 1.5
"""The least that weights have to be multiplied by to show that they are for another order."""
_MOST = 4
"""Operands whose orders are tried."""


def other_orders(
    layers: Sequence[DescribedLayer],
    tensors: Mapping[int, Parts],
    state: Mapping[str, Array],
    channels: int,
) -> Iterator[tuple[DescribedLayer, tuple[int, ...]]]:
    """Yield layers whose weights in `state` are those for their operands in another order, and it.

    `tensors` are those of the graph by layer, `channels` those of the input. What is behind layers
    that the checkpoint does not have is not looked at.
    """
    scales: dict[int, Array] = {INPUT: np.ones(channels)}
    for index, layer in enumerate(layers):
        if any(one not in scales for one in layer.inputs):
            continue
        parts = [scales[one] for one in layer.inputs]
        parts = parts if layer.join == "channels" else parts[:1]
        if index not in tensors:
            scales[index] = np.concatenate(parts)
            continue
        name = f"{layer.weights}.op.weight"
        if name not in state or sum(map(len, parts)) != layer.taken[0]:
            continue
        own, gain = tensors[index].weights, _gain(layer.weights, state)
        theirs = np.asarray(state[name], np.float64).reshape(own.shape) * gain
        taken = (len(own), layer.taken[0], -1) if own.ndim == 2 else (*own.shape[:2], -1)
        own, theirs = own.reshape(taken), theirs.reshape(taken)
        if own.shape[1] != layer.taken[0]:
            continue  # by channel: each keeps the scale of its operand, in any order
        given = _ratios(own, theirs, parts)
        scales[index] = np.full(len(own), np.median(given))
        orders = permutations(range(len(parts))) if len(parts) <= _MOST else ()
        same = [one for one in orders if [len(parts[n]) for n in one] == [*map(len, parts)]]
        fits = {one: _spread(_ratios(own, theirs, [parts[n] for n in one])) for one in same}
        if fits and min(fits.values()) < _FIT <= _spread(given):
            yield layer, min(fits, key=lambda one: fits[one])


def _gain(layer: Any, state: Mapping[str, Array]) -> float:
    """Return what a layer multiplies its whole numbers by."""
    bits, shift = (float(np.ravel(state.get(f"{layer}.{key}", default))[0])
                   for key, default in (("weight_bits", 8), ("output_shift", 0)))  # fmt: skip
    return float(2 ** (shift + 1 - (bits or 8)))


def _ratios(own: Array, theirs: Array, parts: Sequence[Array]) -> Array:
    """Return by which scale of the result weights [O, I, ...] say that each operand is taken."""
    scaled = theirs * np.concatenate(parts).reshape(1, -1, 1)
    ends = np.cumsum([len(one) for one in parts])[:-1]
    pairs = zip(np.split(own, ends, 1), np.split(scaled, ends, 1), strict=True)
    return np.array([(a * b).sum() / max((a * a).sum(), 1e-30) for a, b in pairs])


def _spread(ratios: Array) -> float:
    """Return by how much the largest ratio exceeds the smallest one."""
    least = float(ratios.min())
    return float(ratios.max()) / least if least > 0 else np.inf

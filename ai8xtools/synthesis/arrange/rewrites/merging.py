"""Layers that do a part of the work of the layer behind them are taken into it.

Two maximum poolings are one, pooling and combining belong in front of the operator that follows.
The values are the same, a layer less is executed.
Source: docs/placement.md, "Layers that are added or merged".
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace

from ai8xtools.synthesis.arrange.graph import sources
from ai8xtools.synthesis.arrange.rewrites.edit import removed
from ai8xtools.synthesis.layout import LayerLayout, Layout
from ai8xtools.synthesis.network import Layer, Network, Pooling
from device import Chip
from device.channels import passes

MAX_WINDOW = 16
"""A pooling window has at most so many rows and columns."""


def merged(network: Network, fixed: Layout, chip: Chip) -> tuple[Network, Layout]:
    """Return the network with as few separate layers without weights as possible."""
    while True:
        candidate = next(_candidates(network, fixed, chip), None)
        if candidate is None:
            return network, fixed
        network, fixed = removed(network, fixed, *candidate)


def _candidates(network: Network, fixed: Layout, chip: Chip) -> Iterator[tuple[int, Layer]]:
    """Yield layers that can go, each with what its only reader becomes."""
    for layer in network.executed():
        reader = _only_reader(network, layer)
        if layer.has_weights or reader is None or is_special(layer) or is_special(reader):
            continue
        if fixed.layers[layer.index] != LayerLayout():
            continue
        taken = taken_in(layer, reader, chip)
        if taken is not None:
            yield layer.index, replace(taken, sources=sources(network, layer))


def _only_reader(network: Network, layer: Layer) -> Layer | None:
    """Return the layer that reads a result, if it is one, and reads nothing else."""
    if any(layer is x for x in network.outputs()):
        return None
    match [x for x in network.executed() if layer.index in sources(network, x)]:
        case [reader] if sources(network, reader) == (layer.index,):
            return reader
    return None


def is_special(layer: Layer) -> bool:
    """Whether more than pooling and combining is done with the data that a layer reads."""
    buffer = layer.buffer_shift or layer.buffer_insert
    return bool(buffer or layer.channel_skip or any(layer.in_crop) or layer.bypass)


def taken_in(layer: Layer, reader: Layer, chip: Chip) -> Layer | None:
    """Return the reader that also does the work of a layer; None if it cannot."""
    same = layer.out_channels == reader.in_channels and layer.out_dim == reader.in_dim
    if not same or layer.output_width != 8 or reader.combination or reader.depthwise:
        return None
    if reader.operator.one_dimensional and layer.in_dim[1] != 1:
        return None
    if reader.operator.transposed and layer.pooling.reduces:
        return None  # registers have no place for the stride
    if layer.combination:
        return _with_operands(layer, reader, chip)
    if not layer.pooling.reduces:
        return None  # a copy that was asked for
    pooling = _one_after_the_other(layer.pooling, reader.pooling)
    if pooling is None or reader.flatten:
        return None
    return replace(reader, in_dim=layer.in_dim, pooling=pooling)


def _one_after_the_other(first: Pooling, second: Pooling) -> Pooling | None:
    """Return the pooling that does the work of two; None if there is none."""
    if not second.reduces:
        return first
    plain = first.active and second.active and not (first.average or second.average)
    if not plain or max(*first.dilation, *second.dilation) > 1:
        return None
    axes = zip(first.window, first.stride, second.window, strict=True)
    if any(s > w and v > 1 for w, s, v in axes):
        return None  # between windows that are apart are pixels that count for nothing
    window = tuple(
        w + (v - 1) * s for w, v, s in zip(first.window, second.window, first.stride, strict=True)
    )
    stride = tuple(s * t for s, t in zip(first.stride, second.stride, strict=True))
    if max(window) > MAX_WINDOW or max(stride) > MAX_WINDOW:
        return None
    return Pooling((window[0], window[1]), (stride[0], stride[1]))


def _with_operands(layer: Layer, reader: Layer, chip: Chip) -> Layer | None:
    """Return a convolution in front of which the operands of a layer are combined."""
    count = passes(layer.in_channels)
    if not reader.has_weights or reader.operator.one_dimensional or reader.flatten:
        return None
    if reader.bias is not None and not chip.combines_with_bias:
        return None
    beyond = layer.operands * count != layer.operands + count
    if chip.combines_passes_as_rows and count > 1 and beyond:
        return None
    pools_before, pools_behind = layer.pooling.reduces, reader.pooling.reduces
    if pools_before and pools_behind:
        return None
    if pools_behind and (layer.operands > 2 or not reader.pooling.active):
        return None
    return replace(
        reader,
        combination=layer.combination,
        operands=layer.operands,
        in_dim=layer.in_dim,
        pooling=layer.pooling if pools_before else reader.pooling,
        pool_first=layer.pool_first if pools_before else not pools_behind,
    )

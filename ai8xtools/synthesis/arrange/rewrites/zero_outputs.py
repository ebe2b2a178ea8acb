"""Layers deliver channels that are zero, and whatever reads them has weights of zero for them.

Source: docs/placement.md, "Layers that are added or merged".
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace

import numpy as np

from ai8xtools.synthesis.arrange.graph import channels_of, sources
from ai8xtools.synthesis.layout import LayerLayout, Layout
from ai8xtools.synthesis.network import Layer, Network
from ai8xtools.synthesis.zeros import (
    BINARY,
    Mask,
    channels_read,
    spread_bias,
    spread_weights,
    whole,
)


def makers(network: Network, owner: int) -> set[int] | None:
    """Return the layers whose kernels make the last channels of a result; None if others do.

    Layers without kernels of their own pass on what they read.
    """
    if owner < 0:
        return None
    layer = network.layer(owner)
    if layer.has_weights and not layer.depthwise:
        fit = layer.weights is not None and layer.weight_bits != BINARY
        return {owner} if fit and layer.weight_source is None else None
    read = sources(network, layer)
    origins: set[int] = set()
    for source in read if layer.combination else read[-1:]:
        more = makers(network, source)
        if more is None:
            return None
        origins |= more
    return origins


def with_zero_outputs(network: Network, fixed: Layout, added: Mapping[int, int]) -> Network | None:
    """Return the network in which layers (by index) deliver so many more channels that are zero.

    None if that would change what is delivered, operands that do not agree, or what has a place.
    """
    if network.reshapes_inputs:
        return None
    kept: dict[int, Mask] = {}
    layers: list[Layer] = []
    for layer in network.executed():
        parts = [kept.get(s, whole(channels_of(network, s))) for s in sources(network, layer)]
        if layer.combination and len({part.tobytes() for part in parts}) > 1:
            return None
        read = channels_read(parts, combined=layer.combination is not None)
        changed = _changed(layer, read, added.get(layer.index, 0))
        if changed is None:
            return None
        if changed is not layer:
            own = fixed.layers.get(layer.index, LayerLayout())
            if own.processors is not None or own.output_processors is not None:
                return None
            kept[layer.index] = _kept(changed, read, added.get(layer.index, 0))
        layers.append(changed)
    result = replace(network, layers=tuple(layers))
    return result if _is_sound(network, result) else None


def _changed(layer: Layer, read: Mask, added: int) -> Layer | None:
    """Return a layer for what it reads now; None if unknown."""
    if read.all() and not added:
        return layer
    own = layer.has_weights and not layer.depthwise
    special = layer.channel_skip or layer.bypass or layer.buffer_shift or layer.buffer_insert
    if special or (added and not own) or np.count_nonzero(read) != layer.in_channels:
        return None
    copied = layer.copied and _moved(layer.copied, read)
    if copied is None and layer.copied is not None:
        return None
    if not layer.has_weights:
        return replace(layer, in_channels=len(read), out_channels=len(read))
    assert layer.weights is not None
    pixels = layer.pooled_dim[0] * layer.pooled_dim[1] if layer.flatten else 1
    bits, depthwise = layer.weight_bits, layer.depthwise
    weights = spread_weights(
        layer.weights, np.repeat(read, pixels), added, bits, depthwise=depthwise
    )
    return replace(
        layer,
        in_channels=len(read),
        out_channels=len(weights),
        groups=len(read) if depthwise else layer.groups,
        weights=weights,
        bias=spread_bias(layer.bias, read, added, depthwise=depthwise),
        zero_outputs=layer.zero_outputs + added,
        copied=copied,
    )


def _moved(copied: tuple[int, int], read: Mask) -> tuple[int, int] | None:
    """Return where channels stand that a layer copies; None if they have zeros in between."""
    places = np.flatnonzero(read)[copied[0] : copied[0] + copied[1]]
    return (int(places[0]), copied[1]) if places[-1] - places[0] == copied[1] - 1 else None


def _kept(layer: Layer, read: Mask, added: int) -> Mask:
    """Return which channels of a changed layer's result it had before."""
    if not (layer.has_weights and not layer.depthwise):
        return read
    mask = whole(layer.out_channels)
    mask[layer.out_channels - added :] = False
    return mask


def _is_sound(before: Network, after: Network) -> bool:
    """Whether the same is delivered, and shared weights are still the same."""
    for old, new in zip(before.outputs(), after.outputs(), strict=True):
        if old.out_channels != new.out_channels:
            return False
    for layer in after.layers:
        if layer.weight_source is not None:
            one, other = layer.weights, after.layer(layer.weight_source).weights
            if one is None or other is None or not np.array_equal(one, other):
                return False
    return True

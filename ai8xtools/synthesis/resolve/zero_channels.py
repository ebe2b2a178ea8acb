"""Weights for channels that are always zero, and kernels that only copy channels.

Source: docs/network-description.md, "Keys of a layer"; docs/placement.md, "Layers that are added
or merged".
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace

import numpy as np

from ai8xtools.diagnostics import Diagnostic
from ai8xtools.synthesis.facts import Fact, effects
from ai8xtools.synthesis.network import Layer
from ai8xtools.synthesis.parse import LayerDescription
from ai8xtools.synthesis.parse.rules import operation
from ai8xtools.synthesis.resolve.tensors import DEFAULT_BITS, LayerTensors
from ai8xtools.synthesis.zeros import (
    COPYING_SHIFT,
    Mask,
    channels_read,
    copying_weights,
    spread_bias,
    spread_weights,
    whole,
)

Channels = Callable[[int], int]
"""How many channels a source has."""


def read_mask(
    layer: LayerDescription,
    sources: Sequence[int],
    masks: Mapping[int, Mask],
    channels: Channels,
) -> Mask:
    """Return which channels that a layer reads are not always zero; `masks` are of some sources."""
    parts = [masks[s] if s in masks else whole(channels(s)) for s in sources]
    return channels_read(parts, combined=operation(layer)[1] is not None)


def filled_tensors(
    layer: LayerDescription, tensors: LayerTensors | None, read: Mask, pixels: int
) -> LayerTensors | None:
    """Return a layer's tensors with zeros for the channels that it reads and adds.

    `pixels` are those of each channel that is flattened, else 1. A layer that copies channels gets
    its kernels here.
    """
    added = layer.get("zero_outputs", 0)
    if "copy_channels" in layer:
        bits = layer.get("quantization", DEFAULT_BITS)
        if copies_too_much(layer, len(read)):
            return None
        weights = copying_weights(len(read), layer.get("copy_channels"), added, bits)
        return LayerTensors(weights, None, bits, COPYING_SHIFT)
    if tensors is None or (read.all() and not added):
        return tensors
    depthwise = layer.get("groups", 1) > 1
    values = np.repeat(read, pixels)
    return replace(
        tensors,
        weights=spread_weights(
            tensors.weights, values, added, tensors.bits, depthwise=depthwise
        ),
        bias=spread_bias(tensors.bias, read, added, depthwise=depthwise),
    )  # fmt: skip


def result_mask(layer: Layer, read: Mask) -> Mask:
    """Return which channels of a layer's result are not always zero."""
    if layer.has_weights and not layer.depthwise:
        mask = whole(layer.out_channels)
        mask[layer.out_channels - layer.zero_outputs :] = False
        return mask
    return read if len(read) == layer.out_channels else whole(layer.out_channels)


def copies_too_much(layer: LayerDescription, channels: int) -> Diagnostic | None:
    """Copied channels must be there."""
    first, count = layer.get("copy_channels", (0, 0))
    if first + count <= channels:
        return None
    return layer.error(
        "E244",
        f"'copy_channels' ends with channel {first + count - 1}, the input has {channels}",
        "copy_channels",
        remedy="Name the first channel and their number.",
        effects=effects(needs=Fact.SIZES),
    )

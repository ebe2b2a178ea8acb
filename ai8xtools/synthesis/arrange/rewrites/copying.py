"""Maps are copied by 1x1 kernels, whole or in parts, to where they are needed.

A kernel has one weight that is not zero, and the result is exactly the data.
Source: docs/placement.md, "Layers that are added or merged".
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

from ai8xtools.diagnostics import Diagnostic, Severity
from ai8xtools.synthesis.arrange.graph import channels_of, sources
from ai8xtools.synthesis.arrange.rewrites.edit import inserted, unique_name
from ai8xtools.synthesis.arrange.rewrites.zero_outputs import with_zero_outputs
from ai8xtools.synthesis.layout import Layout
from ai8xtools.synthesis.network import DATA_BUFFER, NETWORK_INPUT, Layer, Network, Operator, Size
from ai8xtools.synthesis.zeros import COPYING_SHIFT, copying_weights
from ai8xtools.values import frozen
from device.channels import channels_per_pass, passes

_NARROW = 2
"""Bits of kernels that copy, where narrow weights are possible."""


@frozen
class CopiedPart:
    """Channels of a source, from `first` on, and how many they become with those that are zero."""

    first: int
    count: int
    filled: int


def copied(
    network: Network,
    fixed: Layout,
    reader: Layer,
    place: int,
    parts: Sequence[CopiedPart],
    reason: str,
    notices: list[Diagnostic],
) -> tuple[Network, Layout] | None:
    """Put layers in front of a reader that copy its source at a place, part by part.

    None if that cannot be done. Appends a notice of each copy.
    """
    owner = sources(network, reader)[place]
    if owner == DATA_BUFFER or fixed.layers[reader.index].processors is not None:
        return None
    for number, part in enumerate(parts):
        copy = copying_layer(network, owner, reader, part, number)
        network, fixed = inserted(network, fixed, copy, reader.index + number, {})
        notices.append(
            reader.diagnostic(
                "N425",
                f"'{copy.name}' copies channels {part.first} to {part.first + part.count - 1}: "
                f"{reason}",
                ("in_sequences", "op"),
                severity=Severity.NOTICE,
            )
        )
    changed = network.layer(reader.index + len(parts))
    read = list(sources(network, changed))
    read[place : place + 1] = range(reader.index, changed.index)
    network = _with(network, replace(changed, sources=tuple(read)))
    zeros = {
        reader.index + number: part.filled - part.count
        for number, part in enumerate(parts)
        if part.filled > part.count
    }
    result = with_zero_outputs(network, fixed, zeros) if zeros else network
    return None if result is None else (result, fixed)


def _with(network: Network, layer: Layer) -> Network:
    layers = tuple(layer if x.index == layer.index else x for x in network.layers)
    return replace(network, layers=layers)


def copying(layer: Layer) -> Layer:
    """Return a layer that passes its channels on as one whose kernels copy them."""
    channels = layer.in_channels
    bits = _bits(channels)
    copied = (0, channels)
    return replace(
        layer,
        operator=_operator(layer.in_dim),
        weight_bits=bits,
        shift=COPYING_SHIFT + 8 - bits,
        weights=copying_weights(channels, copied, 0, bits),
        copied=copied,
    )


def _operator(dim: Size) -> Operator:
    """Return what has 1x1 kernels: a series in time is convolved in one dimension."""
    rows, columns = dim
    return Operator.CONV1D if columns == 1 and rows > 1 else Operator.CONV2D


def _bits(channels: int) -> int:
    """Return the width of weights that copy channels: narrow ones need full passes."""
    return _NARROW if channels == passes(channels) * channels_per_pass(channels) else 8


def copying_layer(
    network: Network, owner: int, reader: Layer, part: CopiedPart, number: int
) -> Layer:
    """Return a layer whose 1x1 kernels copy channels of a source exactly."""
    if owner == NETWORK_INPUT:
        name, dim = "input", network.first.in_dim
    else:
        source = network.layer(owner)
        name, dim = source.name or f"layer{owner}", source.out_dim
    preferred = f"{name}_part{number}" if number or part.first else f"{name}_filled"
    channels = channels_of(network, owner)
    bits = _bits(channels)
    copied = (part.first, part.count)
    return Layer(
        index=reader.index,
        name=unique_name(network, preferred),
        place=reader.place,
        operator=_operator(dim),
        in_channels=channels,
        out_channels=part.count,
        in_dim=dim,
        pooled_dim=dim,
        out_dim=dim,
        weight_bits=bits,
        shift=COPYING_SHIFT + 8 - bits,
        weights=copying_weights(channels, copied, 0, bits),
        sources=(owner,),
        copied=copied,
    )

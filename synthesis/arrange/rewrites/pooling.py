"""Pooling of more passes than passing data may have on a chip.

The layers behind it pool by themselves, or kernels that copy do.
Source: docs/placement.md, "Layers that are added or merged".
"""

from __future__ import annotations

from dataclasses import replace

from device import Chip
from device.channels import passes
from diagnostics import Diagnostic, Severity
from synthesis.arrange.graph import sources
from synthesis.arrange.rewrites.copying import copying
from synthesis.arrange.rewrites.edit import removed
from synthesis.arrange.rewrites.merging import is_special, taken_in
from synthesis.layout import LayerLayout, Layout
from synthesis.network import Layer, Network


def with_possible_pooling(
    network: Network, fixed: Layout, chip: Chip
) -> tuple[Network, Layout, tuple[Diagnostic, ...]]:
    """Return the network in which no layer without kernels pools too many passes."""
    notices: list[Diagnostic] = []
    while True:
        layer = next((x for x in network.executed() if _is_beyond(x, fixed, chip)), None)
        if layer is None:
            return network, fixed, tuple(notices)
        changed = _pooling_readers(network, layer, chip)
        if changed is not None:
            network, fixed = removed(network, fixed, layer.index, *changed)
            continue
        copy = copying(layer)
        layers = tuple(copy if x is layer else x for x in network.layers)
        network = replace(network, layers=layers)
        notices.append(
            layer.diagnostic(
                "N428",
                f"copies its channels by kernels: {chip.name} pools {layer.in_channels} channels "
                "only in front of a convolution",
                "op",
                severity=Severity.NOTICE,
            )
        )


def _is_beyond(layer: Layer, fixed: Layout, chip: Chip) -> bool:
    """Whether a layer only pools, and more passes than the chip can."""
    only = not (layer.has_weights or layer.combination or is_special(layer))
    free = fixed.layers[layer.index] == LayerLayout()
    several = passes(layer.in_channels) > chip.passthrough_pool_passes
    return only and free and several and layer.pooling.reduces and layer.pooled_dim != (1, 1)


def _pooling_readers(network: Network, layer: Layer, chip: Chip) -> list[Layer] | None:
    """Return the layers behind one that pools as they are when they pool; None if some cannot."""
    if any(layer is x for x in network.outputs()):
        return None
    found = []
    for reader in network.executed():
        read = sources(network, reader)
        if layer.index not in read:
            continue
        alone = read == (layer.index,) and reader.has_weights and not is_special(reader)
        taken = taken_in(layer, reader, chip) if alone else None
        if taken is None:
            return None
        found.append(replace(taken, sources=sources(network, layer)))
    return found or None

"""Pooling where a chip cannot do it: of too many passes, or in front of a transposed convolution.

The layers behind it pool by themselves, or kernels that copy do; a layer in between pools.
Source: docs/placement.md, "Layers that are added or merged".
"""

from __future__ import annotations

from dataclasses import replace

from ai8xtools.diagnostics import Diagnostic, Severity
from ai8xtools.synthesis.arrange.graph import sources
from ai8xtools.synthesis.arrange.rewrites.copying import copying
from ai8xtools.synthesis.arrange.rewrites.edit import inserted, removed, unique_name
from ai8xtools.synthesis.arrange.rewrites.merging import is_special, taken_in
from ai8xtools.synthesis.layout import LayerLayout, Layout
from ai8xtools.synthesis.network import Layer, Network, Operator, Pooling
from device import Chip
from device.channels import passes


def with_separate_pooling(
    network: Network, fixed: Layout, chip: Chip
) -> tuple[Network, Layout, tuple[Diagnostic, ...]]:
    """Return the network in which no transposed convolution pools: the layer in front of it does.

    The registers of a transposed convolution have no place for the stride.
    """
    notices: list[Diagnostic] = []
    layers = tuple(_without_idle_stride(x) for x in network.layers)
    network = replace(network, layers=layers)
    while True:
        layer = next((x for x in network.executed() if _has_no_place(x, fixed)), None)
        if layer is None:
            return network, fixed, tuple(notices)
        in_front = _pooling_alone(network, layer)
        several = passes(layer.in_channels) > chip.passthrough_pool_passes
        fed = layer is network.first and fixed.input_port.is_fifo
        if fed or (layer.combination and several):
            in_front = copying(in_front)  # only a convolution does that
        plain = replace(
            layer, combination=None, operands=1, pool_first=True, pooling=Pooling(),
            in_dim=layer.pooled_dim, sources=(layer.index,),
        )  # fmt: skip
        layers = tuple(plain if x is layer else x for x in network.layers)
        network = replace(network, layers=layers)
        network, fixed = inserted(network, fixed, in_front, layer.index, {layer.index: 0})
        notices.append(
            layer.diagnostic(
                "N425",
                f"'{in_front.name}' pools what is read here: a transposed convolution has no "
                "place for 'pool_stride'",
                ("pool_stride", "op"),
                severity=Severity.NOTICE,
            )
        )


def _without_idle_stride(layer: Layer) -> Layer:
    """Return a transposed convolution without a stride that is never taken."""
    if not layer.operator.transposed or layer.strides:
        return layer
    return replace(layer, pooling=replace(layer.pooling, stride=(1, 1)))


def _has_no_place(layer: Layer, fixed: Layout) -> bool:
    free = fixed.layers[layer.index] == LayerLayout()
    return free and layer.operator.transposed and layer.strides and not is_special(layer)


def _pooling_alone(network: Network, layer: Layer) -> Layer:
    """Return the layer that combines and pools what a layer reads, and nothing else."""
    return Layer(
        index=layer.index,
        name=unique_name(network, f"{layer.name or f'layer{layer.index}'}_pooled"),
        place=layer.place,
        operator=Operator.NONE,
        in_channels=layer.in_channels,
        out_channels=layer.in_channels,
        in_dim=layer.in_dim,
        pooled_dim=layer.pooled_dim,
        out_dim=layer.pooled_dim,
        combination=layer.combination,
        operands=layer.operands,
        pooling=layer.pooling,
        pool_first=layer.pool_first,
        sources=sources(network, layer),
    )


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
                "N425",
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
    readers = []
    for reader in network.executed():
        read = sources(network, reader)
        if layer.index not in read:
            continue
        alone = read == (layer.index,) and reader.has_weights and not is_special(reader)
        taken = taken_in(layer, reader, chip) if alone else None
        if taken is None:
            return None
        readers.append(replace(taken, sources=sources(network, layer)))
    return readers or None

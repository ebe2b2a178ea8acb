"""Layers are put into a network, or taken out of it; all others are renumbered."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace

from ai8xtools.synthesis.arrange.graph import sources
from ai8xtools.synthesis.layout import LayerLayout, Layout
from ai8xtools.synthesis.network import Layer, Network


def unique_name(network: Network, name: str) -> str:
    """Return a name that no layer has: this one, with underscores if need be."""
    taken = {layer.name for layer in network.layers}
    while name in taken:
        name += "_"
    return name


def inserted(
    network: Network, fixed: Layout, layer: Layer, before: int, readers: Mapping[int, int]
) -> tuple[Network, Layout]:
    """Put a layer in front of the one with index `before`.

    `layer` has the sources of the network as it is. `readers` are the layers, by index, that read
    the new one, each with the place among its sources.
    """
    stated = [replace(x, sources=sources(network, x)) for x in network.layers]
    for index, place in readers.items():
        old = stated[index]
        assert old.sources is not None
        changed = tuple(-3 if i == place else s for i, s in enumerate(old.sources))
        stated[index] = replace(old, sources=changed)
    order = [*stated[:before], replace(layer, index=-3), *stated[before:]]
    number = {x.index: i for i, x in enumerate(order)}
    return _renumbered(network, fixed, order, number)


def removed(network: Network, fixed: Layout, gone: int, *changed: Layer) -> tuple[Network, Layout]:
    """Remove a layer; the `changed` ones, by index, take over its work."""
    stated = [replace(x, sources=sources(network, x)) for x in network.layers]
    for layer in changed:
        stated[layer.index] = layer
    order = [x for x in stated if x.index != gone]
    number = {x.index: i for i, x in enumerate(order)}
    return _renumbered(network, fixed, order, number)


def _renumbered(
    network: Network, fixed: Layout, order: list[Layer], number: Mapping[int, int]
) -> tuple[Network, Layout]:
    """Give layers the indices of their places; sources that are the layer before become default."""
    layers = []
    for i, old in enumerate(order):
        assert old.sources is not None
        read: tuple[int, ...] | None = tuple(number.get(s, s) for s in old.sources)
        before = i - 1
        if read == (before,) and "in_sequences" not in old.places:
            read = None
        following = i + 1 if i + 1 < len(order) else None
        shared = None if old.weight_source is None else number[old.weight_source]
        layers.append(
            replace(old, index=i, sources=read, next_layer=following, weight_source=shared)
        )
    numbers = tuple(range(len(layers)))
    kept = {number[i]: layout for i, layout in fixed.layers.items() if i in number}
    layouts = {i: kept.get(i, LayerLayout()) for i in numbers}
    return (
        replace(network, layers=tuple(layers), order=numbers, simulated=numbers),
        replace(fixed, layers=layouts),
    )

"""Which of the given keys keep a network from fitting: one is left out at a time, then two.

Source: docs/placement.md, "Keys that are given".
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import fields, replace
from itertools import combinations, islice

from ai8xtools.diagnostics import Diagnostic
from ai8xtools.synthesis.layout import LayerLayout, Layout
from ai8xtools.synthesis.network import Layer, Network
from ai8xtools.values import frozen

PAIRS = 100
"""At most so many pairs of keys are tried."""
_KEYS = {
    "processors": "processors",
    "output_processors": "output_processors",
    "in_offset": "in_offset",
    "out_offset": "out_offset",
    "write_gap": "write_gap",
    "read_gap": "read_gap",
    "channels_first": "data_format",
    "streaming": "streaming",
    "bias_groups": "bias_group",
    "kernel_offset": "kernel_offset",
}
"""Fields of a layout that fix places, with their keys."""


@frozen
class GivenKey:
    """A key of a layer that fixes a place."""

    layer: Layer
    field: str

    @property
    def key(self) -> str:
        """The name in the description."""
        return _KEYS[self.field]

    def __str__(self) -> str:
        line = self.layer.place_of(self.key).line
        return f"'{self.key}' of {self.layer}" + (f" (line {line})" if line else "")


def given_keys(network: Network, fixed: Layout) -> list[GivenKey]:
    """Return the keys that fix places, in the order of the layers."""
    return [
        GivenKey(layer, field.name)
        for layer in network.executed()
        for field in fields(LayerLayout)
        if field.name in _KEYS
        and getattr(fixed.layers[layer.index], field.name) is not None
        and _KEYS[field.name] in layer.places
    ]


def without(fixed: Layout, *keys: GivenKey) -> Layout:
    """Return the layout in which some keys are left open."""
    layers = dict(fixed.layers)
    for key in keys:
        layers[key.layer.index] = replace(layers[key.layer.index], **{key.field: None})
    return replace(fixed, layers=layers)


def culprits(
    network: Network, fixed: Layout, fits: Callable[[Layout], bool]
) -> tuple[GivenKey, ...]:
    """Return keys without which everything fits: each alone, or two together; none if not."""
    keys = given_keys(network, fixed)
    alone = tuple(key for key in keys if fits(without(fixed, key)))
    if alone:
        return alone[:3]
    pairs: Iterator[tuple[GivenKey, GivenKey]] = islice(combinations(keys, 2), PAIRS)
    return next((pair for pair in pairs if fits(without(fixed, *pair))), ())


def unkept(network: Network, fixed: Layout, chosen: Layout) -> Iterator[Diagnostic]:
    """Yield a complaint about each given value that had to be replaced by another one."""
    for layer in network.executed():
        own, result = fixed.layers[layer.index], chosen.layers[layer.index]
        for name, key in _KEYS.items():
            value, got = getattr(own, name), getattr(result, name)
            if value is not None and value != got:
                yield _unkept(layer, key, value, got)


def _unkept(layer: Layer, key: str, value: object, got: object) -> Diagnostic:
    """Gaps follow from what is combined and joined; a layer streams if those before it do."""
    return layer.diagnostic(
        "E423",
        f"'{key}' is {value}, but what is read and written here needs {got}",
        key,
        f"Leave out '{key}'.",
    )

"""Features of a description for which places have to be stated.

Source: docs/placement.md, "Layers that are added or merged".
"""

from __future__ import annotations

from collections.abc import Iterator

from ai8xtools.diagnostics import Diagnostic, Place
from ai8xtools.synthesis.layout import Layout
from ai8xtools.synthesis.network import Network

_REMEDY = "State the processors of all layers and their offsets, or leave this out."


def unsuited(network: Network, fixed: Layout) -> Iterator[Diagnostic]:
    """Yield what keeps the places of a network from being chosen."""
    straight = tuple(range(len(network.layers)))
    if network.order != straight or network.simulated != straight:
        yield _left_out("layers that are not executed one after the other", network.place)
    for layer in network.executed():
        layout = fixed.layers[layer.index]
        for key, is_set in (
            ("calcx4", layout.calcx4),
            ("readahead", layout.read_ahead),
            ("snoop_sequence", layout.snoop_layer is not None),
        ):
            if is_set:
                yield _left_out(f"'{key}' of {layer}", layer.place_of(key))
    for what, key, is_set in (
        ("'unload'", "unload", "unload" in network.places),
        ("'snoop'", "snoop", fixed.snoop is not None),
    ):
        if is_set:
            yield _left_out(what, network.places.get(key, network.place))
    if fixed.input_port.feeds_all_groups:
        yield _left_out("the mode of all groups", Place(option="--fast-fifo-quad"))
    if fixed.input_parts > 1:
        yield _left_out("an input in parts", Place(option="--input-split"))


def _left_out(what: str, place: Place) -> Diagnostic:
    """What names places itself, or changes what memory they take, is not arranged."""
    return Diagnostic("E426", f"{what}: places that are left open cannot be chosen", place, _REMEDY)

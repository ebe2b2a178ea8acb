"""The integers of a whole network: each map has one format for all that write and read it.

Source: docs/q15.md, "Formats".
"""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence

from ai8xtools.diagnostics.errors import InputError
from ai8xtools.quantization.formats import limits, power_of_two_fraction, to_fixed
from ai8xtools.quantization.q15.formats import Guard, QuantizedLayer, quantize_layer
from ai8xtools.quantization.q15.graph import Clip, Graph, Weighted
from ai8xtools.values import frozen


@frozen
class QuantizedNetwork:
    """A network in integers of `bits` bits.

    `fractions` are the k of all maps, `layers` the integers of weighted steps by their target.
    """

    graph: Graph
    bits: int
    guard: Guard
    fractions: tuple[int, ...]
    layers: Mapping[int, QuantizedLayer]

    def limits_of(self, clip: Clip) -> tuple[int, int]:
        """Return the limits of a clip as integers."""
        low, high = limits(self.bits)
        fraction = self.fractions[clip.target]
        if clip.low > -math.inf:
            low = int(to_fixed(clip.low, fraction, self.bits))
        if clip.high < math.inf:
            high = int(to_fixed(clip.high, fraction, self.bits))
        return low, high


def quantize_network(
    graph: Graph, ranges: Sequence[float], largest_values: Sequence[float], bits: int, guard: Guard
) -> QuantizedNetwork:
    """Return the integers of a network.

    `ranges` are the magnitudes that the formats of maps have to hold, `largest_values` the largest
    magnitudes of the samples. Raises InputError E741 for layers that need shifts above 30.
    """
    leaders = leaders_of(graph)
    fractions: dict[int, int] = {}
    for tensor in measured_maps(graph):
        fraction = power_of_two_fraction(ranges[tensor], bits)
        leader = leaders[tensor]
        fractions[leader] = min(fraction, fractions.get(leader, fraction))
    while True:
        layers: dict[int, QuantizedLayer] = {}
        lowered = False
        for step in graph.steps:
            if not isinstance(step, Weighted):
                continue
            layer = _layer(step, fractions, leaders, largest_values, bits, guard)
            layers[step.target] = layer
            lowered |= layer.formats.ko < fractions[leaders[step.target]]
            fractions[leaders[step.target]] = layer.formats.ko
        if not lowered:
            map_fractions = tuple(fractions.get(leader, 0) for leader in leaders)
            return QuantizedNetwork(graph, bits, guard, map_fractions, layers)


def _layer(
    step: Weighted,
    fractions: Mapping[int, int],
    leaders: Sequence[int],
    largest_values: Sequence[float],
    bits: int,
    guard: Guard,
) -> QuantizedLayer:
    kx = fractions[leaders[step.source]]
    seen = abs(int(to_fixed(-largest_values[step.source], kx, bits)))
    ko = fractions[leaders[step.target]]
    return quantize_layer(step.weights, step.bias, kx, ko, bits, guard, seen, step.name)


def leaders_of(graph: Graph) -> list[int]:
    """Return for each map the one that stands for all that must have its format."""
    leaders = list(range(len(graph.shapes)))

    def leader(tensor: int) -> int:
        while leaders[tensor] != tensor:
            tensor = leaders[tensor]
        return tensor

    for step in graph.steps:
        if not isinstance(step, Weighted):
            for source in step.sources:
                leaders[leader(step.target)] = leader(source)
    return [leader(tensor) for tensor in range(len(leaders))]


def measured_maps(graph: Graph) -> list[int]:
    """Return the maps whose magnitudes decide: the input, and results behind their activation."""
    targets = [step.target for step in graph.steps if not isinstance(step, Clip)]
    return [graph.activated(0), *(graph.activated(tensor) for tensor in targets)]


def check_finite(graph: Graph, path: str | None) -> None:
    """Raise InputError E507 for weights that are no numbers."""
    for step in graph.steps:
        if isinstance(step, Weighted):
            total = float(abs(step.weights).sum() + abs(step.bias).sum())
            if not math.isfinite(total):
                raise InputError("E507", f"{step.name} holds weights that are no finite numbers",
                                 path, "Train the network again.")  # fmt: skip

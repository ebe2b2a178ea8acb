"""The integers of a whole network: each map has one format for all that write and read it.

Source: docs/q15.md, "Formats".
"""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence

import numpy as np

from ai8xtools.diagnostics.errors import InputError
from ai8xtools.quantization.formats import Int64s, limits, power_of_two_fraction, to_fixed
from ai8xtools.quantization.q15.formats import (
    MAX_SHIFT,
    Guard,
    NoKernelError,
    QuantizedLayer,
    quantize_layer,
)
from ai8xtools.quantization.q15.graph import Clip, Constant, Graph, Multiply, Table, Weighted
from ai8xtools.values import frozen

APART = (256, 128, 64, 32, 16, 8, 4)
"""How far the points of tables of 16 bits are apart: the first that follows the function."""
_FOLLOWED = 2.0**-10
"""Of the largest result: what straight lines between points may differ from a function."""


@frozen
class QuantizedNetwork:
    """A network in integers of `bits` bits.

    `fractions` are the k of all maps, `layers` the integers of weighted steps by their target,
    `arrays` those of tables [points] and constants [H, W, C].
    """

    graph: Graph
    bits: int
    guard: Guard
    fractions: tuple[int, ...]
    layers: Mapping[int, QuantizedLayer]
    arrays: Mapping[int, Int64s]

    def shift_of(self, step: Multiply) -> int:
        """Return by how much products are shifted right."""
        a, b = step.sources
        return self.fractions[a] + self.fractions[b] - self.fractions[step.target]

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
    magnitudes of the samples. Raises NoKernelError E741 for layers that need shifts above 30.
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
            leader = leaders[step.target]
            most = fractions.get(leader, 0)
            if isinstance(step, Weighted):
                layer = _layer(step, fractions, leaders, largest_values, bits, guard)
                layers[step.target] = layer
                most = layer.formats.ko
            elif isinstance(step, Multiply):
                most = min(most, sum(fractions[leaders[source]] for source in step.sources))
                shift = sum(fractions[leaders[source]] for source in step.sources) - most
                if shift > MAX_SHIFT:
                    raise NoKernelError(
                        "E741", f"{step.name}: the result would be shifted by {shift} bits, the "
                        f"limit is {MAX_SHIFT}", None, "Scale one of its operands.",
                    )  # fmt: skip
            lowered |= most < fractions.get(leader, 0)
            fractions[leader] = most
        if not lowered:
            map_fractions = tuple(fractions.get(leader, 0) for leader in leaders)
            arrays = {step.target: _array(step, map_fractions, largest_values, bits)
                      for step in graph.steps if isinstance(step, Table | Constant)}  # fmt: skip
            return QuantizedNetwork(graph, bits, guard, map_fractions, layers, arrays)


def _array(
    step: Table | Constant, fractions: Sequence[int], largest_values: Sequence[float], bits: int
) -> Int64s:
    """Return the integers of a constant map, or of the points of a function.

    Raises NoKernelError E741 for a function that straight lines between its points do not follow.
    """
    fraction, (low, high) = fractions[step.target], limits(bits)
    if isinstance(step, Constant):
        return to_fixed(step.values.transpose(1, 2, 0), fraction, bits)
    for apart in APART if bits > 8 else (1,):
        integers = np.arange(low, high + 1 + apart, max(apart / 2, 1))
        points = np.ldexp(integers, -fractions[step.source])
        with np.errstate(all="ignore"):
            results = step.function(points)
            exact = np.nan_to_num(results).clip(*np.ldexp([low, high], -fraction))
        if apart == 1:
            return to_fixed(exact[:-1], fraction, bits)
        seen = np.abs(points) <= largest_values[step.source]
        seen &= np.abs(results) <= largest_values[step.target]  # false for what is no number
        off = np.abs(np.interp(points, points[::2], exact[::2]) - exact)[seen].max()
        if off <= _FOLLOWED * max(np.abs(exact[seen]).max(), np.ldexp(1, -fraction)):
            return to_fixed(exact[::2], fraction, bits)
    raise NoKernelError(
        "E741", f"{step.name}: its function changes too fast for a table of numbers that are "
        f"{APART[-1]} apart", None, "Scale its data, or use another function.",
    )  # fmt: skip


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
        if not isinstance(step, Weighted | Table | Multiply):
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

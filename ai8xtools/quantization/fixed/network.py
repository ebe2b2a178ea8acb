"""The integers of a whole network with fixed-point weights.

Each map has one format for all that write and read it; each layer has its own width and factor D.
"""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence

from ai8xtools.diagnostics.errors import InputError
from ai8xtools.quantization.fixed.division import Division
from ai8xtools.quantization.fixed.layer import FixedLayer, fixed_layer
from ai8xtools.quantization.fixed.length import (
    FEW,
    LONG,
    SHORT,
    Lengths,
    choose_lengths,
    weight_sqnr_db,
)
from ai8xtools.quantization.fixed.numbers import q_format
from ai8xtools.quantization.fixed.ranges import Rule, Summary, data_magnitude, weight_magnitude
from ai8xtools.quantization.q15.graph import Add, Clip, Concat, Graph, Pool, Step, Weighted
from ai8xtools.quantization.q15.network import leaders_of, measured_maps
from ai8xtools.values import frozen


@frozen
class FixedRules:
    """How integers are chosen.

    `bits` is 1, 2, 4, 8, 16, or None: for each layer by `threshold_db`, lowered until the weights
    fit `budget` bytes, if there is one; with `few` all of these are possible, else 8 or 16.
    """

    bits: int | None
    threshold_db: float
    division: Division
    weights: Rule
    data: Rule
    budget: int | None = None
    few: bool = False


@frozen
class FixedNetwork:
    """A network in integers: `fractions` of all maps, `layers` by their targets."""

    graph: Graph
    data_bits: int
    fractions: tuple[int, ...]
    layers: Mapping[int, FixedLayer]
    lengths: Lengths


def fix_network(graph: Graph, ranges: Sequence[Summary | None], rules: FixedRules) -> FixedNetwork:
    """Return the integers of a network; `ranges` are the statistics of its maps.

    Raises InputError: E741 for shifts beyond 30, E713 if the weights do not fit the budget, E924
    for steps without a layer and limits that no format has.
    """
    _check_steps(graph)
    steps = [step for step in graph.steps if isinstance(step, Weighted)]
    lengths = _lengths(steps, rules)
    data_bits = LONG if rules.bits in (None, LONG) else SHORT
    leaders = leaders_of(graph)
    fractions: dict[int, int] = {}
    for tensor in measured_maps(graph):
        summary = ranges[tensor]
        assert summary is not None
        fraction = q_format(data_magnitude(summary, rules.data), data_bits).fraction
        fractions[leaders[tensor]] = min(fraction, fractions.get(leaders[tensor], fraction))
    while True:
        layers: dict[int, FixedLayer] = {}
        lowered = False
        for step, bits in zip(steps, lengths.bits, strict=True):
            leader = leaders[step.target]
            layer = fixed_layer(
                step.weights,
                step.bias if step.bias.any() else None,
                bits=bits,
                data_bits=data_bits,
                division=rules.division,
                magnitude=weight_magnitude(step.weights, rules.weights),
                in_fraction=fractions[leaders[step.source]],
                out_fraction=fractions[leader],
                name=step.name,
            )
            layers[step.target] = layer
            lowered |= layer.out_fraction < fractions[leader]
            fractions[leader] = layer.out_fraction
        if not lowered:
            map_fractions = tuple(fractions.get(leader, 0) for leader in leaders)
            return FixedNetwork(graph, data_bits, map_fractions, layers, lengths)


def _lengths(steps: Sequence[Weighted], rules: FixedRules) -> Lengths:
    """Return the widths of all weighted steps, or raise InputError E713."""
    few = {
        bits: [
            weight_sqnr_db(step.weights, bits, rules.division,
                           weight_magnitude(step.weights, rules.weights))
            for step in steps
        ]
        for bits in (*FEW, SHORT)
    }  # fmt: skip
    ratios = few.pop(SHORT)
    sizes = [step.weights.size for step in steps]
    if rules.bits is not None:
        size = sum(-(-count * rules.bits // 8) for count in sizes)
        lengths = Lengths((rules.bits,) * len(steps), None, size, tuple(ratios), True)
        fits = rules.budget is None or lengths.size_bytes <= rules.budget
    else:
        lengths = choose_lengths(
            ratios, sizes, rules.threshold_db, rules.budget, few if rules.few else None
        )
        fits = lengths.fits
    if not fits:
        raise InputError(
            "E713",
            f"the weights take {lengths.size_bytes:,} bytes with the fewest bits that are allowed, "
            f"the limit is {rules.budget:,}",
            "--flash",
            "Use a smaller network, or more flash.",
        )
    return lengths


def _check_steps(graph: Graph) -> None:
    """Raise InputError E924 for steps without a layer, and for limits that no format has."""
    without = [step.name for step in graph.steps if not _has_layer(step)]
    if without:
        raise InputError(
            "E924",
            f"fixed-point weights come with no layer for {', '.join(without)}",
            remedy="quantize.py --device MCU, then ai8xize.py --device MCU --container FILE.nnb.",
        )
    for step in graph.steps:
        if not isinstance(step, Clip):
            continue
        high = step.high == math.inf or _saturating(step.high)
        low = step.low in (0.0, -math.inf) or (step.low == -step.high and high)
        if not (high and low):
            raise InputError(
                "E924",
                f"{step.name} limits values to {step.low:g}..{step.high:g}",
                remedy="Use ReLU, or limits that are powers of two.",
            )


def _has_layer(step: Step) -> bool:
    match step:
        case Weighted():
            return step.spread == (1, 1) and step.extra == (0, 0)
        case Pool():
            return not step.ceil
        case _:
            return isinstance(step, Clip | Add | Concat)


def _saturating(limit: float) -> bool:
    """Whether a limit is a power of two, up to a step of 8 bits."""
    return any(limit > 0 and math.frexp(value)[0] == 0.5 for value in (limit, limit * 128 / 127))

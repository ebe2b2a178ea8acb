"""Fewer cycles at the same cost: starts that let data pass through in fewer steps.

Source: docs/hardware/execution.md, "Latency"; docs/placement.md, "The search".
"""

from __future__ import annotations

from dataclasses import replace
from random import Random

from ai8xtools.reading.progress import tracked
from ai8xtools.synthesis.arrange.decode import DecodedPlaces, Try, decode
from ai8xtools.synthesis.arrange.search import repaired
from ai8xtools.synthesis.arrange.values import Problem
from ai8xtools.synthesis.network import Layer
from device.chip import GROUPS, PROCESSORS_PER_GROUP

TRIES = 200
_SEED = 2


def polished(problem: Problem, decoded: DecodedPlaces) -> DecodedPlaces:
    """Return places with the fewest cycles of those tried, `decoded` if none has fewer."""
    units = _units_that_matter(problem)
    best, least = decoded, cycles(problem, decoded)
    if not units or not least:
        return decoded
    random = Random(_SEED)
    for _ in tracked("Searching for fewer cycles", range(TRIES)):
        starts = list(best.tried.starts)
        for unit in random.sample(units, min(len(units), random.randint(1, 2))):
            starts[unit] = random.choice(problem.units[unit].starts)
        tried = Try(repaired(problem, starts), best.tried.cells, best.tried.kernels)
        changed = decode(problem, tried)
        if not changed.cost and (now := cycles(problem, changed)) < least:
            best, least = changed, now
    return best


def simplified(problem: Problem, decoded: DecodedPlaces) -> DecodedPlaces:
    """Return places without the changes of the search that gained nothing.

    Kernels go back to the loader's order, units to lower starts, where everything still fits in no
    more cycles.
    """
    best, least = decoded, cycles(problem, decoded)

    def accepted(tried: Try) -> bool:
        nonlocal best
        changed = decode(problem, tried)
        fits = not changed.cost and cycles(problem, changed) <= least
        best = changed if fits else best
        return fits

    if decoded.tried.kernels is not None:
        accepted(replace(best.tried, kernels=None))
    for number, unit in enumerate(tracked("Simplifying places", problem.units)):
        for start in [s for s in unit.starts if s < best.tried.starts[number]]:
            starts = list(best.tried.starts)
            starts[number] = start
            if accepted(replace(best.tried, starts=tuple(starts))):
                break
    return best


def _units_that_matter(problem: Problem) -> list[int]:
    """Return the units that are read by layers whose cycles depend on places."""
    units = set()
    for layer, reads in zip(problem.network.executed(), problem.reads, strict=True):
        if not layer.has_weights or _kernels_in_front(layer):
            units |= {problem.unit_of[t] for t in reads}
    return sorted(units)


def _kernels_in_front(layer: Layer) -> int:
    """Return the cycles that each kernel column in front of a layer's own costs."""
    passes = -(-layer.in_channels // 64)
    if layer.pool_first or (passes == 1 and layer.operands == 1):
        return 0
    (rows, columns), (down, across), taps = layer.pooled_dim, layer.pad, layer.kernel
    return (
        (rows + 2 * down - taps[1] + 1) * across
        + (columns + 2 * across - taps[0] + 1) * down
        - down * across
    )


def cycles(problem: Problem, decoded: DecodedPlaces) -> int:
    """Return the part of the cycles that depends on places."""
    total = 0
    for position, layer in enumerate(problem.network.executed()):
        if layer.has_weights:
            total += _kernels_in_front(layer) * decoded.columns.get(layer.index, 0)
            continue
        mask = decoded.processors(problem, position)
        most = max((mask >> PROCESSORS_PER_GROUP * g & 0xFFFF).bit_count() for g in range(GROUPS))
        rows, columns = layer.pooled_dim
        passes = -(-layer.in_channels // 64)
        total += rows * columns * passes * -(-most // 4)
    return total

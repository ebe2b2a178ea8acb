"""The search: first tries that fit most networks, then changes of the best one.

Tries are counted, not timed, and the random numbers have a fixed seed: the same network gets the
same places on every machine.
Source: docs/placement.md, "The search".
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import replace
from random import Random

from ai8xtools.reading.progress import progress, tracked
from ai8xtools.synthesis.arrange.construct import LayoutConstructor
from ai8xtools.synthesis.arrange.decode import (
    DecodedPlaces,
    Try,
    decode,
    orders_of_cells,
    processors_of_unit,
)
from ai8xtools.synthesis.arrange.packing import Packer, packer_of
from ai8xtools.synthesis.arrange.values import Problem
from device.chip import PROCESSORS

TRIES = 2000
PACKING_STEPS = 66_000
"""Steps of the search that packs kernels like rectangles; a step takes some 20 microseconds."""
_STEPS_OF_TRY = 20
"""Steps that a try is worth."""
_MORE_ORDERS = 40
"""Further orders of the cells that are tried where kernels fit and data does not."""
CONSTRUCTIONS = 40
"""How many of them build places up anew, unit by unit."""
_AFTER_PACKING = 20
"""Divides the length of the search after packing has failed: nothing else fills memories better."""
_STEPS = 40
"""Orders of the units that are compared for each of these."""
_SEED = 1


def search(problem: Problem, tries: int = TRIES) -> tuple[DecodedPlaces, int]:
    """Return the best places found, of cost 0 if everything fits, and the number of tries."""
    best: DecodedPlaces | None = None
    count = 0
    for tried in _first_tries(problem):
        count += 1
        decoded = decode(problem, tried)
        if best is None or decoded.cost < best.cost:
            best = decoded
        if not best.cost:
            return best, count
    assert best is not None
    random = Random(_SEED)
    packer = packer_of(problem, random)
    share = 1
    if packer is not None:
        best, count = _pack(problem, packer, best, count, tries, random)
        share = _AFTER_PACKING
    return (best, count) if not best.cost else _improve(problem, best, count, tries, share)


def _pack(
    problem: Problem, packer: Packer, best: DecodedPlaces, count: int, tries: int, random: Random
) -> tuple[DecodedPlaces, int]:
    """Pack the kernels like rectangles, and look whether the data finds room then."""
    orders = orders_of_cells(problem)
    for packed in packer.packings(PACKING_STEPS * tries // TRIES):
        decoded: DecodedPlaces | None = None
        for number in range(len(orders) + _MORE_ORDERS):
            if number < len(orders):
                cells = orders[number]
            else:
                assert decoded is not None
                cells = _moved(decoded.tried.cells, random)
            count += 1
            packer.steps += _STEPS_OF_TRY
            now = decode(problem, Try(packed.starts, cells, packed.loads))
            decoded = now if decoded is None or now.cost <= decoded.cost else decoded
            if not decoded.cost:
                return decoded, count
        best = decoded if decoded is not None and decoded.cost < best.cost else best
    return best, count


def _first_tries(problem: Problem) -> Iterator[Try]:
    """Yield tries for each way to begin: all at 0, and spread by three orders of the units."""
    orders = orders_of_cells(problem)
    kernels = _kernel_orders(problem)
    for starts in _first_starts(problem):
        for cells in orders:
            yield Try(starts, cells)
        for kernel in kernels:
            yield Try(starts, orders[3], kernel)


def _kernel_orders(problem: Problem) -> list[tuple[int, ...]]:
    """Return orders of kernels apart from the loader's: by width and columns, by columns."""
    loads = problem.loads
    widths = [sum(problem.tensors[t].width for t in load.reads) for load in loads]
    numbers = range(len(loads))
    return [
        tuple(sorted(numbers, key=lambda i: (-widths[i], -loads[i].columns))),
        tuple(sorted(numbers, key=lambda i: -loads[i].columns)),
    ]


def _first_starts(problem: Problem) -> Iterator[tuple[int, ...]]:
    """Yield starts: the lowest, and those at which the fullest processor holds least."""
    yield repaired(problem, [min(unit.starts) for unit in problem.units])
    units = range(len(problem.units))
    load = [_columns_read(problem, u) for u in units]
    width = [processors_of_unit(problem, u) for u in units]
    yield _spread(problem, sorted(units, key=lambda u: (-width[u], -load[u])), load)
    yield _spread(problem, sorted(units, key=lambda u: -width[u] * load[u]), load)
    yield _spread(problem, list(units), load)
    sides = [unit.starts[0 if u % 2 else -1] for u, unit in enumerate(problem.units)]
    yield repaired(problem, sides)


def _columns_read(problem: Problem, unit: int) -> int:
    """Return the columns of the layers that read a unit's tensors."""
    members = set(problem.units[unit].members)
    return sum(load.columns for load in problem.loads if members.intersection(load.reads))


def _spread(problem: Problem, order: Sequence[int], load: Sequence[int]) -> tuple[int, ...]:
    """Give each unit the start at which its processors hold least so far."""
    filled = [0] * PROCESSORS
    starts: dict[int, int] = {}
    for u in order:
        width = processors_of_unit(problem, u)
        starts[u] = min(problem.units[u].starts, key=lambda s: (max(filled[s : s + width]), s))
        for processor in range(starts[u], starts[u] + width):
            filled[processor] += load[u]
    return repaired(problem, [starts[u] for u in sorted(starts)])


def repaired(problem: Problem, starts: list[int]) -> tuple[int, ...]:
    """Move units upward until the parts of each join stand behind each other, where that goes."""
    for parts in 3 * problem.joins:  # moving parts for one join may break another one
        _in_order(problem, parts, starts)
    return tuple(starts)


def _in_order(problem: Problem, parts: Sequence[int], starts: list[int]) -> None:
    """Move the parts of one join."""
    spans = [problem.tensors[part].room for part in parts]
    place, last = 0, PROCESSORS - sum(spans)
    for part, span in zip(parts, spans, strict=True):
        unit, distance = problem.unit_of[part], problem.distance[part]
        legal = [s for s in problem.units[unit].starts if place <= s + distance <= last]
        if starts[unit] not in legal and legal:
            starts[unit] = min(legal)
        place = starts[unit] + distance + span
        last += span


def _improve(
    problem: Problem, best: DecodedPlaces, count: int, tries: int, share: int
) -> tuple[DecodedPlaces, int]:
    """Change the best try at random as long as something does not fit.

    Only one `share` of the tries is made.
    """
    random = Random(_SEED)
    last = count + tries // share
    constructions = min(CONSTRUCTIONS, tries // 4) // share
    best, count = _build(problem, best, count, constructions, random)
    with progress("Searching for places, at most", last - count) as advance:
        while best.cost and count < last:
            count += 1
            decoded = decode(problem, _changed(problem, best.tried, random))
            if decoded.cost <= best.cost:
                best = decoded
            advance(1)
    return best, count


def _build(
    problem: Problem, best: DecodedPlaces, count: int, tries: int, random: Random
) -> tuple[DecodedPlaces, int]:
    """Build places up in changing orders of the units, from that of their sizes on."""
    constructor = LayoutConstructor(problem)
    order = constructor.order_by_size()
    current = constructor.build(order)
    for _ in tracked("Building places, at most", range(tries)):
        tried = replace(current.tried, starts=repaired(problem, list(current.tried.starts)))
        decoded = decode(problem, tried)
        count += 1
        if decoded.cost < best.cost:
            best = decoded
        if not best.cost:
            break
        for _ in range(_STEPS):
            changed = _moved(order, random)
            built = constructor.build(changed)
            if built.surplus <= current.surplus:
                order, current = changed, built
    return best, count


def _changed(problem: Problem, tried: Try, random: Random) -> Try:
    """Return a try with some units elsewhere, or some cells or kernels in another order."""
    starts, cells, kernels = list(tried.starts), tried.cells, tried.kernels
    while _by_chance(random):
        unit = random.randrange(len(starts))
        starts[unit] = random.choice(problem.units[unit].starts)
    if _by_chance(random):
        cells = _moved(cells, random)
    if problem.loads and _by_chance(random):
        kernels = _moved(kernels or tuple(range(len(problem.loads))), random)
    return Try(repaired(problem, starts), cells, kernels)


def _by_chance(random: Random) -> bool:
    return random.choice((False, True))


def _moved(order: tuple[int, ...], random: Random) -> tuple[int, ...]:
    """Take a number, or several, out of an order and put them in elsewhere."""
    changed = list(order)
    while True:
        item = changed.pop(random.randrange(len(order)))
        changed.insert(random.randrange(len(order)), item)
        if _by_chance(random):
            return tuple(changed)

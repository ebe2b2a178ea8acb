"""Kernels as rectangles: what stands together, and what it needs of both memories.

Source: docs/placement.md, "The search".
"""

from __future__ import annotations

from ai8xtools.synthesis.arrange.values import Problem
from ai8xtools.values import frozen
from device.chip import PROCESSORS, PROCESSORS_PER_INSTANCE


@frozen
class KernelBlock:
    """The kernels of a load: `left` and `width` in instances, `height` in blocks of columns.

    `left` counts from the start of the group.
    """

    load: int
    group: int
    left: int
    width: int
    height: int

    def always(self, starts: tuple[int, ...]) -> range:
        """Return the instances that it covers wherever it is."""
        return range(starts[-1] + self.left, starts[0] + self.left + self.width)


@frozen
class Held:
    """Data of a group: instances, words, and the positions between which it is alive."""

    left: int
    width: int
    words: int
    born: int
    dies: int


@frozen
class Group:
    """Units whose distances are known, with these in processors; `starts` are instances."""

    units: tuple[tuple[int, int], ...]
    starts: tuple[int, ...]
    blocks: tuple[KernelBlock, ...]
    data: tuple[Held, ...]


def groups_of(problem: Problem) -> tuple[Group, ...] | None:
    """Return the groups of a problem; None where kernels have given places or are scattered.

    Units whose tensors one layer reads stand one behind the other, in the order of the join.
    """
    if any(load.fixed is not None for load in problem.loads):
        return None
    if any(s % PROCESSORS_PER_INSTANCE for unit in problem.units for s in unit.starts):
        return None
    places = _joined(problem)
    roots = list(dict.fromkeys(root for root, _ in places))
    groups = [_group(problem, n, root, places) for n, root in enumerate(roots)]
    return tuple(group for group in groups if group is not None) if all(groups) else None


def _joined(problem: Problem) -> list[tuple[int, int]]:
    """Return the group (by its first unit) and the place in it of each unit."""
    places = [(unit, 0) for unit in range(len(problem.units))]
    for load in problem.loads:
        end = None
        first, *_ = load.reads
        for part in load.reads:
            unit, distance = problem.unit_of[part], problem.distance[part]
            root, place = places[unit]
            base, begin = places[problem.unit_of[first]]
            if end is None:
                end = begin + problem.distance[first]
            if root != base:
                moved = end - place - distance
                places = [(base, p + moved) if r == root else (r, p) for r, p in places]
            end = places[unit][1] + distance + problem.tensors[part].room
    low: dict[int, int] = {}
    for root, place in places:
        low[root] = min(low.get(root, place), place)
    return [(root, place - low[root]) for root, place in places]


def _group(problem: Problem, number: int, root: int, places: list[tuple[int, int]]) -> Group | None:
    """Return a group; None if its units cannot begin together."""
    units = [(unit, place) for unit, (r, place) in enumerate(places) if r == root]
    inside = dict(units)
    starts = set(range(PROCESSORS // PROCESSORS_PER_INSTANCE))
    for unit, place in units:
        starts &= {(s - place) // PROCESSORS_PER_INSTANCE for s in problem.units[unit].starts}
    if not starts:
        return None

    def across(tensors: tuple[int, ...]) -> tuple[int, int]:
        begins = [inside[problem.unit_of[t]] + problem.distance[t] for t in tensors]
        ends = [b + problem.tensors[t].span for b, t in zip(begins, tensors, strict=True)]
        left = min(begins) // PROCESSORS_PER_INSTANCE
        return left, -(-max(ends) // PROCESSORS_PER_INSTANCE) - left

    blocks, seen = [], set()
    for i, load in enumerate(problem.loads):
        first, *_ = load.reads
        if problem.unit_of[first] in inside and (load.content, load.reads) not in seen:
            seen.add((load.content, load.reads))
            blocks.append(KernelBlock(i, number, *across(load.reads), load.blocks))
    data = [] if problem.overlaps else [
        Held(*across((i,)), t.words * problem.step[i], t.born, t.dies)
        for i, t in enumerate(problem.tensors)
        if problem.unit_of[i] in inside and len(problem.cells[problem.cell_of[i]].members) == 1
    ]  # fmt: skip
    return Group(tuple(units), tuple(sorted(starts)), tuple(blocks), tuple(data))

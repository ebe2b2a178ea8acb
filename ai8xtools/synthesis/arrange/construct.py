"""Places built up one unit at a time, each where kernels and data reach least high.

The order of the units is what is varied. Units begin at first processors of memory instances, so
kernels are counted by instance here.
Source: docs/placement.md, "The search".
"""

from __future__ import annotations

from collections.abc import Sequence
from functools import lru_cache

from ai8xtools.synthesis.arrange.decode import Try, instance_mask, lowest_offset
from ai8xtools.synthesis.arrange.memory import lowest_run
from ai8xtools.synthesis.arrange.values import BLOCK, Problem
from ai8xtools.values import frozen

_TOO_HIGH = 4.0


@lru_cache(maxsize=4096)
def _instances(mask: int) -> tuple[int, ...]:
    return tuple(i for i in range(16) if mask >> i & 1)


@frozen
class BuiltTry:
    """A try made for an order of units, and by how much its memories overflow."""

    tried: Try
    surplus: float


class LayoutConstructor:
    """Builds places for any order of the units of one problem."""

    def __init__(self, problem: Problem) -> None:
        self.problem = problem
        self.blocks = problem.chip.kernel_columns // BLOCK
        self.members = [unit.members for unit in problem.units]
        self.masks = [
            [
                [instance_mask(problem.tensors[i].pattern << s + problem.distance[i]) for i in m]
                for s in unit.starts
            ]
            for unit, m in zip(problem.units, self.members, strict=True)
        ]
        self.readers: list[list[int]] = [[] for _ in problem.units]
        for number, load in enumerate(problem.loads):
            for unit in sorted({problem.unit_of[t] for t in load.reads}):
                self.readers[unit].append(number)
        self.meeting = _meeting(problem)

    def order_by_size(self) -> tuple[int, ...]:
        """Return the units in descending order of what they need."""
        sizes = _sizes(self.problem)
        return tuple(sorted(range(len(sizes)), key=lambda u: -sizes[u]))

    def build(self, order: Sequence[int]) -> BuiltTry:
        """Place the units one after the other."""
        problem = self.problem
        taken = [0] * 16
        held: dict[int, int] = {}
        offsets: dict[int, int] = {}
        starts: dict[int, int] = {}
        loads: list[int] = []
        surplus = 0.0
        for unit in order:
            score, choice = self._best(unit, taken, held, offsets)
            surplus += max(0.0, score - 1.0)
            starts[unit] = problem.units[unit].starts[choice]
            held |= dict(zip(self.members[unit], self.masks[unit][choice], strict=True))
            for number in self.readers[unit]:
                mask = self._mask_of(number, held)
                first = None if mask is None else self._find(number, mask, taken)
                if mask is not None:
                    loads.append(number)
                if mask is not None and first is not None:
                    blocks = (1 << problem.loads[number].blocks) - 1 << first
                    for instance in _instances(mask):
                        taken[instance] |= blocks
            for tensor in self.members[unit]:
                cell = problem.cell_of[tensor]
                if cell not in offsets:
                    offsets[cell] = self._lowest(cell, held, offsets)
        rest = [i for i in range(len(problem.loads)) if i not in set(loads)]
        places = tuple(starts[unit] for unit in range(len(problem.units)))
        return BuiltTry(Try(places, tuple(offsets), (*loads, *rest)), surplus)

    def _best(
        self, unit: int, taken: list[int], held: dict[int, int], offsets: dict[int, int]
    ) -> tuple[float, int]:
        """Return how high the higher memory reaches at least, and the start (by number) for it."""
        candidates = []
        for choice, masks in enumerate(self.masks[unit]):
            now = {**held, **dict(zip(self.members[unit], masks, strict=True))}
            top = max(self._kernel_top(unit, now, taken), self._data_top(unit, now, offsets))
            candidates.append((top, choice))
        return min(candidates)

    def _mask_of(self, number: int, held: dict[int, int]) -> int | None:
        """Return the instances of a layer's processors; None as long as some are open."""
        union = 0
        for part in self.problem.loads[number].reads:
            mask = held.get(part)
            if mask is None:
                return None
            union |= mask
        return union

    def _find(self, number: int, mask: int, taken: list[int]) -> int | None:
        used = 0
        for instance in _instances(mask):
            used |= taken[instance]
        free = (1 << 2 * self.blocks) - 1 & ~used  # what is beyond the memory counts as surplus
        return lowest_run(free, self.problem.loads[number].blocks)

    def _kernel_top(self, unit: int, held: dict[int, int], taken: list[int]) -> float:
        """Return how high the kernels of a unit's readers reach, as a part of the memory."""
        top, stacked = 0.0, 0
        for number in self.readers[unit]:
            mask = self._mask_of(number, held)
            if mask is None:
                continue
            first = self._find(number, mask, taken)
            stacked += self.problem.loads[number].blocks
            top = max(top, _TOO_HIGH if first is None else (first + stacked) / self.blocks)
        return top

    def _data_top(self, unit: int, held: dict[int, int], offsets: dict[int, int]) -> float:
        """Return how high the tensors of a unit reach, as a part of the memory."""
        tops = []
        for tensor in self.members[unit]:
            cell = self.problem.cell_of[tensor]
            offset = offsets[cell] if cell in offsets else self._lowest(cell, held, offsets)
            tops.append(offset + self.problem.cells[cell].words)
        return max(tops) / self.problem.capacity

    def _lowest(self, cell: int, held: dict[int, int], offsets: dict[int, int]) -> int:
        """Return the lowest offset of a cell beside those that have one."""
        fixed = self.problem.cells[cell].fixed
        if fixed is not None:
            return fixed
        rivals = []
        for member in self.problem.cells[cell].members:
            mine = held.get(member, 0)
            for other, neighbour, below, above in self.meeting[member]:
                if neighbour in offsets and mine & held.get(other, 0):
                    rivals.append((offsets[neighbour], below, above))
        return lowest_offset(rivals)


def _sizes(problem: Problem) -> list[float]:
    """Return the part of both memories that each unit needs."""
    kernels = problem.chip.kernel_columns * 64
    data = problem.capacity * 16
    sizes = []
    for members in (unit.members for unit in problem.units):
        columns = sum(
            load.columns
            * max((problem.tensors[t].width for t in load.reads if t in members), default=0)
            for load in problem.loads
        )
        words = sum(problem.tensors[i].words * -(-problem.tensors[i].width // 4) for i in members)
        sizes.append(columns / kernels + words / data)
    return sizes


def _meeting(problem: Problem) -> list[list[tuple[int, int, int, int]]]:
    """Return, by tensor, the tensors of other cells that are alive with it, and how far it must
    stay below and above each.
    """
    meeting: list[list[tuple[int, int, int, int]]] = [[] for _ in problem.tensors]
    words = [t.words * s for t, s in zip(problem.tensors, problem.step, strict=True)]
    for a, b in problem.pairs:
        under = problem.overlaps.get((a, b), words[a])
        over = problem.overlaps.get((b, a), words[b])
        meeting[a].append((b, problem.cell_of[b], under, over))
        meeting[b].append((a, problem.cell_of[a], over, under))
    return meeting

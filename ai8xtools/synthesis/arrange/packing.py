"""Kernels packed like rectangles: the lowest gap is filled or given up, step by step.

Seen from the side, kernels are rectangles: instances of processors wide, blocks of columns high.
The gap that lies lowest gets a rectangle at one of its ends, or is left empty. What has been left
empty cannot be more than the memory has in excess, and each processor must still hold what covers
it wherever things stand: with little room to spare few ways are left, and the search through them
is short. It begins anew, in another order, whenever it has taken too many steps.
Source: docs/placement.md, "The search".
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Generator, Iterator
from dataclasses import dataclass, field
from random import Random

from ai8xtools.reading.progress import progress
from ai8xtools.synthesis.arrange.blocks import Group, KernelBlock, groups_of
from ai8xtools.synthesis.arrange.values import BLOCK, Problem
from ai8xtools.values import frozen
from device.chip import INSTANCES, PROCESSORS_PER_INSTANCE

_FIRST_STEPS = 100
"""Steps before the first new beginning; later ones take up to this many times the sequence 1, 1,
2, 1, 1, 2, 4, ..."""

_THOROUGH = 4
"""Every so many beginnings, gaps are left empty even where something would fit in."""
_AFTERWARDS = 50
"""Steps after a result: what comes next is much like it."""


@frozen
class PackedStarts:
    """Starts by unit, and the loads from the lowest upward."""

    starts: tuple[int, ...]
    loads: tuple[int, ...]


Found = Generator[PackedStarts, None, bool]

_Words = defaultdict[int, list[int]]
"""What each instance holds, by position."""


@dataclass(slots=True)
class _State:
    """What has been placed: the height of each instance, the place of each group, the order.

    `needed` is what each instance must hold yet, `spare` the room that may be left empty, `words`
    what each instance holds at each position.
    """

    heights: list[int]
    needed: list[int]
    spare: int
    rest: list[KernelBlock]
    words: _Words
    places: dict[int, int] = field(default_factory=dict)
    order: list[int] = field(default_factory=list)


class Packer:
    """Packs the kernels of one problem."""

    def __init__(self, problem: Problem, groups: tuple[Group, ...], random: Random) -> None:
        self.problem = problem
        self.groups = groups
        self.blocks = [block for group in groups for block in group.blocks]
        self.limit = problem.chip.kernel_columns // BLOCK
        self.random = random
        self.steps = 0
        self._stop = 0
        self._strict = True
        self._vain: set[tuple[tuple[int, ...], ...]] = set()
        self._narrowest = min((block.width for block in self.blocks), default=0)
        self._flush = self._exact = False
        self._sizes: dict[int, float] = {}

    def packings(self, steps: int) -> Iterator[PackedStarts]:
        """Yield packings of all kernels, until a number of steps has been taken."""
        run = 0
        with progress("Packing kernels, at most", steps) as advance:
            while self.steps < steps:
                run += 1
                begin = self.steps
                self._stop = min(begin + _FIRST_STEPS * _luby(run), steps)
                self._choose_order(run)
                self._strict = run % _THOROUGH != 0
                yield from self._filled(self._beginning())
                if self.steps < self._stop and not self._strict:
                    return  # everything has been tried
                advance(self.steps - begin)

    def _choose_order(self, run: int) -> None:
        """Choose what comes first in a run: large blocks, of changing importance of both sides, or
        those that end where their neighbours do.
        """
        random = self.random
        wide, high = (1.0, 1.0) if run % 3 == 1 else (random.uniform(0, 2), random.uniform(0, 2))
        self._flush, self._exact = run % 3 == 0, random.random() < 0.8
        self._sizes = {
            b.load: b.width**wide * b.height**high * random.uniform(0.3, 1) for b in self.blocks
        }

    def _beginning(self) -> _State:
        needed = [0] * INSTANCES
        for group in self.groups:
            for block in group.blocks:
                for i in block.always(group.starts):
                    needed[i] += block.height
        volume = sum(block.width * block.height for block in self.blocks)
        spare = INSTANCES * self.limit - volume
        words: _Words = defaultdict(lambda: [0] * INSTANCES)
        return _State([0] * INSTANCES, needed, spare, list(self.blocks), words)

    def _filled(self, state: _State) -> Found:
        """Yield packings that begin with what has been placed; return whether there are none."""
        self.steps += 1
        if not state.rest:
            self._stop = min(self._stop, self.steps + _AFTERWARDS)
            yield self._result(state)
            return False
        key = self._key(state)
        if self._strict and key in self._vain:
            return True
        vain = yield from self._continued(state)
        if vain and self.steps < self._stop:
            self._vain.add(key)
        return vain

    def _key(self, state: _State) -> tuple[tuple[int, ...], ...]:
        """Return the part of the state on which the placement of the rest depends, apart from the
        data.
        """
        tied = tuple(
            x
            for b in state.rest
            if b.group in state.places
            for x in (b.load, state.places[b.group])
        )
        return tuple(state.heights), tuple(block.load for block in state.rest), tied

    def _continued(self, state: _State) -> Found:
        """Fill the lowest gap in all ways."""
        low = min(state.heights)
        left = state.heights.index(low)
        right = left
        while right < INSTANCES and state.heights[right] == low:
            right += 1
        candidates = self._candidates(state, low, left, right)
        vain = True
        for block, at in candidates:
            if self.steps >= self._stop:
                return False
            vain = (yield from self._with(state, block, at)) and vain
        if self.steps >= self._stop:
            return False
        lowest = min((block.height for block, _ in candidates), default=self.limit)
        return (yield from self._without(state, low, left, right, lowest)) and vain

    def _candidates(
        self, state: _State, low: int, left: int, right: int
    ) -> list[tuple[KernelBlock, int]]:
        """Return what fits into the gap, at its ends; what fills it, and what is large, first.

        What leaves no room beside itself may as well stand below everything else.
        """
        candidates = []
        alone = [b for b in state.rest if INSTANCES - b.width < self._narrowest]
        walls = _walls(state, left, right, self.limit)
        for block in alone[:1] if right - left == INSTANCES and alone else state.rest:
            top = low + block.height
            if block.width > right - left or top > self.limit:
                continue
            place = state.places.get(block.group)
            exact = block.width == right - left
            for at in {left, right - block.width}:
                start = at - block.left
                fits = start in self.groups[block.group].starts if place is None else start == place
                if fits:
                    flush = (at == left and top == walls[0]) + (
                        at == right - block.width and top == walls[1]
                    )
                    rank = -(exact + flush) if self._flush else self._exact and not exact
                    size = self._sizes[block.load]
                    candidates.append((rank, -size, self.random.random(), block, at))
        candidates.sort(key=lambda entry: entry[:3])
        return [(block, at) for *_, block, at in candidates]

    def _with(self, state: _State, block: KernelBlock, at: int) -> Found:
        """Yield packings with a block in the gap; return whether there are none."""
        group = self.groups[block.group]
        new = block.group not in state.places
        start = at - block.left
        heights, needed = list(state.heights), list(state.needed)
        starts = group.starts if new else (start,)
        if new:
            for other in group.blocks:
                for i in other.always(starts):
                    needed[i] -= other.height
                for i in other.always((start,)):
                    needed[i] += other.height
        for i in range(at, at + block.width):
            heights[i] += block.height
            needed[i] -= block.height
        if any(h + n > self.limit for h, n in zip(heights, needed, strict=True)):
            return True
        if new and not _held(state.words, group, start, self.problem.capacity, 1):
            _held(state.words, group, start, self.problem.capacity, -1)
            return False
        places = {**state.places, block.group: start}
        rest = [b for b in state.rest if b is not block]
        order = [*state.order, block.load]
        vain = yield from self._filled(
            _State(heights, needed, state.spare, rest, state.words, places, order)
        )
        if new:
            _held(state.words, group, start, self.problem.capacity, -1)
        return vain

    def _without(self, state: _State, low: int, left: int, right: int, lowest: int) -> Found:
        """Yield packings that leave the gap empty, up to the lower one of its sides.

        Where a block would fit in whole (`lowest` is the least height), nothing is gained by that,
        unless the data stands against the block there: only some runs look for that.
        """
        sides = _walls(state, left, right, self.limit)
        depth = min(sides) - low
        spare = state.spare - depth * (right - left)
        if spare < 0 or not depth or (self._strict and lowest <= depth):
            return True
        heights = list(state.heights)
        for i in range(left, right):
            heights[i] = min(sides)
        if any(h + n > self.limit for h, n in zip(heights, state.needed, strict=True)):
            return True
        return (
            yield from self._filled(
                _State(
                    heights, state.needed, spare, state.rest, state.words, state.places, state.order
                )
            )
        )

    def _result(self, state: _State) -> PackedStarts:
        starts: dict[int, int] = {}
        for number, group in enumerate(self.groups):
            place = state.places.get(number)
            place = self.random.choice(group.starts) if place is None else place
            for unit, distance in group.units:
                starts[unit] = place * PROCESSORS_PER_INSTANCE + distance
        loads = dict.fromkeys((*state.order, *range(len(self.problem.loads))))
        return PackedStarts(tuple(starts[unit] for unit in sorted(starts)), tuple(loads))


def _walls(state: _State, left: int, right: int, limit: int) -> tuple[int, int]:
    """Return how high the sides of a gap are."""
    return (
        state.heights[left - 1] if left else limit,
        state.heights[right] if right < INSTANCES else limit,
    )


def _held(words: _Words, group: Group, start: int, capacity: int, sign: int) -> bool:
    """Add what a group holds to all positions; return whether it fits everywhere."""
    fits = True
    for entry in group.data:
        for row in (words[position] for position in range(entry.born, entry.dies + 1)):
            for i in range(start + entry.left, start + entry.left + entry.width):
                row[i] += sign * entry.words
                fits = fits and row[i] <= capacity
    return fits


def _luby(number: int) -> int:
    """Return a member of the sequence 1, 1, 2, 1, 1, 2, 4, 1, ..., from 1 on."""
    power = number.bit_length()
    if number == (1 << power) - 1:
        return 1 << power - 1
    return _luby(number - (1 << power - 1) + 1)


def packer_of(problem: Problem, random: Random) -> Packer | None:
    """Return a packer, None for a problem whose kernels are no rectangles or have given places."""
    groups = groups_of(problem)
    return None if groups is None else Packer(problem, groups, random)

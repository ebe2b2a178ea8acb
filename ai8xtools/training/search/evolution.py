"""Evolution: networks of a generation descend from the best of the one before.

Source: docs/architecture-search.md, "The search".
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass, replace
from random import Random
from typing import Any

from ai8x_nas import Architecture, SearchSpace
from ai8xtools.diagnostics.errors import InputError
from ai8xtools.reading.progress import tracked
from ai8xtools.training.search.policy import Constraints, EvolutionPolicy

_TRIES = 400
"""The most networks that are drawn for a place in the population before the search gives up."""


@dataclass(frozen=True, slots=True)
class ChipUse:
    """How much of the chip a network uses; `refusal` is why it does not fit, "" if it does."""

    weights: int
    cycles: int = 0
    kernel_columns: int = 0
    data_bytes: int = 0
    refusal: str = ""

    def excess(self, limits: Constraints) -> str:
        """Return the first constraint that is not met, "" without."""
        for name, value, most in (
            ("max_num_weights", self.weights, limits.max_weights),
            ("max_cycles", self.cycles, limits.max_cycles),
            ("max_kernel_columns", self.kernel_columns, limits.max_kernel_columns),
            ("max_data_bytes", self.data_bytes, limits.max_data_bytes),
        ):
            if most is not None and value > most:
                return f"{name} is {most:,}, it has {value:,}"
        if self.weights < limits.min_weights:
            return f"min_num_weights is {limits.min_weights:,}, it has {self.weights:,}"
        return self.refusal


@dataclass(frozen=True, slots=True)
class Candidate:
    """A network that meets all constraints; the greatest `rank` is the best."""

    architecture: Architecture
    cost: ChipUse
    rank: tuple[float, ...]
    generation: int

    def as_dict(self) -> dict[str, Any]:
        """Return plain values."""
        return {
            **self.architecture.as_dict(), "score": round(self.rank[0], 6),
            "weights": self.cost.weights, "cycles": self.cost.cycles,
            "kernel_columns": self.cost.kernel_columns, "data_bytes": self.cost.data_bytes,
            "generation": self.generation,
        }  # fmt: skip


@dataclass(frozen=True, slots=True)
class Judges:
    """The criteria for networks: costs, and how well the trained part does its task."""

    cost: Callable[[Architecture], ChipUse]
    rank: Callable[[Architecture], tuple[float, ...]]


class Evolution:
    """A search within `space`; every network is judged once. It depends on `random` alone."""

    def __init__(
        self, space: SearchSpace, policy: EvolutionPolicy, judges: Judges, random: Random
    ) -> None:
        self._space = space
        self._policy, self._judges, self._random = policy, judges, random
        self._costs: dict[Architecture, ChipUse] = {}
        self.judged: dict[Architecture, Candidate] = {}

    def run(self) -> Iterator[list[Candidate]]:
        """Yield each generation, the best first. Raises InputError E692 if nothing fits."""
        policy = self._policy
        drawn = self._fill(lambda: self._space.sample(self._random), policy.population, set())
        generation = self._judge(drawn, 0)
        if not generation:
            raise self._nothing()
        yield generation
        for number in range(1, policy.generations):
            parents = generation[: max(1, round(policy.parents * policy.population))]
            generation = self._judge(self._descendants(parents), number)
            yield generation

    def check(self) -> None:
        """Raise InputError E692 if neither the smallest nor the largest network can be chosen."""
        limits = self._policy.constraints
        least, most = (self._cost(one) for one in (self._space.smallest(), self._space.largest()))
        if least.excess(replace(limits, min_weights=0)) or most.weights < limits.min_weights:
            raise self._nothing()

    def _descendants(self, parents: list[Candidate]) -> list[Architecture]:
        policy, random = self._policy, self._random
        kept = [parent.architecture for parent in parents]
        room = policy.population - len(kept)
        mutations = min(room, round(policy.mutations * policy.population))

        def mutated() -> Architecture:
            return self._space.mutated(random.choice(kept), policy.probability, random)

        def crossed() -> Architecture:
            return self._space.crossed(random.choice(kept), random.choice(kept), random)

        taken = set(kept)
        mutants = self._fill(mutated, mutations, taken)
        return kept + mutants + self._fill(crossed, room - mutations, taken)

    def _fill(
        self, draw: Callable[[], Architecture], count: int, taken: set[Architecture]
    ) -> list[Architecture]:
        """Return up to so many networks that meet the constraints and are not `taken`."""
        architectures: list[Architecture] = []
        for _ in range(count):
            for _ in range(_TRIES):
                drawn = draw()
                if drawn in taken or self._cost(drawn).excess(self._policy.constraints):
                    continue
                taken.add(drawn)
                architectures.append(drawn)
                break
            else:
                return architectures
        return architectures

    def _cost(self, architecture: Architecture) -> ChipUse:
        if architecture not in self._costs:
            self._costs[architecture] = self._judges.cost(architecture)
        return self._costs[architecture]

    def _judge(self, architectures: list[Architecture], generation: int) -> list[Candidate]:
        for one in tracked(f"Networks of generation {generation + 1}", architectures):
            if one not in self.judged:
                rank = self._judges.rank(one)
                self.judged[one] = Candidate(one, self._cost(one), rank, generation)
        candidates = [self.judged[one] for one in architectures]
        return sorted(candidates, key=lambda c: (c.rank, -c.cost.cycles), reverse=True)

    def _nothing(self) -> InputError:
        limits = self._policy.constraints
        parts = {"smallest": self._space.smallest(), "largest": self._space.largest()}
        reasons = [
            f"of the {name}, {one}: {self._cost(one).excess(limits) or 'all are met'}"
            for name, one in parts.items()
        ]
        return InputError(
            "E692",
            f"no network meets the constraints; {'; '.join(reasons)}",
            "--nas-policy",
            "Loosen evolution_search: constraints, or choose a larger or smaller elastic network.",
        )


def frontier(candidates: list[Candidate]) -> list[Candidate]:
    """Return those that no other beats in both rank and cycles, the cheapest first."""
    best: list[Candidate] = []
    for one in sorted(candidates, key=lambda c: (c.cost.cycles, [-r for r in c.rank])):
        if not best or one.rank > best[-1].rank:
            best.append(one)
    return best

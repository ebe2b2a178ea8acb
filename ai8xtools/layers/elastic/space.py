"""The choices in an elastic network: depth, widths and kernel sizes of its units.

Source: docs/architecture-search.md, "The search space".
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass, replace
from enum import IntEnum
from random import Random
from typing import Any, assert_never

WIDTH_LEVELS = 4
"""Widths of a layer: all of its channels, three quarters, a half, a quarter."""


class Stage(IntEnum):
    """The parts that are elastic so far; each stage includes the previous ones."""

    FULL = 0
    KERNEL = 1
    DEPTH = 2
    WIDTH = 3

    @property
    def elastic(self) -> frozenset[str]:
        """What is elastic in this stage: kernels, depth, width."""
        match self:
            case Stage.FULL:
                return frozenset()
            case Stage.KERNEL:
                return frozenset({"kernel"})
            case Stage.DEPTH:
                return frozenset({"kernel", "depth"})
            case Stage.WIDTH:
                return frozenset({"kernel", "depth", "width"})
            case _:
                assert_never(self)


@dataclass(frozen=True, slots=True)
class LayerChoice:
    """A layer of a chosen network: its output channels, and rows and columns of its kernel."""

    width: int
    kernel: int


@dataclass(frozen=True, slots=True)
class Architecture:
    """A network chosen from an elastic one: the layers of each unit."""

    units: tuple[tuple[LayerChoice, ...], ...]

    def __str__(self) -> str:
        return " | ".join(
            " ".join(f"{layer.width}k{layer.kernel}" for layer in unit) for unit in self.units
        )

    def as_dict(self) -> dict[str, Any]:
        """Return plain values: widths and kernels of each unit."""
        return {
            "widths": [[layer.width for layer in unit] for unit in self.units],
            "kernels": [[layer.kernel for layer in unit] for unit in self.units],
        }


@dataclass(frozen=True, slots=True)
class UnitSpace:
    """A unit: its largest and least depth, and what each layer may have, the largest first."""

    depth: int
    least_depth: int
    widths: tuple[int, ...]
    kernels: tuple[int, ...]

    def choices(self) -> int:
        """Return how many different units there are."""
        of_layer = len(self.widths) * len(self.kernels)
        return sum(of_layer**depth for depth in range(self.least_depth, self.depth + 1))


@dataclass(frozen=True, slots=True)
class SearchSpace:
    """All networks that an elastic one contains."""

    units: tuple[UnitSpace, ...]

    def __len__(self) -> int:
        count = 1
        for unit in self.units:
            count *= unit.choices()
        return count

    def __contains__(self, architecture: Architecture) -> bool:
        return len(architecture.units) == len(self.units) and all(
            unit.least_depth <= len(layers) <= unit.depth
            and all(x.width in unit.widths and x.kernel in unit.kernels for x in layers)
            for unit, layers in zip(self.units, architecture.units, strict=True)
        )

    def largest(self) -> Architecture:
        """Return the network with everything."""
        return Architecture(
            tuple((LayerChoice(u.widths[0], u.kernels[0]),) * u.depth for u in self.units)
        )

    def smallest(self) -> Architecture:
        """Return the network with the least of everything."""
        return Architecture(
            tuple((LayerChoice(u.widths[-1], u.kernels[-1]),) * u.least_depth for u in self.units)
        )

    def levels(self, stage: Stage) -> int:
        """Return the number of steps in which a stage reaches all of its choices."""
        match stage:
            case Stage.FULL:
                return 0
            case Stage.KERNEL:
                return max(len(unit.kernels) for unit in self.units) - 1
            case Stage.DEPTH:
                return max(unit.depth - unit.least_depth for unit in self.units)
            case Stage.WIDTH:
                return max(len(unit.widths) for unit in self.units) - 1
            case _:
                assert_never(stage)

    def at(self, stage: Stage, level: int) -> SearchSpace:
        """Return the part that is open at a level of a stage: earlier stages are open wholly."""

        def opened(mine: Stage, options: int) -> int:
            if stage < mine:
                return 1
            return options if stage > mine else min(level + 1, options)

        return SearchSpace(
            tuple(
                replace(
                    unit,
                    kernels=unit.kernels[: opened(Stage.KERNEL, len(unit.kernels))],
                    widths=unit.widths[: opened(Stage.WIDTH, len(unit.widths))],
                    least_depth=unit.depth + 1
                    - opened(Stage.DEPTH, unit.depth - unit.least_depth + 1),
                )
                for unit in self.units
            )
        )  # fmt: skip

    def with_widths(self, allowed: tuple[int, ...]) -> SearchSpace | None:
        """Return the part whose layers have one of some widths; None where a unit has none."""
        units = [
            replace(unit, widths=tuple(w for w in unit.widths if w in allowed))
            for unit in self.units
        ]
        return SearchSpace(tuple(units)) if all(unit.widths for unit in units) else None

    def sample(self, random: Random) -> Architecture:
        """Draw a network: the depth of each unit first, then each of its layers."""
        return Architecture(tuple(self._unit(unit, random) for unit in self.units))

    def mutated(
        self, architecture: Architecture, probability: float, random: Random
    ) -> Architecture:
        """Draw each unit's depth, and each layer, anew with some probability."""
        return Architecture(
            tuple(
                self._mutated_unit(unit, layers, probability, random)
                for unit, layers in zip(self.units, architecture.units, strict=True)
            )
        )

    def crossed(self, one: Architecture, other: Architecture, random: Random) -> Architecture:
        """Take each unit from one of two networks."""
        return Architecture(
            tuple(random.choice(pair) for pair in zip(one.units, other.units, strict=True))
        )

    def _unit(self, unit: UnitSpace, random: Random) -> tuple[LayerChoice, ...]:
        depth = random.randint(unit.least_depth, unit.depth)
        return tuple(_layer(unit, random) for _ in range(depth))

    def _mutated_unit(
        self, unit: UnitSpace, layers: tuple[LayerChoice, ...], probability: float, random: Random
    ) -> tuple[LayerChoice, ...]:
        depth = len(layers)
        if random.random() < probability:
            depth = random.randint(unit.least_depth, unit.depth)
        kept = list(layers[:depth]) + [_layer(unit, random) for _ in range(depth - len(layers))]
        return tuple(_layer(unit, random) if random.random() < probability else x for x in kept)


def _layer(unit: UnitSpace, random: Random) -> LayerChoice:
    return LayerChoice(random.choice(unit.widths), random.choice(unit.kernels))


def widths_of(largest: int) -> tuple[int, ...]:
    """Return the widths of a layer of so many channels, the largest first; none twice."""
    parts = range(WIDTH_LEVELS, 0, -1)
    return tuple(dict.fromkeys(-(-largest * part // WIDTH_LEVELS) for part in parts))


def kernels_of(largest: int) -> tuple[int, ...]:
    """Return the sizes of a kernel that share its centre, the largest first."""
    return tuple(range(largest, 0, -2))


def architecture_of(values: Mapping[str, Any]) -> Architecture:
    """Return the network of plain values, the inverse of `Architecture.as_dict`.

    Raises ValueError, TypeError or KeyError for values of another form.
    """
    pairs: Iterator[tuple[Any, Any]] = zip(values["widths"], values["kernels"], strict=True)
    return Architecture(
        tuple(
            tuple(LayerChoice(int(w), int(k)) for w, k in zip(widths, kernels, strict=True))
            for widths, kernels in pairs
        )
    )

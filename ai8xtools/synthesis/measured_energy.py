"""What a user measured of the energy of inferences, and the model's constants that follow.

Source: docs/energy.md, "Calibration".
"""

from __future__ import annotations

import math
from collections.abc import Sequence

from ai8xtools.synthesis.program import Program
from ai8xtools.values import frozen
from device import Chip
from device.energy import (
    SUPPLY_VOLTS,
    Calibration,
    Counts,
    Energies,
    energies,
    model_joules,
    scaled,
)

CALIBRATED = "calibrated"
_SPREAD = 0.15
"""Of an inference, from constants that were calibrated."""
_DIFFERENT = 1.5
"""Networks tell both constants apart if their processors per cycle differ by this factor."""
_REPETITIONS, _WINDOW_SECONDS = 100, 0.1
"""Of the vendor's program, and the shortest time that its monitor measures well."""


@frozen
class Phase:
    """Joules and seconds of one repetition."""

    joules: float
    seconds: float


@frozen
class Measurement:
    """An inference that was measured, with weights and input unless only itself was. `counts` are
    those of its network; None: the network of this run."""

    inference: Phase
    weights: Phase | None = None
    input: Phase | None = None
    counts: Counts | None = None


@frozen
class EnergyOptions:
    """The supply in volts, the seconds between the begins of two inferences if their mean power is
    wanted, and measurements on a chip, which replace the published constants for it."""

    volts: float = SUPPLY_VOLTS[-1]
    period: float | None = None
    measurements: tuple[Measurement, ...] = ()
    chip: Chip | None = None

    def source(self, chip: Chip) -> str:
        """Return where the constants for a chip come from, CALIBRATED or "published"."""
        return CALIBRATED if self.measurements and self.chip is chip else "published"

    def calibration(self, chip: Chip, counts: Counts, mhz: float) -> Calibration | None:
        """Return what the measurements say of a network with these counts; None without them."""
        if self.chip is not chip or not self.measurements:
            return None
        return calibrated(self.measurements, counts, mhz)

    def of(self, counts: Counts, program: Program) -> Energies:
        """Return the energies of a network with these counts at the clocks of its program."""
        power, chip = program.power, program.chip
        return energies(
            counts, chip, power.clock_mhz, power.loading_mhz, pipelined=power.pipelined,
            volts=self.volts, calibration=self.calibration(chip, counts, power.clock_mhz),
        )  # fmt: skip


PUBLISHED = EnergyOptions()


def doubts(measurements: Sequence[Measurement]) -> list[str]:
    """Return what was too short to be measured well by the vendor's monitor."""
    short = [
        f"{name} took {1000 * _REPETITIONS * phase.seconds:.0f} ms"
        for one in measurements if one.weights is not None
        for name, phase in (("input", one.input), ("inference", one.inference))
        if phase is not None and _REPETITIONS * phase.seconds < _WINDOW_SECONDS
    ]  # fmt: skip
    return [f"{one} in all repetitions, less than the 100 ms that a monitor needs" for one in short]


def calibrated(measurements: Sequence[Measurement], own: Counts, mhz: float) -> Calibration:
    """Return the constants that fit measurements at a clock; `own` are this network's counts."""
    pairs = [(one.counts or own, one) for one in measurements]
    constants = _both(pairs)
    if constants is None:
        factors = [one.inference.joules / model_joules(counts) for counts, one in pairs]
        constants = scaled(model_joules(own) * math.fsum(factors) / len(factors), own)

    def each(phases: Sequence[tuple[float | None, int]]) -> float | None:
        values = [value / count for value, count in phases if value is not None and count]
        return math.fsum(values) / len(values) if values else None

    def of(name: str, unit: str, words: str) -> float | None:
        terms = [(getattr(one, name), getattr(counts, words)) for counts, one in pairs]
        value = each([(phase and getattr(phase, unit), count) for phase, count in terms])
        return None if value is None else value * 1e9

    return Calibration(
        *constants,
        _SPREAD,
        of("weights", "joules", "load_words"),
        of("input", "joules", "input_words"),
        of("weights", "seconds", "load_words"),
        of("input", "seconds", "input_words"),
        each([(one.inference.seconds * mhz * 1e6, counts.cycles) for counts, one in pairs]),
    )


def _both(pairs: Sequence[tuple[Counts, Measurement]]) -> tuple[float, float] | None:
    """Return both constants by relative least squares, None if the networks are too alike."""
    parallel = [counts.processor_cycles / counts.cycles for counts, _ in pairs]
    if max(parallel) < _DIFFERENT * min(parallel):
        return None
    rows = [
        (c.processor_cycles / one.inference.joules, c.cycles / one.inference.joules)
        for c, one in pairs
    ]
    xx, xy, yy = (math.fsum(row[i] * row[j] for row in rows) for i, j in ((0, 0), (0, 1), (1, 1)))
    x, y = (math.fsum(row[i] for row in rows) for i in (0, 1))
    determinant = xx * yy - xy * xy
    first, second = (x * yy - y * xy) / determinant, (y * xx - x * xy) / determinant
    return (first * 1e12, second * 1e12) if min(first, second) > 0 else None

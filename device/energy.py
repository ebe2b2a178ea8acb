"""How much energy the accelerator takes, by a model of published measurements, with the spread.

All of it is that of the rail VCOREA above the idle power of the running core. Not in it are
converters, the boost supply, the core itself and what the board has.
Source: docs/hardware/execution.md, "Measured energy".
"""

from __future__ import annotations

from math import log

from ai8xtools.values import frozen
from ai8xtools.values.estimate import Estimate
from device.chip import Chip
from device.times import MEASURED_SPREAD

SUPPLY_VOLTS = (1.0, 1.1)
"""Supplies at which energy has been measured; the latter is the nominal one."""
_PROCESSOR_CYCLE_PJ, _CYCLE_PJ = 27.5, 770.0
"""Of a cycle of a processor that reads, and of a cycle, at 1.0 V and 200 MHz."""
_UNPIPELINED, _UNPIPELINED_MW = 0.97, {1.0: 6.6, 1.1: 13.6}
"""Without the pipeline: the part of the energy that remains, and power that counts all the time."""
_WORD_NJ: dict[str, dict[float, tuple[float, float]]] = {
    "IPLL": {
        200: (25.5, 32.3), 100: (16.5, 21.2), 50: (12.1, 16.2), 25: (10.5, 15.3),
        12.5: (10.8, 16.8),
    },
    "PCLK": {30: (7.2, 11.1), 15: (8.2, 13.7), 7.5: (11.2, 20.1)},
}  # fmt: skip
"""Of a word of weights that the core writes, by the accelerator's clock, at both supplies."""
_INPUT = 11.8 / 12.1
"""A word of input, by one of weights."""
_INPUT_SPREAD = 0.1
IDLE_MW = {1.0: 9.4, 1.1: 11.4}
"""Of the core that waits with the PLL on; at 1.1 V by the square of the supply."""
SLEEP_MW = {"LPM": {1.0: 1.35, 1.1: 1.59}, "UPM": {1.0: 0.474, 1.1: 0.574}}
"""Of modes that keep the weights; UPM at 1.1 V by the square of the supply."""

_CORE_PJ = {1.0: 55.7, 1.1: 68.2}
"""Of a cycle of the core that is awake, at the clock of ISO."""
_CORE_SLEEP_MW = {1.0: 1.64, 1.1: 1.91}
"""Of the core in the mode SLEEP, in which the accelerator may run."""
_CORE_SPREAD = 0.4
"""Of both at other clocks, and of the chip of which they are not published."""


@frozen
class Counts:
    """What an inference consists of: sums over its layers of cycles by processors that read, and of
    cycles; words of weights that the core writes once, and of input that it writes each time."""

    processor_cycles: int
    cycles: int
    load_words: int
    input_words: int


@frozen
class Calibration:
    """What a user measured: picojoules of a cycle of a processor and of a cycle, with their spread;
    nanojoules and nanoseconds of a word of weights and of input, and the time of an inference by
    that of its cycles, each None where only an inference was measured."""

    processor_cycle_pj: float
    cycle_pj: float
    spread: float
    word_nj: float | None = None
    input_nj: float | None = None
    word_ns: float | None = None
    input_ns: float | None = None
    time_factor: float | None = None

    def joules(self, counts: Counts) -> float:
        """Return the energy of cycles."""
        return model_joules(counts, self.processor_cycle_pj, self.cycle_pj)


@frozen
class Energies:
    """Joules of an inference, of its input, and of weights and biases, which are loaded once."""

    inference: Estimate
    input: Estimate
    weights: Estimate


def energies(
    counts: Counts, chip: Chip, mhz: float, loading_mhz: float, *, pipelined: bool, volts: float,
    calibration: Calibration | None = None,
) -> Energies:  # fmt: skip
    """Return the energies of a network on a chip with these clocks of the accelerator."""
    volts = volts if chip.energy_is_published else SUPPLY_VOLTS[0]
    word = _word_nj(chip, loading_mhz, volts)
    word_spread, input_spread = chip.word_energy_spread, max(_INPUT_SPREAD, chip.word_energy_spread)
    nanojoules = [(word, word_spread), (word * _INPUT, input_spread)]
    if calibration is None:
        joules = model_joules(counts) * volts**2
        spread = chip.energy_spread
        if chip.energy_is_published and not pipelined:
            seconds = counts.cycles / mhz / 1e6
            joules = _UNPIPELINED * joules + _UNPIPELINED_MW[volts] * seconds / 1e3
    else:
        joules, spread = calibration.joules(counts), calibration.spread
        measured = calibration.word_nj, calibration.input_nj
        nanojoules = [(own, MEASURED_SPREAD) if own is not None else one
                      for own, one in zip(measured, nanojoules, strict=True)]  # fmt: skip
    (word, word_spread), (entry, input_spread) = nanojoules
    return Energies(
        Estimate.within(joules, spread),
        Estimate.within(counts.input_words * entry / 1e9, input_spread),
        Estimate.within(counts.load_words * word / 1e9, word_spread),
    )


def model_joules(
    counts: Counts, processor_cycle_pj: float = _PROCESSOR_CYCLE_PJ, cycle_pj: float = _CYCLE_PJ
) -> float:
    """Return the energy of an inference at 1.0 V, or with constants that were measured."""
    return (processor_cycle_pj * counts.processor_cycles + cycle_pj * counts.cycles) / 1e12


def scaled(measured_joules: float, counts: Counts) -> tuple[float, float]:
    """Return both constants of the model, scaled so that a network takes what was measured."""
    factor = measured_joules / model_joules(counts)
    return _PROCESSOR_CYCLE_PJ * factor, _CYCLE_PJ * factor


def period_watts(
    one: Energies, busy_seconds: float, period_seconds: float, mode: str, volts: float
) -> Estimate:
    """Return the mean power of an inference in each period, with the core asleep between them."""
    around = IDLE_MW[volts] * busy_seconds + SLEEP_MW[mode][volts] * (period_seconds - busy_seconds)
    parts = zip(_values(one.inference), _values(one.input), strict=True)
    return Estimate(*((a + b + around / 1e3) / period_seconds for a, b in parts))


def core_joules(cycles: float, asleep_seconds: float, chip: Chip, volts: float) -> Estimate:
    """Return what the core takes that is awake for so many cycles, and asleep in the mode SLEEP."""
    volts = volts if chip.energy_is_published else SUPPLY_VOLTS[0]
    joules = _CORE_PJ[volts] * cycles / 1e12 + _CORE_SLEEP_MW[volts] * asleep_seconds / 1e3
    return Estimate.within(joules, _CORE_SPREAD)


def _values(estimate: Estimate) -> tuple[float, float, float]:
    return estimate.value, estimate.low, estimate.high


def _word_nj(chip: Chip, mhz: float, volts: float) -> float:
    """Return the energy of a word at the measured clock next to this one."""
    from_bus = chip.energy_is_published and chip.apb_clock_mhz / mhz in chip.clock_dividers
    clocks = _WORD_NJ["PCLK" if from_bus else "IPLL"]
    nearest = min(clocks, key=lambda one: abs(log(one / mhz)))
    return clocks[nearest][SUPPLY_VOLTS.index(volts)]

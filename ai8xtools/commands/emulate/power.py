"""Where the time and the energy of an application go: `emulate.py PROJECT --power`.

Source: docs/applications.md, "Power".
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator, Mapping
from dataclasses import replace
from pathlib import Path

from ai8xtools.emulator import Board, EmulatorError
from ai8xtools.emulator.cpu.core import Core
from ai8xtools.emulator.cpu.phases import Phase, Phases
from ai8xtools.emulator.plain import sensor_of
from ai8xtools.emulator.project.tree import TreeOptions
from ai8xtools.emulator.state.clocks import word_microseconds
from ai8xtools.reading.tables import table
from ai8xtools.values import frozen
from ai8xtools.values.estimate import Estimate
from device import Chip
from device.energy import SUPPLY_VOLTS, Counts, core_joules, energies

_FIRST, _WEIGHTS, _CAPTURE, _INFERENCE = "start", "weights, once", "capture", "inference"
_PHASES = {
    "sensor_init": _FIRST, "{}_init": _WEIGHTS, "sensor_read": _CAPTURE, "collect": _CAPTURE,
    "load": "load", "{}_run": _INFERENCE, "decide": "decision",
}  # fmt: skip
"""What the functions of main.c begin; {} is the prefix of the network."""
_ONCE = (_FIRST, _WEIGHTS)
_CONSOLE = "console"
_CHARACTER_US = 1e6 * 10 / 115200
"""A character takes ten bits of the line."""
_SEPARATE = ("-fno-inline",)
"""Functions stay functions."""
_NETWORK = re.compile(r"(\w+)_load_(?:input|picture)")


@frozen
class Row:
    """A phase: how often it began, microseconds awake and asleep, and the energy, if known."""

    name: str
    times: int
    awake: float
    asleep: float
    energy: Estimate | None


def options_for_power(options: TreeOptions, project: Path) -> TreeOptions:
    """Return how a project is compiled whose phases are told apart.

    Raises EmulatorError E805 for a program of another kind.
    """
    if sensor_of(project) is None:
        raise EmulatorError(
            "E805", "this is for programs of --application, which have a sensor.c",
            "option --power", "Leave it out.",
        )  # fmt: skip
    return replace(options, flags=(*options.flags, *_SEPARATE))


def phases_of(core: Core, gauges: Callable[[], tuple[float, ...]]) -> Phases:
    """Return the phases of a program that begins to run."""
    names = {name for _, name in core.image.functions}
    loading = filter(None, map(_NETWORK.fullmatch, names))
    prefix = next((match[1] for match in loading if f"{match[1]}_run" in names), "")
    begins = {function.format(prefix): phase for function, phase in _PHASES.items()}
    return Phases(core, begins, _FIRST, gauges)


def watched_board(board: Board) -> Phases:
    """Return the phases of a program with the accelerator that begins to run.

    Gauges are microseconds, those asleep, words of the accelerator, and characters.
    """
    bus, core = board.bus, board.core

    def gauges() -> tuple[float, ...]:
        words = len(bus.log) + bus.read_count if bus.addresses else 0
        return core.now(), core.slept, float(words), float(len(board.console))

    return phases_of(core, gauges)


def power_of_board(board: Board, phases: Phases) -> Iterator[str]:
    """Yield lines that tell where the time and the energy of a program went."""
    if board.bus.addresses is None or not board.time.runs:
        return
    chip = board.bus.addresses.chip
    mhz, unit = chip.core_clock_mhz, word_microseconds(chip)
    volts = SUPPLY_VOLTS[-1] if chip.energy_is_published else SUPPLY_VOLTS[0]
    measured = phases.measured()
    loop = [phase for name, phase in measured.items() if name not in _ONCE]
    characters = sum(phase.gauges[3] for phase in loop)
    printing = characters * _CHARACTER_US
    hidden = printing  # from the time of the emulator, which has no instructions
    hidden += sum(max(0.0, one.cycles / mhz - one.gauges[2] * unit) for one in loop)
    rows = []
    for name, phase in measured.items():
        time, slept, words, _ = phase.gauges
        if name == _INFERENCE:
            slept = max(slept, sum(run.microseconds for run in board.time.runs))
        waited = max(0.0, time - slept - words * unit)
        awake = waited + max(phase.cycles / mhz, words * unit)
        asleep = max(0.0, slept - hidden * (name == _CAPTURE))
        energy = core_joules(awake * mhz, asleep / 1e6, chip, volts)
        energy += _accelerator(board, chip, int(words), volts, ran=name == _INFERENCE)
        rows.append(Row(name, phase.entries, awake, asleep, energy))
    energy = core_joules(printing * mhz, 0.0, chip, volts)
    rows.append(Row(_CONSOLE, int(characters), printing, 0.0, energy))
    yield from _told(rows, mhz, len(board.time.runs))


def _accelerator(board: Board, chip: Chip, words: int, volts: float, *, ran: bool) -> Estimate:
    """Return what words to and from the accelerator take, and its runs."""
    runs = board.time.runs if ran else []
    layers = [
        (len(layer.processors), cycles.estimate)
        for run in runs for layer, cycles in zip(run.layers, run.cycles, strict=True)
    ]  # fmt: skip
    counts = Counts(sum(n * cycles for n, cycles in layers), sum(r.total_cycles for r in runs),
                    0, words)  # fmt: skip
    mhz = board.time.runs[0].mhz
    pipelined = mhz > chip.max_unpipelined_mhz
    taken = energies(counts, chip, mhz, chip.max_unpipelined_mhz, pipelined=pipelined, volts=volts)
    return taken.inference + taken.input


def power_of_core(
    measured: Mapping[str, Phase], seconds: float, power: Mapping[str, float]
) -> Iterator[str]:
    """Yield lines that tell where the time and energy of a program without accelerator went.

    A sensor delivers its data in `seconds`, in which the core sleeps when it has nothing to do.
    `power` has the clock in MHz, and the energy of a cycle with its spread, if they are known.
    """
    mhz, each = power.get("mhz") or 0.0, power.get("pj_per_cycle") or 0.0
    if not mhz:
        yield "--power: the profile of the microcontroller does not name its clock (mhz)"
        return

    def row(name: str, times: int, awake: float) -> Row:
        joules = Estimate.within(awake * mhz * each / 1e12, power["pj_spread"]) if each else None
        return Row(name, times, awake, 0.0, joules)

    rows = [row(name, phase.entries, phase.cycles / mhz) for name, phase in measured.items()
            if name != _FIRST]  # fmt: skip
    printed = sum(phase.gauges[0] for name, phase in measured.items() if name not in _ONCE)
    rows.append(row(_CONSOLE, int(printed), printed * _CHARACTER_US))
    asleep = max(0.0, seconds * 1e6 - sum(one.awake for one in rows if one.name not in _ONCE))
    rows = [replace(one, asleep=asleep) if one.name == _CAPTURE else one for one in rows]
    yield from _told(rows, mhz, measured[_INFERENCE].entries, sleep=False)


def _told(rows: list[Row], mhz: float, inferences: int, *, sleep: bool = True) -> Iterator[str]:
    """Yield the table of the phases, and what it says of the whole; `sleep`: its energy counts."""
    heads = ["phase", "times", "cycles awake", "cycles asleep", "energy"]
    order = list(_PHASES.values())
    rows = sorted(rows, key=lambda one: [*order, _CONSOLE].index(one.name))
    lines = [
        [one.name, f"{one.times:,}", f"{one.awake * mhz:,.0f}", f"{one.asleep * mhz:,.0f}",
         "?" if one.energy is None else one.energy.in_units("J")]
        for one in rows if one.name != _FIRST
    ]  # fmt: skip
    yield table(lines, heads, colalign=("left", *["right"] * 4))
    loop = [one for one in rows if one.name not in _ONCE]
    awake, asleep = sum(one.awake for one in loop), sum(one.asleep for one in loop)
    known = [one.energy for one in loop if one.energy is not None]
    text = (
        f"Cycles of the core, {mhz:g} MHz. {inferences} inferences in "
        f"{(awake + asleep) / 1e6:.3f} s: awake {100 * awake / (awake + asleep):.1f} % of the time"
    )
    if known and inferences:
        joules = sum(known, Estimate())
        one = Estimate.of(1 / inferences, (joules.value, joules.low, joules.high))
        mean = Estimate.of(1e6 / (awake + asleep), (joules.value, joules.low, joules.high))
        text += f"; {one.in_units('J')} for each"
        text += f", {mean.in_units('W')} on average" if sleep else ", without sleep"
    yield f"{text} (estimates: docs/applications.md, Power)"

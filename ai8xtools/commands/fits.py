"""--fits: what a network takes of each chip, as a table, as JSON, or in one line."""

from __future__ import annotations

import json
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import asdict
from typing import Any

from ai8xtools.commands.outcome import cycles_facts, estimate, memory_facts
from ai8xtools.diagnostics import Diagnostic, Place, current, note, print_result, suggest
from ai8xtools.diagnostics.errors import ToolError
from ai8xtools.frontends.text import ModelDescription
from ai8xtools.reading import tables
from ai8xtools.synthesis import parse
from ai8xtools.synthesis.emit import ProjectOptions
from ai8xtools.synthesis.fits import ChipFit, judge
from ai8xtools.synthesis.measured_energy import CALIBRATED, PUBLISHED, EnergyOptions, doubts
from ai8xtools.synthesis.options import EncodeOptions, ResolveOptions
from ai8xtools.synthesis.parse import Source
from ai8xtools.values import frozen
from ai8xtools.values.estimate import Estimate
from device import CHIPS, Chip
from device.energy import SLEEP_MW, period_watts

_SHOWN = 3


Described = Callable[[Chip], tuple[Source, ResolveOptions]]
"""Describes a network for a chip; may raise for operations that the chip cannot compute."""


@frozen
class Judged:
    """The result of another target: a table, and entries for JSON."""

    table: str
    entries: tuple[dict[str, Any], ...]


def fits_of(
    described: Described,
    chips: Sequence[Chip] = CHIPS,
    encoding: Callable[[Chip], EncodeOptions] = lambda _: EncodeOptions(),
    energy: EnergyOptions = PUBLISHED,
) -> list[ChipFit]:
    """Return how much of each chip a network uses, with the options for it."""
    project = ProjectOptions(name="network", folder="network", command_line="", tool_version="")
    fits: list[ChipFit] = []
    refusals: list[ToolError] = []
    for chip in chips:
        try:
            source, resolving = described(chip)
        except ToolError as exc:
            refusals.append(exc)
            errors = (diagnostic_of(exc),)
            fits.append(ChipFit(chip.name, (exc.message, *_lines(exc)), errors=errors))
        else:
            fits.append(judge(source, chip, resolving, encoding(chip), project, energy))
    if len(refusals) == len(CHIPS) and len({refusal.message for refusal in refusals}) == 1:
        raise refusals[0]  # a mistake, not the limits of a chip
    return fits


def diagnostic_of(exc: ToolError) -> Diagnostic:
    """Return an error as a diagnostic."""
    return Diagnostic(exc.code, exc.message, Place(file=exc.place), exc.remedy)


def _lines(exc: ToolError) -> list[str]:
    """Return the nodes that a refusal names."""
    return [line.strip() for line in (exc.remedy or "").splitlines()]


def of_model(description: ModelDescription, tensors: object) -> tuple[Source, ResolveOptions]:
    """Return the description of a model, and options with its tensors and without a sample."""
    source = parse.Described(description.text, description.model, description.nodes)
    return source, ResolveOptions(
        checkpoint_file=description.model, tensors=tensors, sample_shape=description.input_shape
    )


def status_of(fits: Sequence[ChipFit], chip: Chip | None) -> int:
    """Return 0 if the network fits a chip (None: any), else 1; keep what it takes there."""
    chosen = fits if chip is None else [fits[CHIPS.index(chip)]]
    one = next((one for one in chosen if one.fits), chosen[0])
    note_fit(one.chip, one.reasons)
    if one.fits:
        note_costs(one)
    return int(not one.fits)


def note_costs(one: ChipFit) -> None:
    """Keep what a network takes of a chip that it fits."""
    memories = {name: (use.used, use.available) for name, use in (one.memories or {}).items()}
    note(
        cycles=cycles_facts(one.cycles, one.clock_mhz, one.time.value),
        memory=memory_facts(memories),
        energy=one.energies and estimate(one.energies.inference, 1e6),
    )


def suggest_the_same(tool: str, **needed: str) -> None:
    """Suggest the command without --fits, with what it needs then and does not have."""
    words = [*current().words[1:]]
    at = next((n for n, word in enumerate(words) if word.startswith("--fi")), None)
    if at is None:  # a program asked, not a command line
        return
    del words[at : at + 1 + (words[at + 1 : at + 2] in (["json"], ["table"]))]
    options = {word.partition("=")[0] for word in words}
    for name, value in needed.items():
        option = f"--{name.replace('_', '-')}"
        words += [] if option in options else [option, value]
    suggest(tool, *words)


def note_fit(target: str, reasons: Sequence[str]) -> None:
    """Keep whether a network fits a target, and why not."""
    reason = f"does not fit {target}: {'; '.join(reasons)}" if reasons else f"fits {target}"
    note(verdict="failed" if reasons else "passed", reason=reason)


def one_line(fits: Sequence[ChipFit]) -> str:
    """Return the results for all chips in one line, for the beginning of a run."""
    return "; ".join(
        f"{one.chip}: fits, {_milliseconds(one)}, {_joules(one, 'inference')}" if one.fits
        else f"{one.chip}: does not fit ({one.reasons[0]})"
        for one in fits
    )  # fmt: skip


def as_table(fits: Sequence[ChipFit], energy: EnergyOptions = PUBLISHED) -> str:
    """Return the totals and the layers of all chips side by side."""
    parts = [tables.table(_totals(fits, energy), ["", *(one.chip for one in fits)])]
    placed = [one for one in fits if one.layers]
    if placed:
        own = ["columns", "data", "bias", "cycles", "energy"]
        head = ["layer"]
        for one in placed:
            head += [f"{one.chip} {own[0]}", *own[1:]]
        rows = [_row(name, placed) for name in _names(placed)]
        sides = ["left"] + ["right"] * (len(head) - 1)
        parts.append(tables.table(rows, head, together=len(own), colalign=sides))
    for one in fits:
        parts += [f"{one.chip}: {reason}" for reason in one.reasons[:_SHOWN]]
        if len(one.reasons) > _SHOWN:
            parts.append(f"{one.chip}: and {len(one.reasons) - _SHOWN} more")
    return "\n\n".join([*parts, *(_energy_note(placed, energy) if placed else [])])


def _names(placed: Sequence[ChipFit]) -> list[str]:
    """Return the names of layers, including those that only one chip has, in their order."""
    names: list[str] = []
    for one in placed:
        at = 0
        for layer in one.layers:
            if layer.name in names:
                at = names.index(layer.name) + 1
            else:
                names.insert(at, layer.name)
                at += 1
    return names


def _row(name: str, placed: Sequence[ChipFit]) -> list[str]:
    """Return the costs of a layer on each chip."""
    row = [name]
    for one in placed:
        layer = next((layer for layer in one.layers if layer.name == name), None)
        row += [""] * 5 if layer is None else [
            f"{layer.columns:,}", f"{layer.data_bytes:,}", f"{layer.bias_bytes:,}",
            f"{layer.cycles:,}", f"{layer.energy_share:.0%}",
        ]  # fmt: skip
    return row


def _energy_note(fits: Sequence[ChipFit], energy: EnergyOptions) -> list[str]:
    """Return what the energies are, and of what they are not."""
    sources = []
    for one in fits:
        if one.energy_source == CALIBRATED:
            source = "from your measurements"
        elif one.sleep_is_known:
            source = f"from published measurements of the vendor's kit at {energy.volts} V"
        else:
            source = "about, by the constants of its successor at 1.0 V"
        sources.append(f"{one.chip}: {source}")
    if any(one.energy_source != CALIBRATED for one in fits):
        sources.append("Calibrate with measurements of your board: docs/energy.md")
    return [
        "Energy of the accelerator's rail (VCOREA) above the idle power of the core; converter, "
        "boost supply, core and board are not in it.",
        "\n".join(sources),
        *doubts(energy.measurements),
    ]


def _powers(one: ChipFit, energy: EnergyOptions) -> dict[str, Estimate | None]:
    """Return the mean power of an inference in each period, by the mode of sleep between them."""
    if energy.period is None:
        return {}
    busy = (one.time.value + one.input_time.value) / 1000
    if one.energies is None or not one.sleep_is_known or busy >= energy.period:
        return dict.fromkeys(SLEEP_MW)
    return {
        mode: period_watts(one.energies, busy, energy.period, mode, energy.volts)
        for mode in SLEEP_MW
    }


def _totals(fits: Sequence[ChipFit], energy: EnergyOptions) -> list[list[str]]:
    rows = [["fits", *("yes" if one.fits else "no" for one in fits)]]
    names = next((list(one.memories) for one in fits if one.memories is not None), [])
    for name in names:
        row = [name]
        for one in fits:
            use = one.memories[name] if one.memories is not None else None
            row.append("" if use is None else f"{use.used:,} of {use.available:,}")
        rows.append(row)
    placed = [one.memories is not None for one in fits]
    for title, values in (
        ("words loaded once", [f"{one.load_words:,}" for one in fits]),
        ("load time, once", [one.load_time.in_milliseconds() for one in fits]),
        ("input words", [f"{one.input_words:,}" for one in fits]),
        ("input time", [one.input_time.in_milliseconds() for one in fits]),
        ("cycles", [f"{one.cycles:,}" for one in fits]),
        ("time", [_milliseconds(one) for one in fits]),
        ("energy", [_joules(one, "inference") for one in fits]),
        ("energy of the input", [_joules(one, "input") for one in fits]),
        ("energy to load, once", [_joules(one, "weights") for one in fits]),
        *_mean_powers(fits, energy),
    ):
        shown = [value if fits_it else "" for value, fits_it in zip(values, placed, strict=True)]
        rows.append([title, *shown])
    return rows


def _joules(one: ChipFit, name: str) -> str:
    return "" if one.energies is None else getattr(one.energies, name).in_units("J")


def _mean_powers(fits: Sequence[ChipFit], energy: EnergyOptions) -> Iterator[tuple[str, list[str]]]:
    """Yield a row for each mode of sleep, if a period is stated."""
    powers = [_powers(one, energy) for one in fits]
    for mode in powers[0] if powers else ():
        values = [one[mode] for one in powers]
        texts = ["not known" if value is None else value.in_units("W") for value in values]
        yield f"power, one in {energy.period:g} s, {mode}", texts


def _milliseconds(one: ChipFit) -> str:
    return f"{one.time.in_milliseconds()} at {one.clock_mhz:g} MHz"


def as_json(
    fits: Sequence[ChipFit],
    others: Sequence[Mapping[str, Any]] = (),
    energy: EnergyOptions = PUBLISHED,
) -> str:
    """Return all of it for programs; `others` are entries that follow those of the chips."""
    return json.dumps([*(as_entry(one, energy) for one in fits), *others], indent=2)


def show(
    form: str,
    fits: Sequence[ChipFit],
    others: Sequence[Judged],
    energy: EnergyOptions = PUBLISHED,
) -> None:
    """Print the results for chips and other targets, as JSON or as tables."""
    if form == "json":
        print_result(as_json(fits, [entry for one in others for entry in one.entries], energy))
        return
    tables = [as_table(fits, energy)] if fits else []
    print(*tables, *(one.table for one in others if one.table), sep="\n\n")


def as_entry(one: ChipFit, energy: EnergyOptions = PUBLISHED) -> dict[str, Any]:
    """Return the entry of a chip for JSON."""
    entry = asdict(one)
    del entry["errors"]  # `reasons` say the same
    joules = entry.pop("energies")
    powers = {mode: value and asdict(value) for mode, value in _powers(one, energy).items()}
    return {
        **entry,
        "energy": joules
        and {
            "joules": joules,
            "volts": energy.volts,
            "source": one.energy_source,
            "watts": powers,
            "period_seconds": energy.period,
        },
        "fits": one.fits,
        "milliseconds": one.time.value,
        "load_milliseconds": one.load_time.value,
    }

"""--fits: what a network takes of each microcontroller without the accelerator.

It is planned as for its project, with the same options, and refused where that would be.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import asdict, field, replace
from typing import Any

from ai8xtools.checkpoint import Checkpoint
from ai8xtools.commands.fits import Described, Judged, as_entry, fits_of, note_fit, show
from ai8xtools.commands.loader.model_sources import described_for
from ai8xtools.commands.loader.options import LoaderOptions
from ai8xtools.commands.software.finishing import note_needs
from ai8xtools.commands.software.graphs import source_of
from ai8xtools.commands.software.options import SoftwareOptions
from ai8xtools.commands.software.planning import Program, as_program, planned, understood
from ai8xtools.diagnostics import DiagnosticError, note
from ai8xtools.diagnostics.errors import ToolError
from ai8xtools.reading import tables
from ai8xtools.software.emit.text import amount, further_levels
from ai8xtools.software.plan.cost import cycles_of_plan
from ai8xtools.software.plan.task import Level
from ai8xtools.software.profile import Profile, names, read_profile
from ai8xtools.synthesis.fits import ChipFit, Use
from ai8xtools.values import frozen
from ai8xtools.values.estimate import Estimate
from device import CHIPS

_CHARACTERS = 120
"""Of a line in files and pipes."""


@frozen
class McuFit:
    """A network on a microcontroller: what it takes in bytes, or the reason why it does not fit.

    `levels` are the memories behind L1, by name.
    """

    profile: Profile
    ram: Use
    flash: Use
    levels: Mapping[str, Use] = field(default_factory=dict)
    plan: str = ""
    reason: str = ""
    cycles: float | None = None

    @property
    def mcu(self) -> str:
        """The name of the microcontroller."""
        return self.profile.name

    @property
    def core(self) -> str:
        """The name of its core."""
        return self.profile.core.name

    @property
    def milliseconds(self) -> float | None:
        """The time of an inference, if it is known."""
        return None if self.cycles is None else self.profile.milliseconds(self.cycles)

    @property
    def joules(self) -> Estimate | None:
        """The energy of an inference, if it is known."""
        return None if self.cycles is None else self.profile.joules(self.cycles)

    @property
    def fits(self) -> bool:
        """Whether it can run there."""
        return not self.reason


@frozen
class _Taken:
    """What a network takes, in bytes, and how it is planned."""

    plan: str = ""
    ram: int = 0
    flash: int = 0
    levels: Mapping[Level, int] = field(default_factory=dict)
    cycles: float | None = None


_Judge = Callable[[Profile], _Taken]
"""Plans a network for a microcontroller; raises DiagnosticError if it does not fit."""


def show_fits(software: SoftwareOptions, form: str) -> int:
    """Print what the network takes of every target; status 0 if it fits the microcontroller."""
    source = source_of(software.source, software)
    if isinstance(source, Checkpoint):
        chip_fits: list[ChipFit] = []
        others = operators_fits(software, source)
    elif software.qformat:
        chip_fits, others = [], qformat_fits(software)
    else:
        described = described_for(software.source)
        chip_fits = fits_of(described)
        others = _fits(described, software.source, software)
    show(form, chip_fits, [_judgement(others)])
    note(subject=software.source.project.name)
    one = others[0]
    note_fit(one.mcu, [one.reason] if one.reason else [])
    if one.fits:
        note_needs(one.ram.used, one.flash.used, one.cycles, one.profile)
    return int(not one.fits)


def microcontrollers(described: Described, options: LoaderOptions) -> Judged:
    """Return what `--fits` of a chip says about the microcontrollers."""
    return _judgement(_fits(described, options, None))


def _judgement(fits: Sequence[McuFit]) -> Judged:
    return Judged(as_columns(fits) if fits else "", tuple(as_entries(fits)))


def _fits(
    described: Described, options: LoaderOptions, chosen: SoftwareOptions | None
) -> list[McuFit]:
    """Return what a network takes of every profile.

    The first is the microcontroller that is wanted, with its sizes, if there is one; then a network
    that cannot be understood has the reason there. Without one nothing is said of it. Raises
    ToolError for a container that could not be made for any.
    """
    profiles = _profiles(chosen)
    software = chosen or SoftwareOptions(options)
    try:
        source, resolving = described(CHIPS[-1] if chosen is None else options.chip)
        options = replace(options, config_file=source, resolve=resolving)
        network, _ = understood(options, software.like)
    except (DiagnosticError, ToolError) as refusal:
        if chosen is None:
            return []  # what is wrong with it has been said for the chips
        return [_fit(profiles[0], _Taken(), _reason(refusal))]
    program = as_program(network, average_rounding=options.encode.average_rounding)
    judge = _judge_of(program, software)
    return [_judged(judge, profile) for profile in profiles]


def qformat_fits(software: SoftwareOptions) -> list[McuFit]:
    """Return what the network of a checkpoint of 16 or 8 bits takes of every profile.

    Raises ToolError for a checkpoint, a sample or a library that is of no use.
    """
    from ai8xtools.commands.software.qformat import read_stored  # few ask for it
    from ai8xtools.software.q15.build import planned as planned_qformat

    network = read_stored(software)[0].network

    def judge(profile: Profile) -> _Taken:
        built = planned_qformat(
            network,
            profile,
            software.scheme,
            library=software.library,
            interleaving=software.interleaving,
        )
        return _Taken(built.plan.name, built.need.ram, built.need.flash)

    return [_judged(judge, profile) for profile in _profiles(software)]


def operators_fits(software: SoftwareOptions, source: Checkpoint) -> list[McuFit]:
    """Return what the network of a checkpoint of operators takes of every profile.

    Raises InputError for one that is not sound, or that no program computes.
    """
    from ai8xtools.commands.software.operators import unproven  # few ask for it

    judge = _judge_of(unproven(software.source, source), software)
    return [_judged(judge, profile) for profile in _profiles(software)]


def _profiles(software: SoftwareOptions | None) -> list[Profile]:
    """Return all profiles, the one that is wanted first."""
    profiles = [read_profile(name) for name in names()]
    if software is None:
        return profiles
    own = software.profile()
    return [own, *(one for one in profiles if one.name != own.name)]


def _judge_of(program: Program, software: SoftwareOptions) -> _Judge:
    """Return what plans a network as its project is planned."""
    if software.container is not None:
        from ai8xtools.commands.software.container import (  # few ask for it
            check_room,
            contained,
            needed,
        )

        _, room = contained(program, software.container)
        flash, ram = needed(room)

        def of_container(profile: Profile) -> _Taken:
            check_room(profile, room)
            return _Taken("container", ram, flash)

        return of_container

    def of_plan(profile: Profile) -> _Taken:
        built = planned(program.graph, profile, software)
        used = built.plan.used if built.plan.scheme is None else {}
        levels = {level: used.get(level, 0) for level in further_levels(profile)}
        return _Taken(
            built.plan.name, built.need.ram, built.need.flash, levels, cycles_of_plan(built.plan)
        )

    return of_plan


def _judged(judge: _Judge, profile: Profile) -> McuFit:
    try:
        return _fit(profile, judge(profile))
    except DiagnosticError as refusal:
        return _fit(profile, _Taken(), _reason(refusal))


def _reason(refusal: DiagnosticError | ToolError) -> str:
    """Return why a network is refused, as its project would be."""
    if isinstance(refusal, ToolError):
        return refusal.message
    errors = (d for d in refusal.diagnostics if d.severity.is_error)
    return "; ".join(d.message for d in errors)


def _fit(profile: Profile, taken: _Taken, reason: str = "") -> McuFit:
    return McuFit(
        profile,
        Use(taken.ram, profile.l1),
        Use(taken.flash, profile.flash),
        {n: Use(taken.levels.get(n, 0), size) for n, size in further_levels(profile).items()},
        taken.plan,
        reason,
        taken.cycles,
    )


_OF_THE_ACCELERATOR = ("clock_mhz", "time", "load_time", "input_time", "load_milliseconds")
"""What is null for a core: its weights stay in flash, its time is `milliseconds`."""


def as_entries(fits: Sequence[McuFit]) -> list[dict[str, Any]]:
    """Return what --fits json says: what chips have, and the core and the plan."""
    return [
        as_entry(
            ChipFit(
                one.mcu,
                (one.reason,) if one.reason else (),
                memories={"flash": one.flash, "SRAM": one.ram, **one.levels},
            )
        )
        | {
            "core": one.core,
            "plan": one.plan,
            "cycles": one.cycles and round(one.cycles),
            "milliseconds": one.milliseconds,
            **dict.fromkeys(_OF_THE_ACCELERATOR),
            "energy": one.joules and {"joules": {"inference": asdict(one.joules)}},
        }
        for one in fits
    ]


def as_columns(fits: Sequence[McuFit]) -> str:
    """Return a table with a column for each microcontroller, and why it does not fit some."""
    shown = tables.table([*_rows(fits)], ["", *(one.mcu for one in fits)], most=_CHARACTERS)
    reasons = [f"{one.mcu}: {one.reason}" for one in fits if one.reason]
    return "\n\n".join(["Without the accelerator (--device MCU)", shown, *reasons])


def _rows(fits: Sequence[McuFit]) -> Iterator[list[str]]:
    yield ["fits", *("yes" if one.fits else "no" for one in fits)]
    yield ["core", *(one.core for one in fits)]
    yield ["plan", *(one.plan for one in fits)]
    yield ["RAM", *(_of(one.ram) for one in fits)]
    for name in dict.fromkeys(name for one in fits for name in one.levels):
        yield [name, *(_of(one.levels[name]) if name in one.levels else "" for one in fits)]
    yield ["flash", *(_of(one.flash) for one in fits)]
    for title, texts in (
        ("cycles", [f"{one.cycles:,.0f}" if one.cycles else "" for one in fits]),
        ("time", [f"{one.milliseconds:,.2f} ms" if one.milliseconds else "" for one in fits]),
        ("energy", [one.joules.in_units("J") if one.joules else "" for one in fits]),
    ):
        if any(texts):
            yield [title, *texts]


def _of(use: Use) -> str:
    return amount(use.used, use.available) if use.used else f"{use.available:,}"

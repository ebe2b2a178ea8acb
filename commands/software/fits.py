"""--fits: what a network takes of each microcontroller without the accelerator."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from typing import Any

from commands.fits import as_entry
from commands.software.options import SoftwareOptions
from device import CHIPS, Chip
from diagnostics import DiagnosticError, Severity
from diagnostics.errors import ToolError
from software.build import choose
from software.emit.text import amount
from software.fuse import fuse
from software.lower import lower
from software.plan.plan import Scheme
from software.profile import Profile, names, read_profile
from synthesis.fits import ChipFit, Use
from synthesis.options import ResolveOptions
from synthesis.parse import Source
from synthesis.understand import understand
from values import frozen

_COLUMNS = 5


@frozen
class McuFit:
    """A network on a microcontroller: what it takes in bytes, or the reason why it does not fit."""

    mcu: str
    core: str
    ram_available: int
    flash_available: int
    reason: str = ""
    plan: str = ""
    ram: int = 0
    flash: int = 0

    @property
    def fits(self) -> bool:
        """Whether it can run there."""
        return not self.reason


def mcu_fits(
    described: Callable[[Chip], tuple[Source, ResolveOptions]], wanted: SoftwareOptions | None
) -> list[McuFit]:
    """Return what a network takes of every profile; nothing of one that cannot be understood.

    The first is the microcontroller that is `wanted`, with its sizes, if there is one.
    """
    profiles = [read_profile(name) for name in names()]
    if wanted is not None:
        own = wanted.profile()
        profiles = [own, *(one for one in profiles if one.name != own.name)]
    try:
        source, resolving = described(CHIPS[-1])
        network, _, _ = understand(source, None, resolving)
        graph = fuse(lower(network))
    except (DiagnosticError, ToolError):
        return []  # what is wrong with it has been said for the chips
    found = []
    for number, profile in enumerate(profiles):
        schemes, kernels = tuple(Scheme), None
        if number == 0 and wanted is not None:
            schemes, kernels = wanted.schemes, wanted.kernels
        try:
            plan, need = choose(graph, profile, schemes, kernels)
        except DiagnosticError as refusal:
            errors = (d for d in refusal.diagnostics if d.severity is Severity.ERROR)
            found.append(_fit(profile, reason="; ".join(d.message for d in errors)))
        else:
            found.append(_fit(profile, plan=str(plan.scheme), ram=need.ram, flash=need.flash))
    return found


def _fit(
    profile: Profile, reason: str = "", plan: str = "", ram: int = 0, flash: int = 0
) -> McuFit:
    return McuFit(
        profile.name, profile.core.name, profile.l1, profile.flash, reason, plan, ram, flash
    )


def as_entries(fits: Sequence[McuFit]) -> list[dict[str, Any]]:
    """Return what --fits json says: what chips have, and the core and the plan."""
    return [
        as_entry(
            ChipFit(
                one.mcu,
                (one.reason,) if one.reason else (),
                memories={
                    "flash": Use(one.flash, one.flash_available),
                    "SRAM": Use(one.ram, one.ram_available),
                },
            )
        )
        | {"core": one.core, "plan": one.plan}
        for one in fits
    ]


def as_columns(fits: Sequence[McuFit]) -> str:
    """Return a table with a column for each microcontroller, and why it does not fit some."""
    from tabulate import tabulate

    parts = []
    for first in range(0, len(fits), _COLUMNS):
        some = fits[first : first + _COLUMNS]
        head = ["", *(one.mcu for one in some)]
        parts.append(tabulate([*_rows(some)], head, "simple", disable_numparse=True))
    reasons = [f"{one.mcu}: {one.reason}" for one in fits if one.reason]
    return "\n\n".join(["Without the accelerator (--device MCU)", *parts, *reasons])


def _rows(fits: Sequence[McuFit]) -> Iterator[list[str]]:
    yield ["fits", *("yes" if one.fits else "no" for one in fits)]
    yield ["core", *(one.core for one in fits)]
    yield ["plan", *(one.plan for one in fits)]
    yield ["RAM", *(_of(one.ram, one.ram_available) for one in fits)]
    yield ["flash", *(_of(one.flash, one.flash_available) for one in fits)]


def _of(used: int, available: int) -> str:
    return amount(used, available) if used else f"{available:,}"

"""What --device MCU asks for besides the options that all targets have."""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING

from values import frozen

if TYPE_CHECKING:
    from device import Chip
    from diagnostics import Diagnostic
    from software.plan.plan import Scheme
    from software.profile import Profile


@frozen
class SoftwareOptions:
    """A microcontroller and how its program is planned.

    `mcu` is a profile's name or file, `l1` and `flash` take the place of its sizes. `schemes` are
    tried in this order, `kernels` are the sets that may be used (None: those of the core).
    `report` prints the plan; limits of the chip `like` hold, if there is one; `notices` are about
    options that change nothing here.
    """

    mcu: str
    schemes: tuple[Scheme, ...]
    kernels: frozenset[str] | None = None
    l1: int | None = None
    flash: int | None = None
    report: bool = False
    like: Chip | None = None
    notices: tuple[Diagnostic, ...] = ()

    def changed(self, profile: Profile) -> Profile:
        """Return the profile with the sizes that options gave."""
        if self.l1 is not None:
            profile = replace(profile, l1=self.l1)
        return profile if self.flash is None else replace(profile, flash=self.flash)

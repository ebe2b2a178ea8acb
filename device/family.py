"""The chips that the tools know, by name and number."""

from __future__ import annotations

from collections.abc import Callable

from device.chip import Chip
from device.max78000 import MAX78000
from device.max78002 import MAX78002

CHIPS = (MAX78000, MAX78002)


class UnknownDeviceError(ValueError):
    """No chip has the name that was given."""


def known_chips() -> tuple[Chip, ...]:
    """Return all chips."""
    return CHIPS


def names_where(fact: Callable[[Chip], bool] = lambda _: True) -> str:
    """Return the names of the chips that satisfy a condition: "MAX78000 or MAX78002"."""
    return " or ".join(chip.name for chip in known_chips() if fact(chip))


def chip_of_die(die: int) -> Chip | None:
    """Return the chip of a number such as 85; None if the loader knows no such chip."""
    return next((chip for chip in known_chips() if chip.die == die), None)


_PREDECESSOR = "84"
"""Die of the chip before this family, which command lines from before may name."""


def chip_named(name: str) -> Chip:
    """Return the chip of a name such as MAX78000, 78000, AI85 or 85, in any case.

    Raises UnknownDeviceError, whose text lists what is accepted.
    """
    text = name.lower().removeprefix("max").removeprefix("ai")
    for chip in known_chips():
        if text in (str(chip.die), chip.name.removeprefix("MAX")):
            return chip
    accepted = ", ".join(f"{c.name} (or {c.die})" for c in known_chips())
    if text == _PREDECESSOR:
        raise UnknownDeviceError(
            f"{name!r} is the predecessor of these chips, whose arithmetic is another; quantize "
            f"the network again for {accepted}"
        )
    raise UnknownDeviceError(f"{name!r} is not a supported device; choose {accepted}")

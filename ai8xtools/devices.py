"""Chips by name and number, for the command lines of users' own scripts.

Source: docs/layers.md, "The chip and the arithmetic of a run".
"""

from __future__ import annotations

import argparse

from device.layer_limits import known_limits


def device(text: str) -> int:
    """Return the number of a chip for its name or number, as argparse's `type`: MAX78000, AI85, 85.

    Raises argparse.ArgumentTypeError for anything else.
    """
    short = text.lower().removeprefix("max").removeprefix("ai")
    chips = known_limits()
    for chip in chips:
        if short in (str(chip.number), chip.name.removeprefix("MAX")):
            return chip.number
    names = ", ".join(chip.name for chip in chips)
    raise argparse.ArgumentTypeError(f"{text!r} is not a device; known devices are {names}")


def partnum(number: int) -> str:
    """Return the name of a chip for its number: MAX78000 for 85. Raises KeyError for others."""
    return {chip.number: chip.name for chip in known_limits()}[number]

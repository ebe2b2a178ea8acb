"""Chips by name and number, for the command lines of users' own scripts (spec/training.md 1.1)."""

from __future__ import annotations

import argparse

from device import CHIPS

_NAMES = {84: "AI84"} | {chip.die: chip.name for chip in CHIPS}


def device(text: str) -> int:
    """Return 84, 85 or 87 for a chip's name or number, as argparse's `type`: MAX78000, AI85, 85.

    Raises argparse.ArgumentTypeError for anything else.
    """
    short = text.lower().removeprefix("max").removeprefix("ai")
    numbers = {str(die): die for die in _NAMES}
    numbers |= {chip.name.removeprefix("MAX"): chip.die for chip in CHIPS}
    if short not in numbers:
        known = ", ".join(_NAMES.values())
        raise argparse.ArgumentTypeError(f"{text!r} is no device; known are {known}")
    return numbers[short]


def partnum(number: int) -> str:
    """Return the name of device 84, 85 or 87."""
    return _NAMES[number]

"""What several tools check about their arguments."""

from __future__ import annotations

import argparse
import os

from checkpoint.errors import InputError
from device import Chip, UnknownDeviceError, chip_named


def chip(text: str) -> Chip:
    """Convert the name of a device for argparse."""
    try:
        return chip_named(text)
    except UnknownDeviceError as exc:
        raise argparse.ArgumentTypeError(str(exc)) from None


def refuse_same_file(source: str, destination: str) -> None:
    """Raise InputError (E704) if writing the destination would replace the source."""
    if os.path.realpath(source) == os.path.realpath(destination):
        raise InputError(
            "E704",
            "input and output are the same file; the trained weights would be lost",
            destination,
            "Name another output.",
        )

"""What the values of train.py's options may be."""

from __future__ import annotations

import argparse
from pathlib import Path

from ai8xtools import devices
from ai8xtools.training.catalog.own_code import SOURCES

device_number = devices.device
"""84 too: layers know its arithmetic, the other tools do not."""


def count(text: str) -> int:
    """Return a whole number of at least 1."""
    number = int(text)
    if number < 1:
        raise argparse.ArgumentTypeError(f"{text} is below 1")
    return number


def natural_number(text: str) -> int:
    """Return a whole number of at least 0."""
    number = int(text)
    if number < 0:
        raise argparse.ArgumentTypeError(f"{text} is below 0")
    return number


def numbers(text: str) -> tuple[int, ...]:
    """Return a list of whole numbers of at least 0."""
    return tuple(natural_number(part) for part in text.split(","))


def devices_of(text: str) -> tuple[int, ...] | str:
    """Return a list of whole numbers of at least 0, or "all"."""
    return "all" if text.lower() == "all" else numbers(text)


def seed(text: str) -> int:
    """Return a whole number that fits in 63 bits."""
    number = natural_number(text)
    if number >= 1 << 63:
        raise argparse.ArgumentTypeError(f"{text} is above 2**63-1")
    return number


def share(text: str) -> float:
    """Return a number of [0, 1)."""
    number = float(text)
    if not 0 <= number < 1:
        raise argparse.ArgumentTypeError(f"{text} is outside [0, 1)")
    return number


def positive_number(text: str) -> float:
    """Return a number above 0; greater ones than a billion would only overflow."""
    number = float(text)
    if not 0 < number <= 1e9:
        raise argparse.ArgumentTypeError(f"{text} is not above 0 and at most 1e9")
    return number


def number_from_0(text: str) -> float:
    """Return a finite number of at least 0."""
    number = float(text)
    if not 0 <= number < float("inf"):
        raise argparse.ArgumentTypeError(f"{text} is not a number from 0")
    return number


def file_name(text: str) -> str:
    """Return a text that can begin the name of a file in the log folder."""
    if not text or "/" in text or "\\" in text or "\0" in text or text in (".", ".."):
        raise argparse.ArgumentTypeError(f"{text!r} must be a name without / or \\")
    return text


def angle(text: str) -> float:
    """Return an angle of at least 0 and below 90 degrees."""
    number = float(text)
    if not 0 <= number < 90:
        raise argparse.ArgumentTypeError(f"{text} is outside [0, 90)")
    return number


def folder(text: str) -> str:
    """Return the path of a folder; ~ is the user's."""
    return str(Path(text).expanduser())


def network(text: str) -> str:
    """Return the name of a network in lower case; FILE:CLASS stays as it is."""
    return text if ".py:" in text.lower() else text.lower()


def policy_file(text: str) -> str:
    """Return the path of a policy; one that is not there may be among those beside train.py.

    Existing scripts name `policies/FILE`, `parameters/FILE` and `nas/FILE` from wherever they are
    started.
    """
    path = Path(text)
    if text.lower() == "none" or path.exists():
        return text
    shipped = SOURCES / "policies" / path.name
    if path.parent.name in ("policies", "parameters", "nas") and shipped.is_file():
        return str(shipped)
    return text

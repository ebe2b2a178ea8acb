"""Converters for arguments of ai8xize.py, for argparse."""

from __future__ import annotations

import argparse
from math import inf


def number(text: str) -> int:
    """Convert a decimal or 0x number for argparse."""
    try:
        return int(text, 0)
    except ValueError:
        raise argparse.ArgumentTypeError(f"{text!r} is not a number") from None


def seconds(text: str) -> float:
    """Convert a time above 0 for argparse."""
    try:
        time = float(text)
    except ValueError:
        time = 0.0
    if not 0 < time < inf:
        raise argparse.ArgumentTypeError(f"{text!r} is not a time in seconds above 0")
    return time


def layer_list(text: str) -> frozenset[int]:
    """Convert a comma-separated list of layer numbers for argparse."""
    try:
        return frozenset(int(part) for part in text.split(","))
    except ValueError:
        raise argparse.ArgumentTypeError(
            f"{text!r} is not a list of layer numbers such as 0,3,4"
        ) from None


def input_shape(text: str) -> tuple[int, ...]:
    """Convert CxHxW, CxL, C (features) or, for a series of frames, TxCxHxW for argparse."""
    parts = text.lower().split("x")
    if len(parts) == 1:
        parts += ["1", "1"]
    if len(parts) > 4 or not all(part.isdecimal() and int(part) for part in parts):
        raise argparse.ArgumentTypeError(f"{text!r} is not CxHxW, CxL or C such as 3x32x32")
    return tuple(map(int, parts))


def port_pin(text: str) -> tuple[int, int]:
    """Convert PORT.PIN for argparse."""
    port, dot, pin = text.partition(".")
    if not (dot and port.isdecimal() and pin.isdecimal()):
        raise argparse.ArgumentTypeError(f"{text!r} is not PORT.PIN such as 2.5")
    return int(port), int(pin)


def trim(text: str) -> tuple[int, int, int]:
    """Convert three trim values for argparse."""
    try:
        ibro, iso, ipo = (int(part, 0) for part in text.split(","))
    except ValueError:
        raise argparse.ArgumentTypeError(
            f"{text!r} is not three numbers such as 0x1,0x2,0x3"
        ) from None
    return ibro, iso, ipo

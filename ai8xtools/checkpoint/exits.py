"""The early exit of a network, as its checkpoint records it.

Source: docs/early-exit.md.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from ai8xtools.checkpoint.errors import CheckpointError
from ai8xtools.values import frozen

EXIT = "early_exit"
"""The entry of a checkpoint's `extras`."""
SCORES = "early_exit_scores"
"""The layer of a network that gives the scores of its exit."""


@frozen
class ExitRecord:
    """The exit stands behind this layer with weights, counted from 1; it is taken if the largest
    score exceeds the second by `margin`, in units of the chip."""

    layer: int
    margin: int


def exit_of(extras: Mapping[str, Any], path: str | None) -> ExitRecord | None:
    """Return the exit that a checkpoint records, None if there is none.

    Raises CheckpointError E506 for a damaged entry.
    """
    entry = extras.get(EXIT)
    if entry is None:
        return None
    values = [entry.get(name) for name in ("layer", "margin")] if isinstance(entry, dict) else []
    numbers = [value for value in values if type(value) is int and 0 < value < 1 << 31]
    if len(numbers) != 2:
        raise CheckpointError(
            "E506", f"the entry {EXIT} names no layer and margin: {entry}", path,
            "Train the network again with --exit.",
        )  # fmt: skip
    return ExitRecord(*numbers)

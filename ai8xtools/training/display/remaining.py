"""How long a training or an evaluation takes still, on the terminal."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from ai8xtools.reading.progress import Progress
from ai8xtools.training.loop.observers import Observer, Seen


class Remaining(Observer):
    """Shows the epoch, and the time that is left of `epochs`; validation takes a share of it."""

    def __init__(self, epochs: int) -> None:
        self._epochs = epochs
        self._first: int | None = None
        self._line = Progress("Test", 1)

    def seen(self, batch: Seen) -> None:
        """Show a batch."""
        share = batch.step / batch.steps
        if batch.epoch is None:
            if self._first is not None:
                self._line, self._first = Progress("Test", 1), None
            self._line.reach(share)
            return
        if self._first is None:
            self._first = batch.epoch
            self._line = Progress("Epoch", self._epochs - batch.epoch)
        if batch.phase == "training":
            title = f"Epoch {batch.epoch + 1} of {self._epochs}"
            self._line.reach(batch.epoch - self._first + share, title)

    def ended(self, _metrics: Mapping[str, Any]) -> None:
        """Take the line away."""
        self._line.close()

    def close(self) -> None:
        """Take the line away."""
        self._line.close()

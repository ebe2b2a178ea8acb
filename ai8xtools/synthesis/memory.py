"""Values: the data memory while layers are executed.

Offsets are bytes from the start of a memory instance.
"""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from ai8xtools.values import frozen
from device.chip import WORD_BYTES


@frozen
class DataRange:
    """Data that one layer wrote, the same bytes in each of its memory instances.

    `owner` is the layer's index, NETWORK_INPUT for the sample. `count` pieces of `piece_bytes`
    stand `step_bytes` apart: with a write gap, other data may stand in between.
    """

    owner: int
    instances: tuple[int, ...]
    begin: int
    count: int
    piece_bytes: int = WORD_BYTES
    step_bytes: int = WORD_BYTES

    @property
    def end(self) -> int:
        """First byte behind the last piece."""
        return self.begin + (self.count - 1) * self.step_bytes + self.piece_bytes

    @property
    def size_bytes(self) -> int:
        """Bytes taken in each instance, gaps not counted."""
        return self.count * self.piece_bytes

    def words(self) -> NDArray[np.int64]:
        """Return the offsets of all words."""
        pieces = self.begin + np.arange(self.count) * self.step_bytes
        offsets = pieces[:, None] + np.arange(0, self.piece_bytes, WORD_BYTES)
        return offsets.reshape(-1)


@frozen
class DataLoss:
    """Bytes from `begin` to before `end` that are overwritten while somebody still needs them.

    A layer may write over its own input if it has read it by then (`own_input`); what a later layer
    needs is lost for certain.
    """

    owner: int
    instances: tuple[int, ...]
    begin: int
    end: int
    own_input: bool


@frozen
class MemoryStep:
    """The data memory while one layer is executed.

    `alive` is data that this layer does not read but a later one does, or that is delivered.
    """

    layer: int
    inputs: tuple[DataRange, ...]
    output: DataRange
    alive: tuple[DataRange, ...]
    losses: tuple[DataLoss, ...]

    @property
    def ranges(self) -> tuple[DataRange, ...]:
        """Everything that takes space."""
        return (*self.inputs, *self.alive, self.output)


def numbers_text(numbers: tuple[int, ...]) -> str:
    """Return ascending numbers with runs shortened: `0-3, 8`."""
    runs = number_runs(numbers)
    return ", ".join(str(a) if a == b else f"{a}-{b}" for a, b in runs)


def number_runs(numbers: tuple[int, ...]) -> list[tuple[int, int]]:
    """Return first and last of each run of successive numbers, which are ascending."""
    runs: list[tuple[int, int]] = []
    for number in numbers:
        if runs and runs[-1][1] == number - 1:
            runs[-1] = runs[-1][0], number
        else:
            runs.append((number, number))
    return runs

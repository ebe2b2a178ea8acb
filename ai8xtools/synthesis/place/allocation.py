"""Finding free kernel columns.

Source: docs/placement.md, "Kernels: finding columns".
"""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from device import Chip
from device.channels import KERNEL_ALIGNMENT


class NoRoomError(Exception):
    """No free range is long enough."""


class ColumnSearch:
    """Looks for columns that are free in every processor of a layer.

    `used` is bool [processor, column]; `capacities` the columns of each processor. With
    `within_part` (depth-wise layers, if a memory has several parts) the range must not cross two.
    """

    def __init__(
        self,
        chip: Chip,
        used: NDArray[np.bool_],
        capacities: list[int],
        length: int,
        within_part: bool,
    ) -> None:
        self.chip = chip
        self.used = used
        self.capacities = capacities
        self.length = length
        self.within_part = within_part

    def _part(self, column: int) -> int:
        """Columns of the memory part around a column."""
        chip = self.chip
        further = column >= chip.kernel_columns and chip.kernel_further_part_columns
        return further or chip.kernel_part_columns

    def upward(self, start: int) -> int:
        """Return the lowest range from `start` on; raise NoRoomError if there is none."""
        column = -(-start // KERNEL_ALIGNMENT) * KERNEL_ALIGNMENT
        while column < self.capacities[0] and self.used[0, column]:
            column += KERNEL_ALIGNMENT
        while True:
            moved = self._avoid_part_border(column) if self.within_part else column
            if moved + self.length > min(self.capacities):
                raise NoRoomError
            taken = self._first_taken(moved)
            if taken is None:
                return -(-moved // KERNEL_ALIGNMENT) * KERNEL_ALIGNMENT
            column = (taken + KERNEL_ALIGNMENT) // KERNEL_ALIGNMENT * KERNEL_ALIGNMENT

    def _avoid_part_border(self, column: int) -> int:
        part = self._part(column + 2)
        if (column + 1) // part == (column + self.length) // part:
            return column
        column = (column + part - 1) // part * part - 1
        part = self._part(column + 2)
        if (column + 1) // part != (column + self.length) // part:
            raise NoRoomError
        return column

    def _first_taken(self, column: int) -> int | None:
        """Return the first used column of the range in the first processor that has one."""
        window = self.used[:, column : column + self.length]
        for row in window:
            hits = np.flatnonzero(row)
            if len(hits):
                return column + int(hits[0])
        return None

    def downward(self) -> int:
        """Return the highest range, searched from the end; raise NoRoomError if there is none.

        The end is moved down in steps and the start then aligned downward, as the reference tool
        does.
        """
        last = min(self.capacities) - 1
        while last >= 0 and self.used[0, last]:
            last -= KERNEL_ALIGNMENT
        while True:
            if self.within_part:
                part = self._part(last)
                if (last - 1) // part != (last - self.length) // part:
                    last = last // part * part
            if last - self.length + 1 < 0:
                raise NoRoomError
            hit = self._last_taken(last)
            if hit is None:
                first = (last - self.length + 1) // KERNEL_ALIGNMENT * KERNEL_ALIGNMENT
                if self.used[:, first : first + self.length].any():  # aligned onto another layer
                    raise NoRoomError
                return first
            last = (hit - 1) // KERNEL_ALIGNMENT * KERNEL_ALIGNMENT
            if last + self.length > min(self.capacities):
                raise NoRoomError

    def _last_taken(self, last: int) -> int | None:
        first = last - self.length + 1
        for row in self.used[:, first : last + 1]:
            hits = np.flatnonzero(row)
            if len(hits):
                return first + int(hits[-1])
        return None

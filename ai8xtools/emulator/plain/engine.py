"""An engine that copies between levels of memory while the core computes, as a DMA controller does.

A copy happens when it is waited for; until then its place holds poison. A program that reads too
early, or changes too early what is being copied, computes something else.
Source: docs/emulator.md, "Cores without an accelerator".
"""

from __future__ import annotations

from collections import deque
from collections.abc import Callable, Sequence
from enum import IntEnum, auto
from typing import assert_never

import numpy as np
from numpy.lib.stride_tricks import as_strided

from ai8xtools.emulator.cpu.io import IoArea
from ai8xtools.emulator.errors import StoppedError
from ai8xtools.values import frozen

BASE = 0xF0010000
"""Address of the registers; emulator/plain/source/copies.c writes them."""
CHANNELS = 3
_BYTES, _WORD_BYTES = 0x1000, 4
_POISON = 0x55
_REMEDY = "Each nn_copy_wait() is for one copy that was started on its channel."


class _Register(IntEnum):
    CHANNEL = 0
    TO = auto()
    TO_STEP = auto()
    FROM = auto()
    FROM_STEP = auto()
    ROW_BYTES = auto()
    ROWS = auto()
    START = auto()
    WAIT = auto()


@frozen
class _Copy:
    to: int
    to_step: int
    source: int
    from_step: int
    row_bytes: int
    rows: int


class CopyEngine:
    """The engine of one core; `bytes_copied` are by channel, `started` are all copies.

    `attach` tells it how to read and write the memory of the core.
    """

    def __init__(self) -> None:
        self.bytes_copied = [0] * CHANNELS
        self.started = 0
        self._registers = dict.fromkeys(_Register, 0)
        self._waiting: list[deque[_Copy]] = [deque() for _ in range(CHANNELS)]

    def attach(
        self, read: Callable[[int, int], bytes], write: Callable[[int, bytes], None]
    ) -> None:
        """Connect it with a memory."""
        self._read, self._write = read, write

    @property
    def areas(self) -> Sequence[IoArea]:
        """Where its registers are."""
        return [IoArea("the copy engine", BASE, _BYTES, lambda _address, _width: 0, self._store)]

    @property
    def idle(self) -> bool:
        """Whether all copies were waited for."""
        return not any(self._waiting)

    def _store(self, address: int, _width: int, value: int) -> None:
        register = _Register((address - BASE) // _WORD_BYTES)
        self._registers[register] = value
        match register:
            case _Register.START:
                self._start(self._registers)
            case _Register.WAIT:
                self._wait(self._registers[_Register.CHANNEL])
            case (
                _Register.CHANNEL | _Register.TO | _Register.TO_STEP | _Register.FROM
                | _Register.FROM_STEP | _Register.ROW_BYTES | _Register.ROWS
            ):  # fmt: skip
                pass
            case _:
                assert_never(register)

    def _start(self, values: dict[_Register, int]) -> None:
        copy = _Copy(
            values[_Register.TO], values[_Register.TO_STEP], values[_Register.FROM],
            values[_Register.FROM_STEP], values[_Register.ROW_BYTES], values[_Register.ROWS],
        )  # fmt: skip
        channel = values[_Register.CHANNEL]
        self.started += 1
        self.bytes_copied[channel] += copy.row_bytes * copy.rows
        self._waiting[channel].append(copy)
        self._fill(copy, np.full((copy.rows, copy.row_bytes), _POISON, np.uint8))

    def _wait(self, channel: int) -> None:
        if not self._waiting[channel]:
            raise StoppedError("E829", f"nothing is copied on channel {channel}", remedy=_REMEDY)
        copy = self._waiting[channel].popleft()
        if copy.rows and copy.row_bytes:
            span = (copy.rows - 1) * copy.from_step + copy.row_bytes
            data = np.frombuffer(self._read(copy.source, span), np.uint8)
            rows = as_strided(data, (copy.rows, copy.row_bytes), (copy.from_step, 1))
            self._fill(copy, rows)

    def _fill(self, copy: _Copy, rows: np.ndarray[tuple[int, ...], np.dtype[np.uint8]]) -> None:
        if not rows.size:
            return
        span = (copy.rows - 1) * copy.to_step + copy.row_bytes
        data = np.frombuffer(self._read(copy.to, span), np.uint8).copy()
        as_strided(data, rows.shape, (copy.to_step, 1))[:] = rows
        self._write(copy.to, data.tobytes())

"""A microphone on the I2S interface, whose memory holds a few samples.

Source: docs/emulator.md, "Recordings in the place of sensors".
"""

from __future__ import annotations

from collections import deque

import numpy as np

from ai8xtools.emulator.bits import truncated
from ai8xtools.emulator.sensors.clock import NEVER, Board, steps
from ai8xtools.emulator.sensors.recorded import Recorded
from device.fields import Register, flag

NAME = "microphone"
_DEPTH = 8
_WORD_BYTES = 4
_STEP = 1 << 14
"""What 1 is in a word of 32 bits: the upper 18 hold the value."""
FLAGS = Register(
    "INTFL", 0, "flags", (flag("lost", 0, "the memory was full"), flag("filled", 1, "samples wait"))
)
_SECOND_US = 1e6


class Microphone:
    """The interface of a board. `delivered` counts samples."""

    def __init__(self, board: Board, recorded: Recorded) -> None:
        self._board, self._recorded = board, recorded
        self.delivered = 0
        self.flags = 0
        self._threshold = 4
        self._rate = 0
        self._word = _WORD_BYTES
        self._began: float | None = None
        self._samples: list[int] = []
        self._fifo: deque[int] = deque()
        self._serving = False  # the program handles an interrupt, whose time is that of its samples
        self._target = (0, 0)  # of DMA: address, bytes

    def set_up(self, rate: int, word_bytes: int) -> None:
        """Choose the rate in Hz, and the bytes of a sample."""
        self._rate, self._word = rate, word_bytes
        self._began, self._samples = None, []

    def start(self) -> None:
        """Begin to listen."""
        if self._rate and self._began is None:
            self._began = self._board.now
            if NAME not in self._recorded.silent:
                self._samples = self._recorded.samples(self._rate).tolist()
            self._fifo.clear()
            self.delivered = 0

    def stop(self) -> None:
        """End it."""
        self._began = None

    def wait_for(self, samples: int) -> None:
        """Choose how many samples interrupt the program."""
        self._threshold = samples

    def copy_to(self, address: int, size: int) -> None:
        """Have the next `size` bytes of samples stored there."""
        self._target = address, size

    @property
    def _due(self) -> int:
        if self._began is None:
            return 0
        passed = self._board.now - self._began
        return min(len(self._samples), steps(passed, _SECOND_US / self._rate))

    def _hear(self) -> None:
        if len(self._fifo) < _DEPTH:
            self._fifo.append(self._samples[self.delivered])
        else:
            self.flags = FLAGS.by_name["lost"].set(self.flags, 1)
        self.delivered += 1

    def _missing(self) -> int:
        """Return how many samples the next interrupt needs."""
        if self._target[1]:
            return self._target[1] // self._word
        return max(1, self._threshold - len(self._fifo))

    def next_us(self) -> float:
        """Return how long a program that sleeps waits for the next interrupt."""
        self._serving = False
        if self._began is None or NAME in self._recorded.silent:
            return NEVER
        needed = self.delivered + self._missing()
        if needed > len(self._samples):
            self._board.is_over(NAME)
            return NEVER
        return max(0.0, self._began + needed * _SECOND_US / self._rate - self._board.now)

    def step(self) -> bool:
        """Let samples come up to the next interrupt that is due; return whether one is."""
        self._serving = False
        missing = self._missing()
        if self._began is None or self.delivered + missing > self._due:
            return False
        if self._target[1]:
            address, size = self._target
            self._target = 0, 0
            part = self._samples[self.delivered : self.delivered + missing]
            words = np.array([self._coded(one) for one in part], f"<u{self._word}")
            self._board.store(address, words.tobytes()[:size])
            self.delivered += missing
            return True
        for _ in range(missing):
            self._hear()
        self.flags = FLAGS.by_name["filled"].set(self.flags, 1)
        self._serving = True
        return True

    @property
    def listens(self) -> bool:
        """Whether samples come."""
        return self._began is not None

    @property
    def copies(self) -> bool:
        """Whether DMA is to store samples."""
        return self._target[1] > 0

    def acknowledge(self, flags: int) -> None:
        """Clear these flags."""
        kept = (1 - field.unpack(flags) for field in FLAGS.fields)
        for field, keep in zip(FLAGS.fields, kept, strict=True):
            self.flags = field.set(self.flags, keep * field.unpack(self.flags))

    def level(self) -> int:
        """Return how many samples wait; where none does, time passes until the next."""
        if not self._serving:
            while self.delivered < self._due:
                self._hear()
            if not self._fifo and self._began is not None:
                if self._samples and self.delivered == len(self._samples):
                    self._board.is_over(NAME)
                self._board.pass_time(_SECOND_US / self._rate)
        return len(self._fifo)

    def take(self) -> int:
        """Return the sample that has waited longest, as a word; 0 if there is none."""
        return self._coded(self._fifo.popleft()) if self._fifo else 0

    def _coded(self, sample: int) -> int:
        step = _STEP if self._word == _WORD_BYTES else 1
        return truncated(sample * step, 8 * self._word)

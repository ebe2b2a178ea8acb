"""The bus of a simulated chip, as programs of RTL simulation tests see it.

Source: docs/emulator.md, "The core and its peripherals".
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence

from ai8xtools.emulator.firmware.bus import Bus
from ai8xtools.emulator.machine.accelerator import Accelerator
from ai8xtools.emulator.words.writes import Writes
from device import Chip

_CAMERA_FLAGS, _CAMERA_DATA, _CAMERA_TRIGGER = 0x4000E010, 0x4000E030, 0x400FF000
_WORD_READY = 0x80

Write = tuple[int, int, int]
"""Width in bytes, address, value."""


class TestBus(Bus):
    """The bus of a simulated chip: a program that polls the end of the network makes it run.

    `camera` are the words that the camera delivers once the program has triggered it.
    """

    __test__ = False  # not a test, whatever pytest thinks of the name

    def __init__(self, chip: Chip, apb_base: int, camera: Iterable[int] = ()) -> None:
        super().__init__(chip, apb_base)
        self._camera = list(camera)[::-1]
        self._triggered = False
        self._polls = 0
        self.run_positions: list[int] = []  # numbers of writes in front of each run
        self.data_reads: list[Write] = []
        """What the program read behind a run: number of writes in front, address, value."""
        self.executes = True
        """Whether the network runs when it is started."""
        self._accelerator = Accelerator(chip, apb_base)
        self._applied = 0  # writes that the accelerator has seen
        self._preloaded: Writes = Writes.of([])

    def preload(self, rows: Sequence[Write]) -> None:
        """Let the test bench put words into memories when the network starts."""
        self._preloaded = Writes.of(rows)
        self.words.update((address, value) for _, address, value in rows)

    def infer(self) -> bool:
        """Run the network if it was started and has its input; return whether it was run.

        Its results are in data memory afterwards.
        """
        if not (self.start_requested and self.executes):
            return False
        self._accelerator.write(self.writes(self._applied))
        self._applied = len(self.log)
        if not self._accelerator.input_complete():
            return False
        if not self.run_positions:
            self._accelerator.write(self._preloaded)
        self.run_positions.append(self._applied)
        self._accelerator.start()
        self.words.update(self._accelerator.result_words())
        self.finish()
        return True

    def read(self, address: int, size: int) -> int:
        """Load 1, 2 or 4 bytes."""
        if self._triggered and address == _CAMERA_FLAGS:
            return _WORD_READY if self._camera else 0
        if self._triggered and address == _CAMERA_DATA:
            return self._camera.pop()
        if self.start_requested and address in self._controls:
            self._polls += 1  # one read may check what was written
            if self._polls > 1:
                self.infer()
        value = super().read(address, size)
        if self.run_positions and size == 4 and self._is_data(address):
            self.data_reads.append((len(self.log), address, value))
        return value

    def _is_data(self, address: int) -> bool:
        """Whether an address is one of data memory."""
        assert self.addresses is not None
        chip = self.addresses.chip
        offset = address - self.apb_base - chip.cnn_offset
        return offset >= 0 and offset % chip.group_stride >= chip.data_offset

    def write(self, address: int, size: int, value: int) -> None:
        """Store 1, 2 or 4 bytes."""
        super().write(address, size, value)
        self._polls = 0
        if address == _CAMERA_TRIGGER:
            self._triggered = True

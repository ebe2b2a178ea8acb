"""Running the program of an RTL simulation test on an emulated core, without a simulator.

Its writes to the accelerator are what the open test bench replays on its bus; with memory images
loaded, the emulated accelerator computes what silicon would.
"""

from __future__ import annotations

import re
import shutil
import tempfile
from collections.abc import Iterable
from dataclasses import dataclass
from pathlib import Path

from device import Chip
from device.chip import DEFAULT_APB_BASE, KERNEL_COLUMN_STRIDE_BYTES, PART_BYTES
from emulator import Accelerator, Writes
from emulator.bus import Bus
from emulator.core import Core
from emulator.firmware import compile_project, compile_wrapper

SDK = Path(__file__).resolve().parent.parent / "rtl" / "sdk"
PHASES = ("cnn_init", "cnn_load_weights", "cnn_load_bias", "cnn_configure")
"""Functions of a test that write to the accelerator, in the order of the program."""

_CAMERA_FLAGS, _CAMERA_DATA, _CAMERA_TRIGGER = 0x4000E010, 0x4000E030, 0x400FF000
_WORD_READY = 0x80
_WAKE_INTERRUPT = 63
_IMAGE = re.compile(r"[DM]RAM_x16_(\d)_proc_(\d+)_ram_(\d)\.dat")
_QUAD = 4

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
        self.run_positions: list[int] = []  # numbers of writes in front of each run
        self.preloaded: list[Write] = []

    def infer(self) -> None:
        """Run the network; its results are in data memory afterwards."""
        assert self.addresses is not None
        self.run_positions.append(len(self.log))
        accelerator = Accelerator(self.addresses.chip, self.apb_base)
        accelerator.write(self.writes())
        accelerator.write(Writes.of(self.preloaded))
        accelerator.run()
        self.words.update(accelerator.result_words())
        self.finish()

    def read(self, address: int, size: int) -> int:
        """Load 1, 2 or 4 bytes."""
        if self._triggered and address == _CAMERA_FLAGS:
            return _WORD_READY if self._camera else 0
        if self._triggered and address == _CAMERA_DATA:
            return self._camera.pop()
        if self.start_requested and address in self._controls:
            self.infer()
        return super().read(address, size)

    def write(self, address: int, size: int, value: int) -> None:
        """Store 1, 2 or 4 bytes."""
        super().write(address, size, value)
        if address == _CAMERA_TRIGGER:
            self._triggered = True


@dataclass
class _Observer:
    """What the program prints, and what it waits for."""

    bus: TestBus
    console: str = ""

    def text(self, character: str) -> None:
        """The program prints a character."""
        self.console += character

    def wait(self, sleeping: bool) -> int:  # noqa: ARG002
        """The program waits for the interrupt of the accelerator."""
        if not self.bus.start_requested:
            return 0
        self.bus.infer()
        return self.core.architecture.cnn_interrupt

    core: Core = None  # type: ignore[assignment]  # known as soon as it is made


@dataclass
class _Starter:
    """The Arm core beside a RISC-V core: while it waits, that one runs its program."""

    core: Core

    def text(self, character: str) -> None:
        """It prints nothing."""

    def wait(self, sleeping: bool) -> int:  # noqa: ARG002
        """It waits for the other core."""
        self.core.run()
        return _WAKE_INTERRUPT


class TestProgram:
    """A test's program on an emulated core."""

    __test__ = False

    def __init__(
        self,
        folder: Path,
        chip: Chip,
        apb_base: int = DEFAULT_APB_BASE,
        camera: Iterable[int] = (),
    ) -> None:
        self.bus = TestBus(chip, apb_base, camera)
        self.bus.preloaded = preloaded_writes(folder, chip, apb_base)
        for _, address, value in self.bus.preloaded:
            self.bus.words[address] = value
        with tempfile.TemporaryDirectory(prefix="rtl-") as scratch:
            for file in [*SDK.iterdir(), *folder.glob("*.[ch]")]:
                shutil.copy(file, scratch)
            image, wrapper = compile_project(Path(scratch)), compile_wrapper(Path(scratch))
        self._observer = _Observer(self.bus)
        self.core = self._observer.core = Core(image, self.bus, self._observer)
        self._starter = Core(wrapper, self.bus, _Starter(self.core)) if wrapper else None

    @property
    def console(self) -> str:
        """What the program has printed."""
        return self._observer.console

    def run(self) -> bool:
        """Run main() from reset; tell whether the test passed."""
        (self._starter or self.core).run()
        return "PASS" in self.console and "FAIL" not in self.console

    def phases(self) -> dict[str, Writes]:
        """Call the functions of the test one after the other; return what each writes."""
        found = {}
        for phase in PHASES:
            begin = len(self.bus.log)
            self.core.call(phase)
            found[phase] = self.bus.writes(begin)
        return found


def preloaded_writes(folder: Path, chip: Chip, apb_base: int = DEFAULT_APB_BASE) -> list[Write]:
    """Return the contents of a test's images of input and weights as plain writes."""
    rows: list[Write] = []
    for address, word in read_data_images(folder / "data", chip, apb_base).items():
        rows.append((4, address, int(word, 16)))
    for address, column in read_kernel_images(folder / "masks", chip, apb_base).items():
        words = (column[:2], column[2:10], column[10:], "0")
        rows += [(4, address + 4 * i, int(word, 16)) for i, word in enumerate(words)]
    return rows


def read_data_images(folder: Path, chip: Chip, apb_base: int) -> dict[int, str]:
    """Return the words of the images of a folder as digits, by bus address."""
    words = {}
    for group, processor, part, place, digits in _entries(folder, "DRAM"):
        instance = (_QUAD * _QUAD * group + processor) // _QUAD
        offset = part * PART_BYTES + 4 * place
        words[apb_base + chip.data_address(instance, offset)] = digits
    return words


def read_kernel_images(folder: Path, chip: Chip, apb_base: int) -> dict[int, str]:
    """Return the columns of the images of a folder as 18 digits, by bus address."""
    columns = {}
    for group, unit, part, place, digits in _entries(folder, "MRAM"):
        column = 1024 * part if part < 4 else 4096 + 256 * (part - 4)
        address = apb_base + chip.kernel_address(_QUAD * _QUAD * group + unit)
        address += KERNEL_COLUMN_STRIDE_BYTES * (column + place)
        columns[address] = digits.replace("_", "")
    return columns


def _entries(folder: Path, kind: str) -> Iterable[tuple[int, int, int, int, str]]:
    """Yield group, processor, part, place and digits of each line of the images in a folder."""
    for file in sorted(folder.glob(f"{kind}_*")):
        found = _IMAGE.fullmatch(file.name)
        assert found, file
        group, processor, part = (int(text) for text in found.groups())
        for line in file.read_text().splitlines():
            place, digits = line.removeprefix("@").split(" ")
            yield group, processor, part, int(place, 16), digits

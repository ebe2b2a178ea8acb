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

from ai8xtools.emulator import EmulatorError, Writes
from ai8xtools.emulator.cpu.core import Core
from ai8xtools.emulator.cpu.io import Unobserved
from ai8xtools.emulator.firmware.compiling import compile_project, compile_wrapper
from ai8xtools.emulator.firmware.interrupts import WAKE_INTERRUPT, accelerator_interrupt
from ai8xtools.emulator.firmware.loader import OK
from ai8xtools.emulator.firmware.rtl_bus import TestBus, Write
from ai8xtools.emulator.state.power import CPU1_CLOCK, is_running
from device import Chip
from device.chip import DEFAULT_APB_BASE, FLASH_BASE, KERNEL_COLUMN_STRIDE_BYTES

SDK = Path(__file__).resolve().parent.parent / "rtl" / "sdk"
PHASES = ("cnn_init", "cnn_load_weights", "cnn_load_bias", "cnn_configure")
"""Functions of a test that write to the accelerator, in the order of the program."""

_IMAGE = re.compile(r"[DM]RAM_x16_(\d)_proc_(\d+)_ram_(\d)\.dat")
_FLASH_WORD_BYTES = 16
_QUAD = 4
_LINES_PER_PIXEL = 6


@dataclass
class _Observer(Unobserved):
    """What the program prints, and what it waits for."""

    bus: TestBus
    console: str = ""

    def text(self, character: str) -> None:
        """The program prints a character."""
        self.console += character

    def wait(self, sleeping: bool) -> int:  # noqa: ARG002
        """The program waits for the interrupt of the accelerator."""
        return accelerator_interrupt(self.core.architecture) if self.bus.infer() else 0

    @property
    def expecting(self) -> bool:
        """Whether the network was started."""
        return self.bus.start_requested

    core: Core = None  # type: ignore[assignment]  # known as soon as it is made


@dataclass
class _Starter(Unobserved):
    """The Arm core beside a RISC-V core: while it waits, that one runs its program."""

    core: Core
    bus: TestBus
    started: bool = False

    @property
    def expecting(self) -> bool:
        """Whether the other core was started and has still to run."""
        return not self.started and is_running(self.bus.words, CPU1_CLOCK)

    def text(self, character: str) -> None:
        """It prints nothing."""

    def wait(self, sleeping: bool) -> int:  # noqa: ARG002
        """It waits for the other core."""
        if self.started:
            return 0
        self.started = True
        self.core.run()
        return WAKE_INTERRUPT


class TestProgram:
    """A test's program, compiled once; each run or call begins on a chip that is as after reset.

    `bus` is that of the last run, `console` what the program printed then.
    """

    __test__ = False

    def __init__(
        self,
        folder: Path,
        chip: Chip,
        apb_base: int = DEFAULT_APB_BASE,
        camera: Iterable[int] = (),
    ) -> None:
        self._chip, self._apb_base, self._camera = chip, apb_base, tuple(camera)
        self._preloaded = preloaded_writes(folder, chip, apb_base)
        with tempfile.TemporaryDirectory(prefix="rtl-") as scratch:
            for file in [*SDK.iterdir(), *folder.glob("*.[ch]")]:
                shutil.copy(file, scratch)
            self._image = compile_project(Path(scratch))
            self._wrapper = compile_wrapper(Path(scratch))
        self._reset()

    @property
    def console(self) -> str:
        """What the program has printed."""
        return self._observer.console

    def run(self) -> bool:
        """Run main() from reset; return whether the test passed."""
        core = self._reset()
        starter = Core(self._wrapper, self.bus, _Starter(core, self.bus)) if self._wrapper else core
        starter.run()
        return "PASS" in self.console and "FAIL" not in self.console

    def flash_words(self, count: int) -> list[str]:
        """Return the image as words of 16 bytes in digits, from the beginning of flash memory."""
        content = bytearray(_FLASH_WORD_BYTES * count)
        for address, data in self._image.segments:
            if FLASH_BASE <= address < FLASH_BASE + len(content) - len(data):
                content[address - FLASH_BASE : address - FLASH_BASE + len(data)] = data
        words = range(0, len(content), _FLASH_WORD_BYTES)
        return [content[i : i + _FLASH_WORD_BYTES][::-1].hex() for i in words]

    def phases(self) -> dict[str, Writes]:
        """Call the functions of the test one after the other; return what each writes."""
        core = self._reset()
        self.bus.executes = False
        writes = {}
        for phase in PHASES:
            begin = len(self.bus.log)
            if core.call(phase) != OK:
                raise EmulatorError("E823", f"{phase}() does not return {OK} (CNN_OK)")
            writes[phase] = self.bus.writes(begin)
        return writes

    def _reset(self) -> Core:
        self.bus = TestBus(self._chip, self._apb_base, self._camera)
        self.bus.preload(self._preloaded)
        self._observer = _Observer(self.bus)
        core = self._observer.core = Core(self._image, self.bus, self._observer)
        return core


def camera_words(samples: str, channels: int, pixel_format: int = 888) -> list[int]:
    """Return the words that the camera interface makes of the samples of a test, pixel by pixel."""
    lines = [line.split(",") for line in samples.splitlines()[1:]]
    data = [int(line[3], 16) for line in lines if line[1] == "1"][::_LINES_PER_PIXEL]
    if pixel_format == 888:
        return [
            sum(byte << 8 * i for i, byte in enumerate(data[start : start + channels]))
            for start in range(0, len(data), channels)
        ]
    green_bits = 5 if pixel_format == 555 else 6
    pixels = [high << 8 | low for high, low in zip(data[::2], data[1::2], strict=True)]
    return [_expanded(pixel, green_bits) for pixel in pixels]


def _expanded(pixel: int, green_bits: int) -> int:
    """Return a pixel of 15 or 16 bits as three bytes, red in the lowest; low bits are 0."""
    red, rest = divmod(pixel, 1 << green_bits + 5)
    green, blue = divmod(rest, 1 << 5)
    return (red << 3 & 0xFF) | (green << 8 - green_bits) << 8 | (blue << 3) << 16


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
        offset = part * chip.data_part_bytes + 4 * place
        words[apb_base + chip.data_address(instance, offset)] = digits
    return words


def read_kernel_images(folder: Path, chip: Chip, apb_base: int) -> dict[int, str]:
    """Return the columns of the images of a folder as 18 digits, by bus address."""
    columns = {}
    for group, unit, part, place, digits in _entries(folder, "MRAM"):
        address = apb_base + chip.kernel_address(_QUAD * _QUAD * group + unit)
        address += KERNEL_COLUMN_STRIDE_BYTES * chip.kernel_column(part, place)
        columns[address] = digits.replace("_", "")
    return columns


def _entries(folder: Path, kind: str) -> Iterable[tuple[int, int, int, int, str]]:
    """Yield group, processor, part, place and digits of each line of the images in a folder."""
    for file in sorted(folder.glob(f"{kind}_*")):
        match = _IMAGE.fullmatch(file.name)
        assert match, file
        group, processor, part = (int(text) for text in match.groups())
        for line in file.read_text(encoding="utf-8").splitlines():
            place, digits = line.removeprefix("@").split(" ")
            yield group, processor, part, int(place, 16), digits

"""Simulating a test in the open test bench with Icarus Verilog."""

from __future__ import annotations

import os
import shlex
import shutil
import subprocess
import sys
from dataclasses import dataclass
from pathlib import Path

from ai8xtools.emulator.firmware.rtl_bus import TestBus
from ai8xtools.synthesis.emit.rtl import chip_header
from device import Chip, chip_named
from device.chip import DEFAULT_APB_BASE
from tools.rtl_program import TestProgram, camera_words

ROOT = Path(__file__).resolve().parent.parent
BENCH, VPI = ROOT / "rtl" / "bench", ROOT / "rtl" / "vpi"
SOURCES = ("chip.sv", "cnn.sv")
LOG = "run_test.log.fail"
"""Where the script of a test looks for the number of cycles while the simulation runs."""

SIMULATION_SECONDS = 600
_VERDICT = 9
_BUS_LINE = "{} {:08x} {:08x}"
_FLASH_WORD_BYTES, _INFORMATION_WORDS = 16, 0x400


@dataclass(frozen=True, slots=True)
class CameraFile:
    """The samples of a test's camera: the file, channels and format."""

    filename: str
    channels: int
    pixel_format: int = 888

    def words(self, test: Path) -> list[int]:
        """Return the words that the camera interface makes of them."""
        text = (test / self.filename).read_text(encoding="utf-8")
        return camera_words(text, self.channels, self.pixel_format)


@dataclass(frozen=True, slots=True)
class RtlSimulation:
    """How a simulation ended, and what it and the compiler printed."""

    passed: bool
    log: str
    warnings: str


def missing_tools() -> str | None:
    """Return what is not installed, in words; None if a simulation is possible."""
    names = [name for name in ("iverilog", "vvp", "iverilog-vpi", "cc") if not shutil.which(name)]
    if not names:
        return None
    return f"{', '.join(names)} not found (Debian packages: iverilog, gcc)"


def simulate(
    test: Path,
    device: str,
    work: Path,
    apb_base: int = DEFAULT_APB_BASE,
    camera: CameraFile | None = None,
    runtest: str = "run_test.sv",
) -> RtlSimulation:
    """Run a test in the bench; `work` is a folder for what passes between its parts.

    `runtest` is the test's part of the bench, as --runtest-filename names it.
    """
    chip = chip_named(device)
    work.mkdir(parents=True, exist_ok=True)
    (work / "chip.svh").write_text(chip_header(chip, apb_base), encoding="utf-8")
    has_program = any(test.glob("*.c"))
    if has_program:
        _execute(test, chip, work, apb_base, camera)
    silicon = [sys.executable, str(ROOT / "tools" / "rtl_silicon.py"), "--device", device]
    macros = {
        "TARGET_DIR": str(test),
        "WORK_DIR": str(work),
        "RUN_TEST": str(test / runtest),
        "SILICON": shlex.join([*silicon, "--apb-base", hex(apb_base)]),
    }
    warnings = _elaborate(work, macros, "tb.sv" if has_program else "tb_block.sv")
    log = test / LOG
    result = subprocess.run(
        ["vvp", "-n", "-M", str(work), "-m", "system", "-l", str(log), str(work / "tb.vvp")],
        capture_output=True,
        text=True,
        timeout=SIMULATION_SECONDS,
        env={**os.environ, "PYTHONDONTWRITEBYTECODE": "1"},
        check=False,
    )
    passed = result.returncode == 0 and "TEST PASSED" in result.stdout
    return RtlSimulation(passed, result.stdout + result.stderr, warnings)


def _execute(test: Path, chip: Chip, work: Path, apb_base: int, camera: CameraFile | None) -> None:
    """Run the test's program and write what the bench replays."""
    words = camera.words(test) if camera else []
    program = TestProgram(test, chip, apb_base, words)
    passed = program.run()
    (work / "bus.txt").write_text(bus_text(program.bus, passed), encoding="utf-8")
    if any(test.glob("*_riscv.c")):
        count = chip.flash_bytes // _FLASH_WORD_BYTES + _INFORMATION_WORDS
        text = "\n".join(program.flash_words(count)) + "\n"
        (test / "RISCV_PROG_flash.prog").write_text(text, encoding="utf-8")


def bus_text(bus: TestBus, passed: bool) -> str:
    """Return what the bus carried while the program ran, where the network did, and reads.

    Each line has a number of bytes, an address and a value; 0 bytes stand for a run of the network,
    8 for the comparison of a word that the program read, 9 for the program's verdict: 1 if it
    passed, at the end.
    """
    events = [(position, 0, 0, 0) for position in bus.run_positions]
    events += [(position, 8, address, value) for position, address, value in bus.data_reads]
    lines: list[str] = []
    pending = iter(sorted(events, key=lambda event: event[:2]))
    event = next(pending, None)
    for number, (size, address, value) in enumerate([*bus.log, (None, 0, 0)]):
        while event is not None and event[0] <= number:
            lines.append(_BUS_LINE.format(*event[1:]))
            event = next(pending, None)
        if size is not None:
            lines.append(_BUS_LINE.format(size, address, value))
    lines.append(_BUS_LINE.format(_VERDICT, 0, int(passed)))
    return "\n".join(lines) + "\n"


def _elaborate(work: Path, macros: dict[str, str], bench: str) -> str:
    """Compile the bench; return the warnings of the compiler."""
    subprocess.run(
        ["iverilog-vpi", "--name=system", str(VPI / "system.c")],
        cwd=work,
        capture_output=True,
        check=True,
    )
    defined = [f'-D{name}="{text}"' for name, text in macros.items()]
    compiled = subprocess.run(
        ["iverilog", "-g2012", "-Wall", "-L", str(work), "-m", "system", "-I", str(work), "-I",
         str(BENCH), *defined, "-s", "tb", "-o", str(work / "tb.vvp"),
         *(str(BENCH / name) for name in (bench, *SOURCES))],
        capture_output=True,
        text=True,
        check=False,
    )  # fmt: skip
    if compiled.returncode:
        raise RuntimeError(f"Icarus Verilog refuses the test bench:\n{compiled.stderr}")
    return compiled.stderr

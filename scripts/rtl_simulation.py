"""Simulating a test in the open test bench with Icarus Verilog."""

from __future__ import annotations

import os
import shlex
import shutil
import subprocess
import sys
from dataclasses import dataclass
from pathlib import Path

from device import Chip, chip_named
from device.chip import DEFAULT_APB_BASE
from scripts.rtl_program import TestProgram
from synthesis.emit.rtl import chip_header

ROOT = Path(__file__).resolve().parent.parent
BENCH, VPI = ROOT / "rtl" / "bench", ROOT / "rtl" / "vpi"
SOURCES = ("tb.sv", "chip.sv", "cnn.sv")
LOG = "run_test.log.fail"
"""Where the script of a test looks for the number of cycles while the simulation runs."""

SIMULATION_SECONDS = 600


@dataclass(frozen=True, slots=True)
class Simulation:
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
    runtest_filename: str = "run_test.sv",
) -> Simulation:
    """Run a test in the bench; `work` is a folder for what passes between its parts."""
    chip = chip_named(device)
    work.mkdir(parents=True, exist_ok=True)
    (work / "bus.txt").write_text(bus_text(test, chip, apb_base))
    (work / "chip.svh").write_text(chip_header(chip, apb_base))
    silicon = [sys.executable, str(ROOT / "scripts" / "rtl_silicon.py"), "--device", device]
    macros = {
        "TARGET_DIR": str(test),
        "WORK_DIR": str(work),
        "RUN_TEST": str(test / runtest_filename),
        "SILICON": shlex.join([*silicon, "--apb-base", hex(apb_base)]),
    }
    warnings = _elaborate(work, macros)
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
    return Simulation(passed, result.stdout + result.stderr, warnings)


def bus_text(test: Path, chip: Chip, apb_base: int) -> str:
    """Return what the bus carries while the test's program runs, and where the network does."""
    program = TestProgram(test, chip, apb_base)
    program.run()
    writes = program.bus.writes()
    columns = (writes.size, writes.address, writes.value)
    rows = zip(*(column.tolist() for column in columns), strict=True)
    lines = [f"{size} {address:08x} {value:08x}" for size, address, value in rows]
    for position in reversed(program.bus.run_positions):
        lines.insert(position, "0 00000000 00000000")
    return "\n".join(lines) + "\n"


def _elaborate(work: Path, macros: dict[str, str]) -> str:
    """Compile the bench; return the warnings of the compiler."""
    subprocess.run(
        ["iverilog-vpi", "--name=system", str(VPI / "system.c")],
        cwd=work,
        capture_output=True,
        check=True,
    )
    defined = [f'-D{name}="{text}"' for name, text in macros.items()]
    found = subprocess.run(
        ["iverilog", "-g2012", "-Wall", "-L", str(work), "-m", "system", "-I", str(work), "-I",
         str(BENCH), *defined, "-s", "tb", "-o", str(work / "tb.vvp"),
         *(str(BENCH / name) for name in SOURCES)],
        capture_output=True,
        text=True,
        check=False,
    )  # fmt: skip
    if found.returncode:
        raise RuntimeError(f"Icarus Verilog refuses the test bench:\n{found.stderr}")
    return found.stderr

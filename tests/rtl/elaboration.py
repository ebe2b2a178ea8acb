"""Parsing and elaborating a test with the open test bench in pyslang, with every warning on."""

from __future__ import annotations

import shlex
import subprocess
import sys
from pathlib import Path

from ai8xtools.synthesis.emit.rtl import chip_header
from device import Chip
from device.chip import DEFAULT_APB_BASE
from tools.rtl_simulation import BENCH, SOURCES

WARNINGS = ("-Weverything", "-Wno-unused")
"""Names that only some tests look at are not used by the others."""

_PROGRAM = """
import sys
from pyslang import driver
session = driver.Driver()
session.addStandardArgs()
ready = session.parseCommandLine(sys.argv[1], driver.CommandLineOptions())
if not (ready and session.processOptions() and session.parseAllSources()):
    sys.exit(2)
compilation = session.createCompilation()
session.reportCompilation(compilation, True)
names = [instance.name for instance in compilation.getRoot().topInstances]
print(names, len(compilation.getAllDiagnostics()))
"""
"""Runs in a process of its own, since diagnostics go to the standard error of the process."""


def complaints(test: Path, chip: Chip, work: Path, bench: str = "tb.sv", *macros: str) -> str:
    """Return what the parser says of a test in the bench; empty if it finds nothing.

    `test` holds run_test.sv, `work` is a folder for the facts about the chip.
    """
    work.mkdir(parents=True, exist_ok=True)
    (work / "chip.svh").write_text(chip_header(chip, DEFAULT_APB_BASE))
    texts = {"TARGET_DIR": test, "WORK_DIR": work, "RUN_TEST": test / "run_test.sv", "SILICON": "x"}
    defined = [f'-D{name}="{text}"' for name, text in texts.items()]
    defined += [f"-D{name}" for name in macros]
    sources = [str(BENCH / name) for name in (bench, *SOURCES)]
    command = shlex.join(
        ["slang", *WARNINGS, "-I", str(work), "-I", str(BENCH), *defined, "--top", "tb", *sources]
    )
    done = subprocess.run(
        [sys.executable, "-c", _PROGRAM, command], capture_output=True, text=True, check=False
    )
    if done.returncode == 0 and done.stdout.strip() == "['tb'] 0":
        return done.stderr.strip()
    return done.stderr + done.stdout

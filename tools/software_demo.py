#!/usr/bin/env python3
"""The trained digits network on four cores without the accelerator: generate, run, count.

Drives the command lines that a user would type and ends with a table. Everything is written below
one folder.
"""

from __future__ import annotations

import argparse
import re
import shlex
import subprocess
import sys
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

ROOT = Path(__file__).resolve().parent.parent
sys.path.insert(0, str(ROOT))  # started as a script, Python looks beside this file only

from ai8xtools.diagnostics import refused, run  # noqa: E402

DIGITS = (
    "--config-file", "networks/digits-chw-ai85.yaml",
    "--checkpoint-file", "trained/digits-ai85digitsnet-qat8-q.pth.tar",
    "--sample-input", "tests/sample_digits.npy",
)  # fmt: skip
TARGETS = (
    ("rp2040", "cortex-m0plus", ()),
    ("stm32l4r5", "cortex-m4", ()),
    ("esp32c3", "rv32imc", ()),
    ("ch32v003", "rv32ec", ("--l1", "8K", "--flash", "64K")),
)
"""Microcontroller, its core, and sizes in place of those of one that is too small."""


@dataclass(frozen=True, slots=True)
class Row:
    """A line of the table."""

    mcu: str
    core: str
    scheme: str
    ram: str
    code: str
    stack: str
    instructions: int
    per_mac: str


def command(words: Sequence[str]) -> str:
    """Run a command line, showing it; return what it prints. Raises DiagnosticError if it fails."""
    print(f"$ {shlex.join(words)}", flush=True)
    python = [sys.executable] if words[0].endswith(".py") else []
    done = subprocess.run([*python, *words], cwd=ROOT, capture_output=True, text=True, check=False)
    if done.returncode:
        raise refused("E010", f"it ended with status {done.returncode}:\n{done.stdout}"
                       f"{done.stderr}", None, shlex.join(words))  # fmt: skip
    return done.stdout


def captured(pattern: str, text: str) -> str:
    """Return what the group of a pattern matches."""
    match = re.search(pattern, text)
    if match is None:
        raise refused("E010", f"no {pattern!r} in:\n{text}")
    return match[1]


def on_core(output: Path, mcu: str, core: str, sizes: Sequence[str], scheme: str) -> Row:
    """Generate the project for a microcontroller and run it on its core, emulated."""
    name = f"digits-{core}-{scheme}"
    place = ("--prefix", name, "--test-dir", str(output), "--overwrite")
    words = ("--device", "MCU", "--mcu", mcu, *sizes, *DIGITS, "--scheme", scheme, *place)
    log = command(["ai8xize.py", *words])
    project = output / name
    command(["make", "-s", "-C", str(project)])
    if "*** PASS ***" not in command([str(project / "main")]):
        raise refused("E010", f"{name} does not pass on this computer")
    ran = command(["emulate.py", str(project), "--core", core, "--count"])
    print(f"  {ran.splitlines()[-1]}")
    return Row(
        mcu,
        core,
        scheme,
        captured(r"\(([\d,]+) of data", log),
        captured(r"code of the network (\d+)", ran),
        captured(r"Stack: (\d+)", ran),
        int(captured(r"(\d+) .*all of an inference", ran)),
        captured(r"\): ([\d.]+) instructions", ran),
    )


def main() -> int:
    """Run the demo; return the exit status."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--output", type=Path, default=ROOT / "build" / "software-demo")
    args = parser.parse_args()
    rows = [
        on_core(args.output.resolve(), mcu, core, sizes, scheme)
        for mcu, core, sizes in TARGETS
        for scheme in ("resident", "rows")
    ]
    print()
    print(f"{'microcontroller':16} {'core':14} {'plan':9} {'data':>7} {'code':>6} {'stack':>6} "
          f"{'instructions':>13} {'per MAC':>8}")  # fmt: skip
    for row in rows:
        print(f"{row.mcu:16} {row.core:14} {row.scheme:9} {row.ram:>7} {row.code:>6} "
              f"{row.stack:>6} {row.instructions:>13,} {row.per_mac:>8}")  # fmt: skip
    print("Bytes; the same outputs on all cores, equal to the accelerator's.")
    return 0


if __name__ == "__main__":
    sys.exit(run(main))

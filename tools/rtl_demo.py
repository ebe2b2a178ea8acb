#!/usr/bin/env python3
"""A test for RTL simulation in the open test bench, from its generation to its verdict.

Generates a test of a trained network, executes its program on an emulated core for the writes on
the bus, elaborates the bench of rtl/bench with Icarus Verilog and simulates it: images are loaded,
the writes replayed, the network computed by the emulator of the project, memories dumped and
compared by the test's own verify-output.py. Then once more with one expected word altered, which
must fail. Without Icarus Verilog it says so and ends with status 0.
"""

from __future__ import annotations

import argparse
import re
import shlex
import shutil
import subprocess
import sys
from collections.abc import Iterator, Sequence
from pathlib import Path

ROOT = Path(__file__).resolve().parent.parent
sys.path.insert(0, str(ROOT))  # started as a script, Python looks beside this file only

from ai8xtools.diagnostics import refused, run  # noqa: E402
from tools.rtl_simulation import missing_tools, simulate  # noqa: E402

NETWORK = (
    "--device", "MAX78000", "--config-file", "networks/mnist-chw-ai85.yaml",
    "--checkpoint-file", "trained/mnist-ai85net5-qat8-q.pth.tar",
)  # fmt: skip
TEST = ("--rtl-preload", "--rtl-preload-weights", "--result-output")


def generate(folder: Path, options: Sequence[str]) -> Path:
    """Run the network loader; return the folder of the test."""
    shutil.rmtree(folder, ignore_errors=True)
    words = ["ai8xize.py", *options, "--prefix", "mnist", "--test-dir", str(folder), "--autogen",
             str(folder.parent)]  # fmt: skip
    folder.mkdir(parents=True)
    print(f"$ {shlex.join(words)}", flush=True)
    if subprocess.run([sys.executable, *words], cwd=ROOT, check=False).returncode:
        raise refused("E010", "the test was not generated", remedy="See above.")
    return next(path for path in folder.iterdir() if path.is_dir())


def alter_expected_word(test: Path) -> str:
    """Change one digit that the test expects; return what was done in words."""
    image = sorted((test / "data-expected").glob("DRAM_*"))[0]
    first, *rest = image.read_text(encoding="utf-8").splitlines()
    altered = re.sub(r"[0-9a-f]$", lambda digit: f"{int(digit[0], 16) ^ 1:x}", first)
    image.write_text("\n".join([altered, *rest]) + "\n", encoding="utf-8")
    return f"{image.name}: '{first}' becomes '{altered}'"


def results(log: str) -> Iterator[str]:
    """Yield the lines of a log that tell what happened, without the names of folders."""
    for line in log.splitlines():
        if re.search(r"CNN|Loaded|ERROR|Results|errors|Time-out|TEST", line):
            yield f"  {line}"


def demo(output: Path) -> int:
    """Run both simulations; return 0 if the first passes and the second fails."""
    missing = missing_tools()
    if missing:
        print(f"rtl-demo is skipped: {missing}")
        return 0
    test = generate(output / "tests", (*NETWORK, *TEST))
    print("\n== simulation")
    first = simulate(test, "MAX78000", output / "work")
    print("\n".join(results(first.log)))
    print(f"\n== simulation with an altered word\n  {alter_expected_word(test)}")
    second = simulate(test, "MAX78000", output / "work")
    print("\n".join(results(second.log)))
    as_it_should = first.passed and not second.passed
    verdict = "PASS, and FAIL with the altered word: as it should be" if as_it_should else "WRONG"
    print(f"\n{verdict}")
    return 0 if as_it_should else 1


def main() -> int:
    """Run the command line; return the exit status."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--output", type=Path, default=ROOT / "build" / "rtl-demo", metavar="DIR",
                        help="folder for everything that is written (%(default)s)")  # fmt: skip
    return demo(parser.parse_args().output.resolve())


if __name__ == "__main__":
    sys.exit(run(main))

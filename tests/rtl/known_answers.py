"""Tests for RTL simulation of known answers: `python -m tests.rtl.known_answers [NAME ...]`.

Of each case two tests are generated, one whose program loads everything and one with images. The
first one's program is compiled and executed on an emulated core; what its functions write, and the
contents of the images, must be the recorded words of the reference tool's embedded firmware. Names
may be patterns; prints what differs, and how many cases agree, differ and cannot be simulated.
"""

from __future__ import annotations

import argparse
import subprocess
import sys
import tempfile
from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass
from fnmatch import fnmatch
from pathlib import Path

from ai8xtools.emulator import EmulatorError, count_words
from device import Chip
from tests.conftest import ROOT
from tests.rtl.comparing import (
    SHOWN,
    differences,
    expected_of,
    found_in,
    image_differences,
    wanted_of,
)
from tests.synthesis.golden import APB_BASE, Case, names, phases
from tools.rtl_program import TestProgram

EMBEDDED_ONLY = ("--forever", "--fixed-input")
"""Options that tests for RTL simulation do not have."""
UNUSUAL_IMAGES = ("--no-kat", "--zero-sram", "--verify-kernels", "--verify-writes", "--mlator",
                  "--one-shot", "--stop-start", "--no-mexpress", "--mexpress")  # fmt: skip
"""Options with which there are fewer images, or which decide how the weights are loaded."""
WITHOUT_CACHE = ("--riscv-flash", "--riscv-debug", "--riscv-exclusive")


@dataclass(frozen=True, slots=True)
class Answer:
    """A case: what differs, and whether images and program were compared."""

    name: str
    wrong: tuple[str, ...]
    images: bool
    words: int = 0
    refused: str = ""


def generate(case: Case, folder: Path, *options: str) -> Path:
    """Run the network loader on a case's inputs; return the folder of the test."""
    words = [sys.executable, str(ROOT / "ai8xize.py"), *case.args, "--prefix", "net", "--test-dir",
             "out", "--overwrite", *options]  # fmt: skip
    for path in folder.glob("out/*"):
        subprocess.run(["rm", "-r", str(path)], check=True)
    done = subprocess.run(words, cwd=folder, capture_output=True, text=True, check=False)
    if done.returncode:
        raise ValueError(done.stderr.strip().splitlines()[-1] if done.stderr else "refused")
    return next(path for path in (folder / "out").iterdir() if path.is_dir())


def answer(name: str) -> Answer:
    """Compare the tests of a case with the recorded words."""
    case = Case.load(name)
    if set(case.args) & set(EMBEDDED_ONLY):
        return Answer(name, (), False, refused="an option is for embedded code only")
    golden = case.golden()
    embedded = phases(golden, case.chip)
    with tempfile.TemporaryDirectory(prefix="rtl-kat-") as scratch:
        folder = Path(scratch)
        case.unpack(folder)
        program = TestProgram(generate(case, folder, "--rtl"), case.chip)
        wanted = wanted_of(embedded)
        words = count_words(wanted)
        wrong = differences(found_in(program, case.chip), wanted)
        if set(case.args) & set(UNUSUAL_IMAGES):
            return Answer(name, tuple(wrong), False, words)
        wrong += _images(case, folder, golden, case.chip)
    return Answer(name, tuple(wrong), True, words)


def _images(case: Case, folder: Path, golden: dict[str, object], chip: Chip) -> list[str]:
    test = generate(case, folder, "--rtl-preload", "--rtl-preload-weights", "--result-output")
    embedded = phases(golden, chip)
    return image_differences(test, chip, embedded, expected_of(golden), APB_BASE)


def main(arguments: Sequence[str] | None = None) -> int:
    """Compare the chosen cases; return the exit status."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("names", nargs="*", default=["*"], metavar="NAME")
    parser.add_argument("--every", type=int, default=1, metavar="N", help="only each Nth case")
    args = parser.parse_args(arguments)
    chosen = [n for n in names("image") if any(fnmatch(n, p) for p in args.names)]
    count: Counter[str] = Counter()
    for name in chosen[:: args.every]:
        try:
            found = answer(name)
        except (EmulatorError, ValueError) as error:
            found = Answer(name, (str(error),), False)
        kind = "refused" if found.refused else "different" if found.wrong else "equal"
        count[kind] += 1
        count["with images"] += found.images
        count["words"] += found.words
        if kind != "equal":
            print(f"{name}: {found.refused or kind}")
            print("".join(f"  {line}\n" for line in found.wrong[:SHOWN]), end="", flush=True)
    print(", ".join(f"{number} {kind}" for kind, number in count.items()))
    return int(bool(count["different"]))


if __name__ == "__main__":
    sys.exit(main())

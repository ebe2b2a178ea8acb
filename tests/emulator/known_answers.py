"""Execute the recorded words of all known answers: `python -m tests.emulator.known_answers`.

Nothing but the words of a case (phase, size, address, value) reaches the machine; every expected
word is compared. Prints how many cases of each family pass, and the others with the reason; the
exit status is 1 if one fails without a known reason, or if fewer than 98 % pass.
"""

from __future__ import annotations

import argparse
import json
import sys
import time
from collections import Counter
from collections.abc import Iterator
from dataclasses import dataclass
from fnmatch import fnmatch
from pathlib import Path

import numpy as np
from numpy.typing import NDArray

from ai8xtools.emulator import EmulatorError
from ai8xtools.emulator.machine.accelerator import run_words
from ai8xtools.emulator.words.recording import read_words
from device import CHIPS, Chip
from device.chip import DEFAULT_APB_BASE

REQUIRED = 0.98

EXCEPTIONS = {
    "fifostream-group-notvga64x48-hwc": "the words hold one of the three channels of the image",
    "fifostream-x4-cifar-hwc-ai87": "the kernels of a later layer overwrite those of layer 0",
    "multilayer-eltwise": "the expected output splits channels otherwise than memory does",
    "opt-repeat-layers-mnist": "the second repetition reads input that the first has overwritten",
    "opt-zero-unused-mnist": "the option destroys the registers of the last layer",
    "opt-zero-unused-ai87-mnist": "the option destroys the registers of the last layer",
}
"""Known answers that the words alone do not lead to, and why."""


@dataclass(frozen=True, slots=True)
class Answer:
    """A case: how many expected words differ (an error counts as one), and seconds."""

    name: str
    family: str
    wrong: int
    words: int
    error: str
    seconds: float


def chip_of(addresses: NDArray[np.int64]) -> Chip:
    """Return the chip whose first control register is among the addresses."""
    written = set(addresses.tolist())
    return next(c for c in CHIPS if DEFAULT_APB_BASE + c.control_address(0, "CTL") in written)


def answer(case: Path) -> Answer:
    """Execute the words of a case."""
    family = json.loads((case / "case.json").read_text())["family"]
    start = time.perf_counter()
    recording = read_words(case / "golden.npz")
    try:
        _, words = run_words(recording, chip_of(recording.writes.address))
        wrong, error = len(recording.mismatches(words)), ""
    except EmulatorError as exc:
        wrong, error = 1, f"{exc.code}: {exc.message}"
    seconds = time.perf_counter() - start
    return Answer(case.name, family, wrong, len(recording.expected), error, seconds)


def answers(folder: Path, patterns: list[str]) -> Iterator[Answer]:
    """Execute the words of all cases whose name matches one of the patterns."""
    for recording in sorted(folder.glob("*/golden.npz")):
        if any(fnmatch(recording.parent.name, pattern) for pattern in patterns):
            yield answer(recording.parent)


def main() -> int:
    """Do what the command line asks for; return the exit status."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--kat", type=Path, default=Path("../shared/kat"), metavar="DIR")
    parser.add_argument("patterns", nargs="*", default=["*"], metavar="GLOB")
    args = parser.parse_args()
    found = list(answers(args.kat / "cases", args.patterns))
    if not found:
        print(f"error: {args.kat}/cases has no cases {' '.join(args.patterns)}", file=sys.stderr)
        return 1
    families = Counter(case.family for case in found)
    passed = Counter(case.family for case in found if not case.wrong)
    for family, count in sorted(families.items()):
        print(f"  {family:12} {passed[family]:3} of {count}")
    failed = [case for case in found if case.wrong]
    for case in failed:
        reason = EXCEPTIONS.get(case.name, "UNEXPLAINED")
        detail = case.error or f"{case.wrong} of {case.words} words differ"
        print(f"not matched: {case.name}: {reason} ({detail})")
    slowest = max(found, key=lambda case: case.seconds)
    checked = sum(1 for case in found if case.words or case.wrong)
    share = 1 - len(failed) / max(checked, 1)
    for case in found:
        if not case.words:
            print(f"executed, nothing expected: {case.name}")
    print(
        f"{checked - len(failed)} of {checked} with expected words ({share:.1%}), "
        f"{sum(case.words for case in found)} expected words, "
        f"{sum(case.seconds for case in found):.1f} s; "
        f"slowest {slowest.name} with {slowest.seconds:.1f} s"
    )
    unexplained = [case for case in failed if case.name not in EXCEPTIONS]
    return 1 if unexplained or (share < REQUIRED and args.patterns == ["*"]) else 0


if __name__ == "__main__":
    sys.exit(main())

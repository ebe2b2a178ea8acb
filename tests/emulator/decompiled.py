"""Read words back: `python -m tests.emulator.decompiled [--networks]`.

Those recorded of the known answers, or those that ai8xize.py gives for the descriptions in
networks/, with random weights. Nothing but the words reaches the accelerator. The loader makes
words of the description, the checkpoint and the sample that are found; they are compared with the
recorded ones. Prints what is not the same, and counts by family; status 1 if fewer than 95 % are
right.
"""

from __future__ import annotations

import argparse
import json
import sys
import tempfile
import time
from collections import Counter
from collections.abc import Iterator
from dataclasses import dataclass
from fnmatch import fnmatch
from pathlib import Path

from ai8xtools.commands.decompile.attempts import best_attempt
from ai8xtools.commands.decompile.verdict import computed
from ai8xtools.diagnostics import DiagnosticError
from ai8xtools.emulator import Accelerator, EmulatorError
from ai8xtools.emulator.state.memory import Memory
from ai8xtools.emulator.words.recording import read_words
from tests.emulator.faults import loaded_accelerator
from tests.emulator.known_answers import chip_of
from tests.networks.deployed import DEPLOYED, with_random_weights

REQUIRED = 0.95


@dataclass(frozen=True)
class Result:
    """What becomes of words, as `--decompile` tells it: right, others, or refused.

    Refused are also words that do not compute the network from which the loader makes them.
    `proven` if they are proven to compute the network that was found.
    """

    verdict: str
    text: str = ""
    proven: bool = False


def result_of(memory: Memory, *, proves: bool) -> Result:
    """Read what an accelerator is loaded with back."""
    try:
        best = best_attempt(memory, "net")
        if best.refusal is not None:
            raise best.refusal
    except EmulatorError as error:
        return Result("refused", error.message)
    except DiagnosticError as refusal:
        first = next(one for one in refusal.diagnostics if one.severity.is_error)
        return Result("refused", first.message)
    assert best.agreement is not None
    if not best.right:
        shown = "; ".join(map(str, best.agreement.departures[:3]))
        return Result("others", f"{dict(best.agreement.kinds)}: {shown}")
    if not proves:
        return Result("right")
    proof = computed(memory, best)
    return Result("refused" if proof.wrong else "right", proof.text, proof.proven)


def results(
    folder: Path, step: int, patterns: list[str], *, proves: bool
) -> Iterator[tuple[str, str, Result]]:
    """Yield name, family and result of every `step`th case that matches a pattern."""
    found = [path for path in sorted((folder / "cases").glob("*/golden.npz"))
             if any(fnmatch(path.parent.name, pattern) for pattern in patterns)]  # fmt: skip
    for path in found[::step]:
        family = json.loads((path.parent / "case.json").read_text())["family"]
        words = read_words(path).writes
        accelerator = Accelerator(chip_of(words.address))
        accelerator.write(words)
        yield path.parent.name, family, result_of(accelerator.memory, proves=proves)


def networks(
    _folder: Path, step: int, patterns: list[str], *, proves: bool
) -> Iterator[tuple[str, str, Result]]:
    """The same for the descriptions in networks/."""
    for deployed in DEPLOYED[::step]:
        if any(fnmatch(deployed.file, pattern) for pattern in patterns):
            with tempfile.TemporaryDirectory() as folder:
                checkpoint, _ = with_random_weights(deployed, Path(folder))
                memory = loaded_accelerator(deployed.synthesized(Path(folder), checkpoint)).memory
            yield deployed.file, deployed.chip.name, result_of(memory, proves=proves)


def main() -> int:
    """Do what the command line asks for; return the exit status."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--networks", action="store_true", help="those of networks/")
    parser.add_argument("--kat", type=Path, default=Path("../shared/kat"), metavar="DIR")
    parser.add_argument("--step", type=int, default=1, metavar="N", help="every Nth case")
    parser.add_argument("--no-proof", action="store_true", help="compare words only")
    parser.add_argument("patterns", nargs="*", default=["*"], metavar="GLOB")
    args = parser.parse_args()
    all_of, right, verdicts = Counter[str](), Counter[str](), Counter[str]()
    start = time.perf_counter()
    for name, family, result in (networks if args.networks else results)(
        args.kat, args.step, args.patterns, proves=not args.no_proof
    ):
        all_of[family] += 1
        right[family] += result.verdict == "right"
        verdicts[result.verdict] += 1
        verdicts["proven"] += result.proven
        if result.verdict != "right" or not (result.proven or args.no_proof):
            print(f"{name}: {result.verdict}: {result.text}", flush=True)
    if not all_of:
        print(f"error: there are no such cases in {args.kat}/cases", file=sys.stderr)
        return 1
    for family, count in sorted(all_of.items()):
        print(f"  {family:12} {right[family]:3} of {count}")
    share = verdicts["right"] / all_of.total()
    print(f"{verdicts['right']} of {all_of.total()} right ({share:.1%}), {verdicts['proven']} of "
          f"them proven; {verdicts['others']} others, {verdicts['refused']} refused; "
          f"{time.perf_counter() - start:.0f} s")  # fmt: skip
    return int(share < REQUIRED)


if __name__ == "__main__":
    sys.exit(main())

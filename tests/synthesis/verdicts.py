"""What becomes of random networks that are accepted: `make measure WHAT=verdicts`.

They are synthesized with the places they were drawn with and without any, also where the chip is
known to compute something else, and executed in the emulator. A network is refused; right; wrong
and warned of (`--strict` makes that an error); or wrong in silence, which must not be.
"""

from __future__ import annotations

import argparse
import sys
import tempfile
from collections import Counter
from dataclasses import replace
from pathlib import Path

from hypothesis import HealthCheck, Phase, given, seed, settings

from ai8xtools.diagnostics import DiagnosticError
from ai8xtools.synthesis.options import EncodeOptions
from ai8xtools.synthesis.pipeline import synthesize
from tests.synthesis.emulated import emulated
from tests.synthesis.networks import files
from tests.synthesis.random_networks import RandomNetwork, random_networks
from tests.synthesis.test_arrange_random import without_places


def verdict(drawn: RandomNetwork, text: str, folder: Path) -> tuple[str, tuple[str, ...]]:
    """Return what becomes of a description, and the codes of warnings of unsound words."""
    resolve = replace(files(folder, drawn.data, drawn.kernels, drawn.biases), input_port=drawn.port)
    path = folder / "network.yaml"
    path.write_text(text)
    encode = EncodeOptions(average_rounding=drawn.rounding)
    try:
        made = synthesize(str(path), drawn.chip, resolve, encode)
    except DiagnosticError as refusal:
        return "refused", tuple(sorted({d.code for d in refusal.diagnostics}))
    unsound = tuple(sorted({d.code for d in made.warnings if d.effects.unsound}))
    machine = emulated(made.program)
    wrong = bool(machine.wrong or machine.run.errors)
    return ("wrong" if wrong else "right") + (", warned of" if unsound else ""), unsound


def main() -> int:
    """Print the verdicts, and what warned of wrong ones; return 1 if one is wrong in silence."""
    parser = argparse.ArgumentParser(prog="python -m tests.synthesis.verdicts", description=__doc__)
    parser.add_argument("count", type=int, nargs="?", default=2000, help="networks (default: 2000)")
    parser.add_argument("seed", type=int, nargs="?", default=20261, help="default: 20261")
    args = parser.parse_args()
    verdicts: Counter[tuple[str, str]] = Counter()
    codes: Counter[tuple[str, str, tuple[str, ...]]] = Counter()
    with tempfile.TemporaryDirectory() as name:

        @seed(args.seed)
        @settings(
            max_examples=args.count, deadline=None, database=None, phases=[Phase.generate],
            suppress_health_check=list(HealthCheck),
        )  # fmt: skip
        @given(drawn=random_networks(careful=False))
        def draw(drawn: RandomNetwork) -> None:
            for kind, text in (("placed", drawn.text), ("arranged", without_places(drawn))):
                found, unsound = verdict(drawn, text, Path(name))
                verdicts[kind, found] += 1
                codes[kind, found, unsound] += found.startswith("wrong")
                if found == "wrong":
                    print(f"{kind}: wrong in silence: {drawn!r}\n{text}", file=sys.stderr)

        draw()
    for (kind, found), count in sorted(verdicts.items()):
        print(f"{kind:9} {found:17} {count:5}")
    for (kind, _, unsound), count in sorted(codes.items()):
        if count:
            print(f"{kind:9} wrong, told by {' '.join(unsound) or 'nobody':30} {count:5}")
    return 1 if any(found == "wrong" for _, found in verdicts) else 0


if __name__ == "__main__":
    sys.exit(main())

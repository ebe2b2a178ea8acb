"""Random faults in the C of a project, through compiler and core: `make measure WHAT=c-faults`.

Each fault changes one bit of a number in `cnn.c` (registers of layers), `weights.h` (kernels, their
addresses and counts, biases) or `sampledata.h`. The project is compiled and run as `emulate.py`
does. Every fault must end in status 1 with its word; which layer is the first that computes
something else is known from the runs of the accelerator, and must be told as well. Prints a table;
status 1 if less than 99 % are told.
"""

from __future__ import annotations

import argparse
import contextlib
import io
import re
import shutil
import sys
import tempfile
from collections import Counter
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any
from unittest.mock import patch

import numpy as np

from ai8xtools.commands.emulate.arguments import parse
from ai8xtools.commands.emulate.emulate import emulate
from ai8xtools.diagnostics.errors import ToolError
from ai8xtools.emulator import Board, NetworkRun
from tests.emulator.faults import first_difference

KINDS = ("register", "kernel", "bias", "input", "run")
REQUIRED = 0.99
_REGISTER = re.compile(r"\*\) (0x50[0-9a-f]{6})\) = (0x[0-9a-f]{8});")
_WORD, _BYTE = re.compile(r"0x[0-9a-f]{8}"), re.compile(r"0x[0-9a-f]{2}\b")
_FIRST = "First wrong word: "
_LAYER = re.compile(
    r"First layer that departs from answer.npz: layer (\d+)|Not executed: layers? (\d+)"
)


@dataclass(frozen=True)
class CFault:
    """A number in a file that is replaced, and what must be told of it (a regular expression)."""

    kind: str
    file: str
    position: int
    old: str
    new: str
    told: str

    def apply(self, project: Path) -> None:
        """Change the file in a copy of the project."""
        path = project / self.file
        text = path.read_text()
        end = self.position + len(self.old)
        assert text[self.position : end] == self.old
        path.write_text(text[: self.position] + self.new + text[end:])


def fault(kind: str, project: Path, random: np.random.Generator) -> CFault:
    """Return a random fault of a kind: register, kernel, bias, input; or run, the address or count
    of words that `weights.h` gives in front of kernels."""
    match kind:
        case "register":
            return _register(project, random)
        case "bias":
            text = (project / "weights.h").read_text()
            numbers = _numbers(_BYTE, text, text.index("#define BIAS"), text.index("#define KERN"))
            return _number(kind, "weights.h", numbers, random)
        case "input":
            text = (project / "sampledata.h").read_text()
            return _number(kind, "sampledata.h", _numbers(_WORD, text, 0, len(text)), random)
        case _:
            text = (project / "weights.h").read_text()
            numbers = _numbers(_WORD, text, text.index("#define KERN"), len(text))
            heads, words = _parted(numbers)
            return _number(kind, "weights.h", heads if kind == "run" else words, random)


@dataclass(frozen=True)
class Outcome:
    """What emulate.py says of a damaged project: status, output, and its first inference."""

    status: int
    text: str
    run: NetworkRun | None

    @property
    def last(self) -> str:
        """The last line."""
        return self.text.splitlines()[-1]

    @property
    def layer(self) -> int | None:
        """The layer that is named."""
        found = _LAYER.search(self.text)
        return int(found[1] or found[2]) if found else None


def executed(project: Path) -> Outcome:
    """Run emulate.py on a project."""
    boards: list[Board] = []
    make = Board.with_project

    def kept(*arguments: Any, **options: Any) -> Board:
        boards.append(make(*arguments, **options))
        return boards[0]

    out, status = io.StringIO(), 1
    with contextlib.redirect_stdout(out), patch.object(Board, "with_project", kept):
        try:
            status = emulate(parse([str(project), "--time-limit", "20"]))
        except ToolError as error:
            print(f"{error.code}: {error.message}")
    return Outcome(status, out.getvalue(), boards[0].first_run if boards else None)


def told(damage: CFault, project: Path, folder: Path) -> tuple[bool, Outcome]:
    """Run a damaged copy of a project; return whether its word is told, and what is."""
    copy = folder / "project"
    shutil.rmtree(copy, ignore_errors=True)
    shutil.copytree(project, copy)
    damage.apply(copy)
    outcome = executed(copy)
    return re.search(damage.told, outcome.text) is not None, outcome


def _register(project: Path, random: np.random.Generator) -> CFault:
    text = (project / "cnn.c").read_text()
    begin = text.index("int cnn_configure(void)")
    end = text.index("\n}\n", begin)
    found = list(_REGISTER.finditer(text, begin, end))
    chosen = found[int(random.integers(len(found)))]
    new = f"0x{_changed(chosen[2], random):08x}"
    message = rf"(?:{_FIRST}|also )\w+: {chosen[1]}, .*expected {chosen[2]}, found {new}"
    return CFault("register", "cnn.c", chosen.start(2), chosen[2], new, message)


def _number(
    kind: str, file: str, numbers: list[tuple[int, str]], random: np.random.Generator
) -> CFault:
    position, old = numbers[int(random.integers(len(numbers)))]
    new = f"0x{_changed(old, random):0{len(old) - 2}x}"
    message = rf"{_FIRST}.*expected {old}, found {new}"
    if kind == "run":  # many words are at another place then
        message = rf"{_FIRST}cnn_load_weights|next comes cnn_load_weights"
    return CFault(kind, file, position, old, new, message)


def _numbers(pattern: re.Pattern[str], text: str, begin: int, end: int) -> list[tuple[int, str]]:
    return [(match.start(), match[0]) for match in pattern.finditer(text, begin, end)]


def _parted(numbers: list[tuple[int, str]]) -> tuple[list[tuple[int, str]], list[tuple[int, str]]]:
    """Part the words of weights.h: addresses and counts, and the words that they announce.

    Padding behind the last column of each run is left out.
    """
    heads, words, position = [], [], 0
    while position < len(numbers) - 1:
        heads += numbers[position : position + 2]
        count = int(numbers[position + 1][1], 16)
        words += numbers[position + 2 : position + 1 + count]
        position += 2 + count
    return heads, words


def _changed(text: str, random: np.random.Generator) -> int:
    """Return a number with one bit inverted, of as many digits."""
    return int(text, 16) ^ 1 << int(random.integers(4 * (len(text) - 2)))


def measure(projects: list[Path], count: int) -> tuple[dict[str, Counter[str]], list[str]]:
    """Try faults on each project, of all kinds in turn; return the counts, and those not told.

    SIGINT ends it; what was tried until then counts.
    """
    counts: dict[str, Counter[str]] = {kind: Counter() for kind in KINDS}
    missed: list[str] = []
    with tempfile.TemporaryDirectory() as folder, contextlib.suppress(KeyboardInterrupt):
        for seed, project in enumerate(projects):
            random = np.random.default_rng(seed)
            right = executed(project)
            assert right.status == 0 and right.run is not None
            for number in range(count):
                damage = fault(KINDS[number % len(KINDS)], project, random)
                found, outcome = told(damage, project, Path(folder))
                layer = None if outcome.run is None else first_difference(right.run, outcome.run)
                facts = {
                    "failed": outcome.status == 1,
                    "word": found,
                    "ran": outcome.run is not None,
                }
                facts["changed"] = outcome.run is None or layer is not None
                facts["layer"] = layer is not None and outcome.layer == layer
                facts["all"] = facts["failed"] and found and facts["layer"] >= (layer is not None)
                facts["changed and all"] = facts["changed"] and facts["all"]
                names = [name for name, holds in facts.items() if holds]
                counts[damage.kind].update(["faults", *names])
                counts[damage.kind]["changed layer"] += layer is not None
                if not facts["all"]:
                    missed.append(f"{project.name}: {damage}: {outcome.last}")
    return counts, missed


def table(counts: dict[str, Counter[str]]) -> Iterator[str]:
    """Yield the lines of the table for the manual."""
    yield "| fault in | faults | status 1 | word named | change a layer | layer named | never start |"  # noqa: E501
    yield "|---|---|---|---|---|---|---|"
    for kind, count in (*counts.items(), ("all", sum(counts.values(), Counter()))):
        yield (
            f"| {kind} | {count['faults']} | {count['failed']} | {count['word']} | "
            f"{count['changed layer']} | {count['layer']} | {count['faults'] - count['ran']} |"
        )


def main() -> int:
    """Measure and print the table."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("projects", nargs="+", type=Path, help="folders of generated projects")
    parser.add_argument("--faults", type=int, default=25, help="faults for each (25)")
    args = parser.parse_args()
    counts, missed = measure(args.projects, args.faults)
    print("\n".join([*missed, *table(counts)]))
    total = sum(counts.values(), Counter())
    return 0 if total["changed and all"] >= REQUIRED * total["changed"] else 1


if __name__ == "__main__":
    sys.exit(main())

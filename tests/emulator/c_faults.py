"""Random single-word faults in the C of a project, through compiler and core: `make c-faults`.

Each fault changes one number in `cnn.c` (registers of layers), `weights.h` (kernels, their
addresses and counts, biases) or `sampledata.h`, mostly in one bit. The project is compiled and run
as `emulate.py` does. Every fault must be told with its word, and none may pass without a word of
it. Prints a table; status 1 if less than 99 % are told.
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

import numpy as np

from commands.emulate.arguments import parse
from commands.emulate.emulate import emulate
from diagnostics.errors import ToolError

KINDS = ("register", "kernel", "bias", "input", "run")
REQUIRED = 0.99
_REGISTER = re.compile(r"\*\) (0x50[0-9a-f]{6})\) = (0x[0-9a-f]{8});")
_WORD, _BYTE = re.compile(r"0x[0-9a-f]{8}"), re.compile(r"0x[0-9a-f]{2}\b")
_FIRST = "First wrong word: "


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


def told(damage: CFault, project: Path, folder: Path) -> tuple[bool, str]:
    """Run a damaged copy of a project; return whether the word is told, and the last line."""
    copy = folder / "project"
    shutil.rmtree(copy, ignore_errors=True)
    shutil.copytree(project, copy)
    damage.apply(copy)
    out = io.StringIO()
    with contextlib.redirect_stdout(out):
        try:
            emulate(parse([str(copy), "--time-limit", "20"]))
        except ToolError as error:
            print(f"{error.code}: {error.message}")
    text = out.getvalue()
    return re.search(damage.told, text) is not None, text.splitlines()[-1]


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
    """Return another number of as many digits: one bit inverted, or now and then a new one."""
    bits = 4 * (len(text) - 2)
    value = int(text, 16)
    if random.integers(4):
        return value ^ 1 << int(random.integers(bits))
    new = int(random.integers(1 << bits))
    return new if new != value else value ^ 1


def measure(projects: list[Path], count: int) -> tuple[dict[str, Counter[str]], list[str]]:
    """Try faults on each project, of all kinds in turn; return the counts, and those not told."""
    counts: dict[str, Counter[str]] = {kind: Counter() for kind in KINDS}
    missed = []
    with tempfile.TemporaryDirectory() as folder:
        for seed, project in enumerate(projects):
            random = np.random.default_rng(seed)
            for number in range(count):
                damage = fault(KINDS[number % len(KINDS)], project, random)
                found, last = told(damage, project, Path(folder))
                verdict = last.split()[0].rstrip(":")
                silent = verdict == "PASS" and "the words differ" not in last
                counts[damage.kind].update(["faults", verdict, *["told"] * (found and not silent)])
                if silent or not found:
                    missed.append(f"{project.name}: {damage}: {last}")
    return counts, missed


def table(counts: dict[str, Counter[str]]) -> Iterator[str]:
    """Yield the lines of the table for the manual."""
    yield "| fault in | faults | word told | `PASS`, words differ | `FAIL` | stopped |"
    yield "|---|---|---|---|---|---|"
    for kind, count in (*counts.items(), ("all", sum(counts.values(), Counter()))):
        other = count["faults"] - count["PASS"] - count["FAIL"]
        yield (
            f"| {kind} | {count['faults']} | {count['told']} | {count['PASS']} | "
            f"{count['FAIL']} | {other} |"
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
    return 0 if total["told"] >= REQUIRED * total["faults"] else 1


if __name__ == "__main__":
    sys.exit(main())

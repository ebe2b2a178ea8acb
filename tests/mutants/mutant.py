"""A planted defect: where, what stood there, what stands there instead."""

from __future__ import annotations

import json
import tomllib
from collections.abc import Sequence
from dataclasses import asdict, dataclass
from pathlib import Path

ROOMS = (
    *(
        f"ai8xtools/synthesis/{one}"
        for one in ("encode", "place", "simulate", "resolve", "arrange", "mapping")
    ),
    *(f"ai8xtools/emulator/{one}" for one in ("decode", "machine", "checks", "comparison")),
    *(f"ai8xtools/software/{one}" for one in ("kernels", "plan", "container", "runtime")),
    *(f"ai8xtools/{one}" for one in ("integers", "quantization", "checkpoint", "layers")),
)
"""Folders of what computes; software/runtime is C."""


@dataclass(frozen=True)
class Mutant:
    """`old` becomes `new`. With a line (from 1) both are whole lines that begin there."""

    file: str
    old: str
    new: str
    line: int = 0
    why: str = ""
    room: str = ""

    def applied(self, text: str) -> str:
        """Return the text of the file with the defect; raises ValueError if `old` is not there."""
        if self.line:
            lines, old = text.split("\n"), self.old.split("\n")
            if lines[self.line - 1 : self.line - 1 + len(old)] == old:
                lines[self.line - 1 : self.line - 1 + len(old)] = self.new.split("\n")
                return "\n".join(lines)
        if self.old == self.new or text.count(self.old) != 1:
            times = text.count(self.old)
            raise ValueError(f"{self.file}: {self.old!r} stands there {times} times, not once")
        return text.replace(self.old, self.new)

    def at(self, text: str) -> tuple[int, int]:
        """Return the first and last line, from 1, that it changes in the text of the file."""
        before, after = text.split("\n"), self.applied(text).split("\n")
        first = next(
            n for n, (a, b) in enumerate(zip([*before, ""], after, strict=False)) if a != b
        )
        same = 0
        while (
            before[-1 - same] == after[-1 - same]
            and same < min(len(before), len(after)) - first - 1
        ):
            same += 1
        return first + 1, max(first + 1, len(before) - same)

    def told(self, text: str) -> str:
        """Return place and change in one line."""
        old, new = (
            " / ".join(x.strip() for x in part.split("\n")) for part in (self.old, self.new)
        )
        return f"{self.file}:{self.at(text)[0]}: {old}  =>  {new}"

    def key(self) -> tuple[str, str, str]:
        """Return what names it wherever its lines move to."""
        return self.file, _stripped(self.old), _stripped(self.new)


def _stripped(text: str) -> str:
    return "\n".join(line.strip() for line in text.strip().split("\n"))


def changed_lines(file: str, before: str, after: str, **more: str) -> Mutant:
    """Return the mutant that makes of one text the other."""
    old, new = before.split("\n"), after.split("\n")
    first = 0
    while old[first] == new[first]:
        first += 1
    last = 0
    while old[-1 - last] == new[-1 - last] and last < min(len(old), len(new)) - first - 1:
        last += 1
    ends = len(old) - last, len(new) - last
    return Mutant(
        file, "\n".join(old[first : ends[0]]), "\n".join(new[first : ends[1]]), first + 1, **more
    )


def room_of(file: str) -> str:
    """Return the room of a file, or its folder."""
    inside = [room for room in ROOMS if file.startswith(f"{room}/")]
    return inside[0] if inside else str(Path(file).parent)


def read(path: Path) -> list[Mutant]:
    """Read a list of defects, of TOML or JSON."""
    text = path.read_text()
    found = json.loads(text) if path.suffix == ".json" else tomllib.loads(text)
    for one in found["defect"]:  # lists from before the package name a file without it
        if not Path(one["file"]).exists() and Path("ai8xtools", one["file"]).exists():
            one["file"], one["room"] = f"ai8xtools/{one['file']}", ""
    return [
        Mutant(**{**one, "room": one.get("room") or room_of(one["file"])})
        for one in found["defect"]
    ]


def write(path: Path, mutants: Sequence[Mutant]) -> None:
    """Write a list that `read` reads."""
    path.write_text(json.dumps({"defect": [asdict(one) for one in mutants]}, indent=1) + "\n")

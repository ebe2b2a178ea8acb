"""Mutants drawn at random, spread over rooms by lines of code."""

from __future__ import annotations

import random
from collections.abc import Sequence
from pathlib import Path

from tests.mutants.cs import CFile
from tests.mutants.mutant import Mutant, changed_lines
from tests.mutants.pythons import PythonFile

_WORDS = ("errors.py", "report.py")
"""Files of wording alone."""


def files_of(root: Path, room: str) -> list[Path]:
    """Return the files of a room from which mutants are drawn."""
    found = sorted((root / room).rglob("*.[pch]*"))
    return [one for one in found if one.suffix in (".py", ".c", ".h") and one.name not in _WORDS]


def draw(root: Path, rooms: Sequence[str], count: int, seed: int) -> list[Mutant]:
    """Return mutants, at most one of a line, in an order that is random, too."""
    opened = {room: {path: _open(path) for path in files_of(root, room)} for room in rooms}
    places = {
        room: [(path, line) for path, file in files.items() for line in file.lines]
        for room, files in opened.items()
    }
    shares = _shares({room: len(lines) for room, lines in places.items()}, count)
    found = []
    for room in rooms:
        rng = random.Random(f"{seed} {room}")
        rng.shuffle(places[room])
        left = shares[room]
        for path, line in places[room]:
            if not left:
                break
            text = opened[room][path].drawn(line, rng)
            if text is not None:
                file = path.relative_to(root).as_posix()
                found.append(changed_lines(file, path.read_text(), text, room=room))
                left -= 1
    random.Random(f"{seed}").shuffle(found)
    return found


def _open(path: Path) -> PythonFile | CFile:
    return (PythonFile if path.suffix == ".py" else CFile)(path.read_text())


def _shares(lines: dict[str, int], count: int) -> dict[str, int]:
    """Return shares of a number in proportion, by the largest remainders."""
    exact = {room: count * number / sum(lines.values()) for room, number in lines.items()}
    shares = {room: int(share) for room, share in exact.items()}
    rest = sorted(exact, key=lambda room: (int(exact[room]) - exact[room], room))
    for room in rest[: count - sum(shares.values())]:
        shares[room] += 1
    return shares

"""Which tests execute a line, how long they take, and which are the nearest."""

from __future__ import annotations

import ast
import difflib
import functools
import gzip
import hashlib
import importlib.metadata
import json
import re
import shutil
import sys
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from pathlib import Path

from tests.mutants.mutant import Mutant

NEAR = {
    "synthesis": ("synthesis", "emulator", "commands"),
    "emulator": ("emulator", "synthesis"),
    "software": ("software", "commands"),
    "quantization": ("quantization", "software"),
    "checkpoint": ("checkpoint", "quantization", "writing"),
    "layers": ("", "quantization", "frontends", "training"),
}
"""Folders of tests/ near to those that compute, the nearest first; "" is tests/ itself."""
_SAMPLE_SECONDS = 6.0
"""What the tests of one file may take before those of another one begin."""


@dataclass
class Measured:
    """What the tests of a file execute: `lines[file][test]`; a test named "" is the import."""

    key: str
    tree: str
    import_seconds: float
    seconds: dict[str, float]
    failing: list[str]
    lines: dict[str, dict[str, str]]
    texts: dict[str, str]

    def tests_of(self, file: str, text: str, lines: Iterable[int]) -> set[str]:
        """Return the tests that execute some lines of a file, whose text is now this one."""
        found = self.lines.get(file, {})
        if not file.endswith(".py") or not found:
            return {*found}
        before = {moved(TEXTS[self.texts[file]], text, line) for line in lines}
        return {test for test, hit in found.items() if before & _unpacked(hit)}

    def executed(self, file: str, text: str) -> set[int]:
        """Return the lines of a file, whose text is now this one, that some test executes."""
        if file not in self.lines:
            return set()
        hit: set[int] = set().union(*(_unpacked(lines) for lines in self.lines[file].values()))
        now = range(1, text.count("\n") + 1)
        return {line for line in now if moved(TEXTS[self.texts[file]], text, line) in hit}


TEXTS: dict[str, str] = {}
"""Files as they were when lines were measured, by digest."""


def noted(text: str) -> str:
    """Keep a text; return its digest."""
    key = hashlib.sha256(text.encode()).hexdigest()[:16]
    TEXTS[key] = text
    return key


@functools.lru_cache(4096)
def _unpacked(text: str) -> frozenset[int]:
    """Return line numbers from "3,7-9"."""
    found: set[int] = set()
    for part in text.split(","):
        first, _, last = part.partition("-")
        found |= {*range(int(first), int(last or first) + 1)}
    return frozenset(found)


def packed(lines: Iterable[int]) -> str:
    """Return line numbers as "3,7-9"."""
    runs: list[list[int]] = []
    for line in sorted(lines):
        if runs and runs[-1][1] == line - 1:
            runs[-1][1] = line
        else:
            runs.append([line, line])
    return ",".join(f"{a}-{b}" if b > a else f"{a}" for a, b in runs)


@functools.lru_cache(4096)
def moved(before: str, after: str, line: int) -> int:
    """Return the line of the text before that is a line of the text after; that in front if new."""
    if before == after:
        return line
    place = 0
    for tag, i1, i2, j1, j2 in _changes(before, after):
        if j1 <= line - 1 < j2:
            return i1 + line - j1 if tag == "equal" else max(min(i1 + line - j1, i2), 1)
        place = i2
    return place


@functools.lru_cache(256)
def _changes(before: str, after: str) -> list[tuple[str, int, int, int, int]]:
    lines = before.split("\n"), after.split("\n")
    return difflib.SequenceMatcher(None, *lines, autojunk=False).get_opcodes()


def tree_key(root: Path) -> str:
    """Return a digest of what the tests depend on: the tree, packages, Python, a compiler."""
    packages = sorted(f"{one.name} {one.version}" for one in importlib.metadata.distributions())
    digest = hashlib.sha256(f"{packages} {sys.version} {shutil.which('gcc')}".encode())
    for path in sorted(root.rglob("*")):
        parts = path.relative_to(root).parts
        if parts[0] in ("build", ".git", ".venv") or parts[:2] == ("tests", "mutants"):
            continue
        if path.is_file() and path.suffix in (".py", ".c", ".h", ".yaml", ".toml", ".S", ".npy"):
            digest.update(f"{parts}".encode() + hashlib.sha256(path.read_bytes()).digest())
    return digest.hexdigest()[:16]


def test_files(root: Path, rooms: Iterable[str]) -> list[str]:
    """Return the files of tests near to some rooms, the nearest first."""
    found: dict[str, None] = {}
    tops = {room.removeprefix("ai8xtools/").partition("/")[0]: None for room in rooms}
    for place in range(max(map(len, NEAR.values()))):
        for top in tops:
            folders = NEAR.get(top, (top,))
            if place < len(folders):
                for path in sorted((root / "tests" / folders[place]).glob("test_*.py")):
                    found[path.relative_to(root).as_posix()] = None
    return [*found]


def file_key(path: Path) -> str:
    """Return a digest of a file of tests."""
    return hashlib.sha256(path.read_bytes()).hexdigest()[:16]


def load(path: Path) -> dict[str, Measured]:
    """Read what was measured; nothing if there is no file."""
    if not path.exists():
        return {}
    with gzip.open(path, "rt") as file:
        texts, found = json.load(file)
    TEXTS.update(texts)
    return {name: Measured(**one) for name, one in found.items()}


def save(path: Path, measured: dict[str, Measured]) -> None:
    """Write what was measured."""
    path.parent.mkdir(parents=True, exist_ok=True)
    new = path.with_suffix(".new")
    with gzip.open(new, "wt", compresslevel=3) as file:
        used = {key for one in measured.values() for key in one.texts.values()}
        texts = {key: TEXTS[key] for key in sorted(used)}
        json.dump([texts, {name: vars(one) for name, one in measured.items()}], file)
    new.replace(path)


def _lines_to_execute(text: str, lines: tuple[int, int]) -> set[int]:
    """Return the lines of which a test should execute one, to notice a change of others.

    Of a simple statement all of its lines, of a compound one its head. What is executed at import,
    outside of functions, is noticed where the names are used that it binds, or in any function.
    """
    best: ast.stmt | None = None
    bodies: set[int] = set()
    inside = False
    for node in ast.walk(ast.parse(text)):
        if isinstance(node, (ast.FunctionDef, ast.AsyncFunctionDef)):
            body = range(node.body[0].lineno, (node.end_lineno or 0) + 1)
            bodies |= {*body}
            inside |= lines[1] in body
        if isinstance(node, ast.stmt) and _begin(node) <= lines[1] <= _end(node):
            best = node  # inner ones come later
    found = {*range(_begin(best), max(_end(best), lines[1]) + 1)} if best else {lines[0]}
    if inside or best is None:
        return found
    bound = {getattr(best, "name", "")} - {""} or {
        node.id
        for node in ast.walk(best)
        if isinstance(node, ast.Name) and isinstance(node.ctx, ast.Store)
    }
    used = re.compile("|".join(rf"\b{re.escape(name)}\b" for name in bound) or "(?!)")
    code = text.split("\n")
    using = {line for line in bodies if used.search(code[line - 1])}
    if isinstance(best, (ast.FunctionDef, ast.AsyncFunctionDef)):
        using |= {*range(best.body[0].lineno, (best.end_lineno or 0) + 1)}
    return using or bodies or found


def _begin(node: ast.stmt) -> int:
    return min([node.lineno, *(one.lineno for one in getattr(node, "decorator_list", ()))])


def _end(node: ast.stmt) -> int:
    """Return the last line of a simple statement, or of the head of a compound one."""
    body = getattr(node, "body", None)
    return max(body[0].lineno - 1, node.lineno) if body else node.end_lineno or node.lineno


def batches(
    root: Path, mutant: Mutant, measured: dict[str, Measured], failing: set[str], seconds: float
) -> list[tuple[str, list[str]]]:
    """Return files of tests, each with tests to run in this order, for about so many seconds.

    First comes a sample of each file: the quickest of every function that executes the line; then
    the others that do so; then others in these files, which may use what the first ones made.
    """
    text = (root / mutant.file).read_text()
    is_python = mutant.file.endswith(".py")
    lines = _lines_to_execute(text, mutant.at(text)) if is_python else set[int]()
    names = [name for name in test_files(root, [mutant.room or mutant.file]) if name in measured]
    nearest = {
        name: _relevant(measured[name], mutant.file, text, lines, name) - failing for name in names
    }
    nearest = {name: tests for name, tests in nearest.items() if tests}
    word = Path(mutant.file).stem
    room = Path(mutant.room).name
    order = sorted(
        nearest,
        key=lambda name: (
            Path(name).parent != Path(names[0]).parent,
            not (word in Path(name).stem or room in Path(name).stem),
            measured[name].import_seconds + min(measured[name].seconds[t] for t in nearest[name]),
        ),
    )
    return [*_within(_ordered(order, nearest, measured, failing), measured, seconds)]


def _relevant(one: Measured, file: str, text: str, lines: Iterable[int], name: str) -> set[str]:
    tests = one.tests_of(file, text, lines)
    if name in tests:  # in the set-up of the whole file
        tests |= {*one.seconds}
    return {test for test in tests if test in one.seconds}


def _ordered(
    order: list[str], nearest: dict[str, set[str]], measured: dict[str, Measured], failing: set[str]
) -> Iterator[tuple[str, list[str]]]:
    samples: dict[str, list[str]] = {}
    for name in order:
        seconds = measured[name].seconds
        first: dict[str, str] = {}
        for test in sorted(nearest[name], key=lambda test: seconds[test]):
            first.setdefault(test.partition("[")[0], test)
        total, samples[name] = 0.0, []
        for test in first.values():
            total += seconds[test]
            if samples[name] and total > _SAMPLE_SECONDS:
                break
            samples[name].append(test)
        yield name, samples[name]
    for name in order:
        seconds = measured[name].seconds
        rest = nearest[name] - {*samples[name]}
        yield name, sorted(rest, key=lambda test: seconds[test])
    for name in order:
        seconds = measured[name].seconds
        yield name, sorted({*seconds} - nearest[name] - failing, key=lambda test: seconds[test])


def _within(
    parts: Iterable[tuple[str, list[str]]], measured: dict[str, Measured], seconds: float
) -> Iterator[tuple[str, list[str]]]:
    """Cut off what would begin too late."""
    total, imported = 0.0, set[str]()
    for name, tests in parts:
        taken = []
        for test in tests:
            if total > seconds:
                break
            if name not in imported:
                imported.add(name)
                total += measured[name].import_seconds
            total += measured[name].seconds[test]
            taken.append(test)
        if taken:
            yield name, taken

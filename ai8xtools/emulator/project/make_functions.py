"""The functions of make that turn text into text or look for files; source: the GNU make manual."""

from __future__ import annotations

import fnmatch
import itertools
import os
from collections.abc import Callable, Iterator, Sequence
from pathlib import Path, PurePosixPath

from ai8xtools.reading import real_path
from ai8xtools.reading.system import relative

MAX_FILES = 2000
"""A pattern finds at most so many files."""
_MAX_LOOKS = 20_000
_MAX_DIGITS = 9  # of a number that makes sense here


def substitute(old: str, new: str, text: str) -> str:
    """Replace endings, or with a percent sign patterns, in the words of a text."""
    if "%" not in old:
        old, new = f"%{old}", f"%{new}"
    return _patsubst(Path(), old, new, text)


def cost(name: str, arguments: Sequence[str]) -> int:
    """Return how many characters a function handles, at most, so that it can be refused before."""
    *others, text = arguments
    total = sum(map(len, arguments))
    if name in _BY_WORD:
        return total + len(text.split()) * sum(map(len, others))
    if name == "subst" and len(others) == 2 and others[0]:
        return total + text.count(others[0]) * len(others[1])
    return total


_BY_WORD = ("patsubst", "filter", "filter-out", "addsuffix", "addprefix")


def _match(pattern: str, word: str) -> str | None:
    """Return what the percent sign of a pattern stands for; None if the word does not match."""
    if "%" not in pattern:
        return "" if word == pattern else None
    before, _, after = pattern.partition("%")
    fits = len(word) >= len(before) + len(after)
    if fits and word.startswith(before) and word.endswith(after):
        return word[len(before) : len(word) - len(after)]
    return None


def _patsubst(_root: Path, old: str = "", new: str = "", text: str = "") -> str:
    words = []
    for word in text.split():
        stem = _match(old.strip(), word)
        words.append(word if stem is None else new.strip().replace("%", stem, 1))
    return " ".join(words)


def _filter(keep: bool) -> Callable[..., str]:
    def function(_root: Path, patterns: str = "", text: str = "") -> str:
        pattern_words = patterns.split()
        return " ".join(
            word
            for word in text.split()
            if any(_match(pattern, word) is not None for pattern in pattern_words) == keep
        )

    return function


def _each(change: Callable[[str], str]) -> Callable[..., str]:
    """Make a function of one word one of all words of a text."""

    def function(_root: Path, text: str = "") -> str:
        return " ".join(change(word) for word in text.split())

    return function


def _wildcard(root: Path, patterns: str = "") -> str:
    """Find files by patterns relative to the project, which may not leave its surroundings."""
    names: list[str] = []
    surroundings = real_path(root).parent
    looks = itertools.count(1)
    for pattern in patterns.replace("\\", "/").split():
        path = PurePosixPath(pattern)
        if path.is_absolute() or "**" in pattern:
            continue
        prefix = "./" if pattern.startswith("./") else ""
        matches = sorted(itertools.islice(_below(root, path.parts, surroundings, looks), MAX_FILES))
        names += [prefix + Path(relative(match, root)).as_posix() for match in matches]
    return " ".join(names)


def _below(
    folder: Path, parts: Sequence[str], surroundings: Path, looks: Iterator[int]
) -> Iterator[Path]:
    """Yield what a pattern finds in a folder; after so many looks at files, nothing more."""
    real = real_path(folder)
    if not parts or not (surroundings == real or surroundings in real.parents):
        return
    first, *rest = parts
    if any(character in first for character in "*?["):
        try:
            names = os.listdir(folder)
        except OSError:
            return
        matches = fnmatch.filter(sorted(names), first)
        if not first.startswith("."):
            matches = [name for name in matches if not name.startswith(".")]
    else:
        matches = [first] if os.path.lexists(folder / first) else []
    for name in matches:
        if next(looks) > _MAX_LOOKS:
            return
        if not rest:
            yield folder / name
        elif (folder / name).is_dir():
            yield from _below(folder / name, rest, surroundings, looks)


def _directory(word: str) -> str:
    head, slash, _ = word.rpartition("/")
    return head + "/" if slash else "./"


def _wordlist(_root: Path, first: str = "", last: str = "", text: str = "") -> str:
    numbers = (first.strip(), last.strip())
    if not all(n.isascii() and n.isdigit() and len(n) <= _MAX_DIGITS for n in numbers):
        return ""
    return " ".join(text.split()[max(int(first) - 1, 0) : int(last)])


def _join(_root: Path, first: str = "", second: str = "") -> str:
    a, b = first.split(), second.split()
    length = max(len(a), len(b))
    pairs = zip(a + [""] * (length - len(a)), b + [""] * (length - len(b)), strict=True)
    return " ".join(x + y for x, y in pairs)


def _absolute(root: Path, text: str = "") -> str:
    return " ".join(os.path.normpath(root / word) for word in text.split())


FUNCTIONS: dict[str, Callable[..., str]] = {
    "subst": lambda _root, old="", new="", text="": text.replace(old, new) if old else text,
    "patsubst": _patsubst,
    "strip": lambda _root, text="": " ".join(text.split()),
    "findstring": lambda _root, part="", text="": part if part in text else "",
    "filter": _filter(True),
    "filter-out": _filter(False),
    "sort": lambda _root, text="": " ".join(sorted(set(text.split()))),
    "word": lambda root, number="", text="": _wordlist(root, number, number, text),
    "wordlist": _wordlist,
    "words": lambda _root, text="": str(len(text.split())),
    "firstword": lambda _root, text="": " ".join(text.split()[:1]),
    "lastword": lambda _root, text="": " ".join(text.split()[-1:]),
    "dir": _each(_directory),
    "notdir": _each(lambda word: word.rpartition("/")[2]),
    "suffix": _each(lambda word: PurePosixPath(word).suffix),
    "basename": _each(lambda word: word.removesuffix(PurePosixPath(word).suffix)),
    "addsuffix": lambda _root, end="", text="": " ".join(word + end for word in text.split()),
    "addprefix": lambda _root, start="", text="": " ".join(start + word for word in text.split()),
    "join": _join,
    "wildcard": _wildcard,
    "abspath": _absolute,
    "realpath": _absolute,
}
"""By name; each takes the folder of the project and its arguments, with everything put in."""

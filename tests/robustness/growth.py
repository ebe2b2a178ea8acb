"""Texts on which readers and regular expressions take more than linear time, derived from them.

`python -m tests.robustness.growth` lists the regular expressions of what reads others' projects,
with the worst growth found for each.
"""

from __future__ import annotations

import ast
import importlib
import itertools
import re
import re._constants as kind  # type: ignore[import-not-found]
import re._parser as parser  # type: ignore[import-not-found]
import time
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

from tests.conftest import ROOT

REPEATED = 4000
SECONDS = 0.02
"""Below this nobody minds; a linear search of such a text takes a twentieth of it."""
RATIO = 8.0
"""Of the times for four times the text: 4 is linear, 16 quadratic."""
_METHODS = {
    "match": re.Pattern.match, "fullmatch": re.Pattern.fullmatch, "search": re.Pattern.search,
    **dict.fromkeys(("finditer", "findall", "sub", "split"), lambda p, t: list(p.finditer(t))),
}  # fmt: skip
_PLACES = ("ai8xtools/emulator", "ai8xtools/commands/emulate", "ai8xtools/reading")
BOUNDS = {
    "ai8xtools/emulator/project/messages.py:_PATTERNS": 1000,
    "ai8xtools/emulator/project/standins.py:_FAMILY": 200,
    "ai8xtools/emulator/project/standins.py:_FAMILY_WORDS": 200,
    "ai8xtools/emulator/project/standins.py:_HEADER": 200,
}
"""Characters of what these get; the modules say so."""


def patterns() -> Iterator[tuple[str, re.Pattern[str], set[str]]]:
    """Yield the regular expressions of modules: place and name, the expression, how it is used."""
    paths = sorted(path for place in _PLACES for path in (ROOT / place).rglob("*.py"))
    uses: dict[tuple[str, str], set[str]] = {}
    for path in paths:
        for node in ast.walk(ast.parse(path.read_text())):
            match node:
                case ast.Attribute(value=ast.Name(name), attr=method) if method in _METHODS:
                    own = str(path) if name.startswith("_") else ""
                    uses.setdefault((own, name), set()).add(method)
    for path in paths:
        yield from _within_functions(path)
        module = importlib.import_module(_module(path))
        for name, value in vars(module).items():
            own = str(path) if name.startswith("_") else ""
            found = [v for v in _flat(value) if isinstance(v, re.Pattern)]
            if f"{name} = " in path.read_text() or f"{name}: " in path.read_text():
                for number, one in enumerate(found):
                    label = f"{path.relative_to(ROOT)}:{name}" + f"[{number}]" * (len(found) > 1)
                    yield label, one, uses.get((own, name)) or {"search"}


def _within_functions(path: Path) -> Iterator[tuple[str, re.Pattern[str], set[str]]]:
    """Yield the expressions that functions of a module write out where they use them."""
    for node in ast.walk(ast.parse(path.read_text())):
        match node:
            case ast.Call(
                func=ast.Attribute(value=ast.Name("re"), attr=method),
                args=[ast.Constant(str(text)), *_],
            ) if method in _METHODS:
                yield f"{path.relative_to(ROOT)}:{node.lineno}", re.compile(text), {method}


def _module(path: Path) -> str:
    return ".".join(path.relative_to(ROOT).with_suffix("").parts).removesuffix(".__init__")


def _flat(value: object) -> Iterator[object]:
    if isinstance(value, (tuple, list)):
        for one in value:
            yield from _flat(one)
    else:
        yield value


def worst(pattern: re.Pattern[str], methods: set[str], most: int | None) -> tuple[float, str]:
    """Return the most seconds that an attack on an expression takes, 0 if none grows too much.

    `most` is the number of characters that it gets, None if there is no limit.
    """
    found = (0.0, "")
    for start, repeated, end in attacks(pattern.pattern, pattern.flags):
        for method in methods:

            def seconds(
                count: int, parts: Any = (start, repeated, end), how: str = method
            ) -> float:
                text = (parts[0] + parts[1] * count + parts[2])[:most]
                return taken(lambda: _METHODS[how](pattern, text))

            if grows(seconds, REPEATED, bounded=most is not None):
                text = f"{method}: {start!r} + n * {repeated!r} + {end!r}"
                found = max(found, (seconds(REPEATED // 50), text))
    return found


def grows(seconds: Callable[[int], float], count: int, *, bounded: bool = False) -> bool:
    """Whether a time grows more than linearly up to `count`, and matters."""
    for smaller in (count // 160, count // 40, count // 8):
        if seconds(smaller) > SECONDS and min(seconds(smaller) for _ in range(2)) > SECONDS:
            return True  # the whole of it would take too long
    if seconds(count) < SECONDS:
        return False
    if bounded:
        return min(seconds(count) for _ in range(3)) > SECONDS
    quarter = min(seconds(count) for _ in range(2))  # behind the bounds of small texts
    whole = min(seconds(4 * count) for _ in range(2))
    return whole > SECONDS and whole > RATIO * quarter


def taken(work: Callable[[], object]) -> float:
    """Return the processor time that something takes."""
    begin = time.process_time()
    work()
    return time.process_time() - begin


def attacks(text: str, flags: int) -> Iterator[tuple[str, str, str]]:
    """Yield beginnings, parts to repeat and endings that an expression nearly matches.

    Parts are samples of its elements and of neighbours; a beginning is what it needs before them.
    """
    seen = set()
    for sequence in _sequences(parser.parse(text, flags)):
        samples = [_sample([element]) for element in sequence]
        for index in range(len(samples)):
            before = "".join(samples[:index])
            for length in (1, 2, len(samples) - 1, len(samples)):
                part = "".join(samples[index : index + length])
                for start, repeated in itertools.product({"", before}, {part, _in_lines(part)}):
                    for end in ("", "\0"):
                        if repeated and (start, repeated, end) not in seen:
                            seen.add((start, repeated, end))
                            yield start, repeated, end


def _in_lines(part: str) -> str:
    return part.replace(" ", "\n")


def _sequences(parsed: Any) -> Iterator[list[Any]]:
    """Yield the elements of an expression that follow each other, and those inside of them."""
    elements = list(parsed)
    yield elements
    for operation, value in elements:
        for inner in _inner(operation, value):
            if "REPEAT" not in str(inner):
                continue  # it takes always as long
            yield from _sequences(inner)
            # what stands around a repeated part matters for it
            yield [*inner, *elements]


def _inner(operation: Any, value: Any) -> list[Any]:
    if operation is kind.SUBPATTERN:
        return [value[3]]
    if operation in (kind.MAX_REPEAT, kind.MIN_REPEAT, kind.POSSESSIVE_REPEAT):
        return [value[2]]
    if operation is kind.BRANCH:
        return list(value[1])
    return [value] if operation is kind.ATOMIC_GROUP else []


def _sample(elements: Any) -> str:
    """Return a short text that some elements match, as far as a short one can be found."""
    text = ""
    for operation, value in elements:
        match operation:
            case kind.LITERAL:
                text += chr(value)
            case kind.NOT_LITERAL:
                text += "a" if value != ord("a") else "b"
            case kind.ANY:
                text += "a"
            case kind.IN:
                text += _member(value)
            case kind.MAX_REPEAT | kind.MIN_REPEAT | kind.POSSESSIVE_REPEAT:
                text += _sample(value[2]) * max(value[0], 1)
            case kind.BRANCH:
                text += _sample(value[1][0])
            case _:
                text += "".join(map(_sample, _inner(operation, value)))
    return text


_CATEGORIES = {
    kind.CATEGORY_WORD: "a", kind.CATEGORY_SPACE: " ", kind.CATEGORY_DIGIT: "1",
    kind.CATEGORY_NOT_SPACE: "a", kind.CATEGORY_NOT_WORD: " ", kind.CATEGORY_NOT_DIGIT: "a",
}  # fmt: skip


def _member(members: Any) -> str:
    """Return a character of a class; of one that excludes some, a blank or a letter."""
    if members[0][0] is kind.NEGATE:
        excluded = "".join(_member([one]) for one in members[1:])
        return next(character for character in " a\n1b_" if character not in excluded)
    operation, value = members[-1]
    if operation is kind.CATEGORY:
        return _CATEGORIES[value]
    return chr(value if operation is kind.LITERAL else value[0])


if __name__ == "__main__":
    for label, pattern, methods in patterns():
        print(label, sorted(methods), worst(pattern, methods, BOUNDS.get(label.partition("[")[0])))

"""Loops that repeat parts of an inference many times, as programs that measure power have them."""

from __future__ import annotations

import re
from bisect import bisect_left, bisect_right
from collections.abc import Iterator

from ai8xtools.values import frozen

SHORTENED = 2
"""How often a shortened loop runs."""
_FEWEST = 5  # loops of fewer rounds are left alone
_CALLS = (
    "cnn_load_weights", "cnn_load_bias", "load_kernels", "load_input", "cnn_start", "cnn_load",
    "cnn_init", "cnn_configure", "cnn_wait", "cnn_run",
)  # fmt: skip
_LOOP = re.compile(
    r"\bfor\s*+\((?P<head>[\w\s]*+)=\s*+(?P<first>\d++)\s*+;\s*+(?P<name>\w++)\s*+<\s*+"
    r"(?P<bound>\w++)\s*+;[^;{}()]*+\)",
)
_CALL = re.compile(rf"\b({'|'.join(_CALLS)})\s*+\(")
# What is not closed extends to the end of the line, a comment to that of the file
_HIDDEN = re.compile(
    r"//[^\n]*+|/\*(?>.*?(?:\*/|\Z))|\"(?:\\.|[^\"\\\n])*+\"?|'(?:\\.|[^'\\\n])*+'?", re.DOTALL
)
_MACRO = re.compile(
    r"^[ \t]*+#[ \t]*+define[ \t]++(?P<name>\w++)[ \t]++\(?(?P<value>\d++)", re.MULTILINE
)
_MAX_DIGITS = 18  # of numbers that a processor can count to


@frozen
class RepeatedCall:
    """A loop in the text of a C file: the line where it begins, its rounds, what it calls.

    `bound` is where in the text the number stands that ends it.
    """

    line: int
    rounds: int
    calls: tuple[str, ...]
    bound: tuple[int, int]
    first: int


def repeated_calls(text: str) -> list[RepeatedCall]:
    """Return the loops of a C file that run parts of an inference at least five times."""
    return list(_loops(text))


def shorten_loops(text: str) -> str:
    """Return the text with each of these loops run twice; lines stay where they are."""
    for loop in reversed(repeated_calls(text)):
        begin, end = loop.bound
        text = f"{text[:begin]}{loop.first + SHORTENED}{text[end:]}"
    return text


def _loops(text: str) -> Iterator[RepeatedCall]:
    plain = _HIDDEN.sub(lambda found: re.sub(r"[^\n]", " ", found[0]), text)
    macros: dict[str, str] = {}
    calls: dict[str, list[int]] = {}
    for found in _MACRO.finditer(plain):
        macros.setdefault(found["name"], found["value"])
    for found in _CALL.finditer(plain):
        calls.setdefault(found[1], []).append(found.start())
    if not calls:
        return
    ends, line, counted = _Ends(plain), 1, 0
    for found in _LOOP.finditer(plain):
        words = found["head"].split()
        last = _number(macros.get(found["bound"], found["bound"]))
        first = _number(found["first"])
        if words[-1:] != [found["name"]] or last is None or first is None:
            continue
        called = sorted(_within(calls, found.end(), ends.after(found.end())))
        if called and last - first >= _FEWEST:
            line += plain.count("\n", counted, found.start())
            counted = found.start()
            names = tuple(name for _, name in called)
            yield RepeatedCall(line, last - first, names, found.span("bound"), first)


def _number(word: str) -> int | None:
    """Return a decimal number; None for anything else."""
    return int(word) if word.isdecimal() and len(word) <= _MAX_DIGITS else None


def _within(calls: dict[str, list[int]], begin: int, end: int) -> Iterator[tuple[int, str]]:
    """Yield where in a part of the text each function is called first, and its name."""
    for name, places in calls.items():
        index = bisect_left(places, begin)
        if index < len(places) and places[index] < end:
            yield places[index], name


class _Ends:
    """Where statements and blocks of a text end."""

    def __init__(self, text: str) -> None:
        self._length = len(text)
        self._brackets, self._depths = [0], [0]  # the depth from each bracket on
        self._by_depth: dict[int, list[int]] = {}  # behind each semicolon and closing brace
        for found in re.finditer(r"[{}();]", text):
            depth = self._depths[-1] + (found[0] in "{(") - (found[0] in "})")
            if found[0] != ";":
                self._brackets.append(found.end())
                self._depths.append(depth)
            if found[0] in "};":
                self._by_depth.setdefault(depth, []).append(found.end())

    def after(self, position: int) -> int:
        """Return the end of the statement or block that begins at a position."""
        depth = self._depths[bisect_right(self._brackets, position) - 1]
        ends = self._by_depth.get(depth, [])
        index = bisect_right(ends, position)
        return ends[index] if index < len(ends) else self._length

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
    plain = _HIDDEN.sub(lambda match: re.sub(r"[^\n]", " ", match[0]), text)
    macros: dict[str, str] = {}
    calls: dict[str, list[int]] = {}
    for match in _MACRO.finditer(plain):
        macros.setdefault(match["name"], match["value"])
    for match in _CALL.finditer(plain):
        calls.setdefault(match[1], []).append(match.start())
    if not calls:
        return
    ends, line, counted = _Ends(plain), 1, 0
    for match in _LOOP.finditer(plain):
        words = match["head"].split()
        last = _number(macros.get(match["bound"], match["bound"]))
        first = _number(match["first"])
        if words[-1:] != [match["name"]] or last is None or first is None:
            continue
        called = sorted(_within(calls, match.end(), ends.after(match.end())))
        if called and last - first >= _FEWEST:
            line += plain.count("\n", counted, match.start())
            counted = match.start()
            names = tuple(name for _, name in called)
            yield RepeatedCall(line, last - first, names, match.span("bound"), first)


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
        for match in re.finditer(r"[{}();]", text):
            depth = self._depths[-1] + (match[0] in "{(") - (match[0] in "})")
            if match[0] != ";":
                self._brackets.append(match.end())
                self._depths.append(depth)
            if match[0] in "};":
                self._by_depth.setdefault(depth, []).append(match.end())

    def after(self, position: int) -> int:
        """Return the end of the statement or block that begins at a position."""
        depth = self._depths[bisect_right(self._brackets, position) - 1]
        ends = self._by_depth.get(depth, [])
        index = bisect_right(ends, position)
        return ends[index] if index < len(ends) else self._length

"""Loops that repeat parts of an inference many times, as programs that measure power have them."""

from __future__ import annotations

import re
from collections.abc import Iterator

from values import frozen

SHORTENED = 2
"""How often a shortened loop runs."""
_FEWEST = 5  # loops of fewer rounds are left alone
_CALLS = (
    "cnn_load_weights", "cnn_load_bias", "load_kernels", "load_input", "cnn_start", "cnn_load",
    "cnn_init", "cnn_configure", "cnn_wait", "cnn_run",
)  # fmt: skip
_LOOP = re.compile(
    r"\bfor\s*\(\s*(?:[\w ]+\s)?(?P<name>\w+)\s*=\s*(?P<first>\d+)\s*;\s*(?P=name)\s*<\s*"
    r"(?P<bound>\w+)\s*;[^;{}()]*\)",
)
_CALL = re.compile(rf"\b({'|'.join(_CALLS)})\s*\(")
_HIDDEN = re.compile(r"//[^\n]*|/\*.*?\*/|\"(?:\\.|[^\"\\\n])*\"|'(?:\\.|[^'\\\n])*'", re.DOTALL)
_MACRO = r"^[ \t]*#[ \t]*define[ \t]+{}[ \t]+\(?(\d+)\)?"


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
    for found in _LOOP.finditer(plain):
        last = _number(found["bound"], plain)
        if last is None:
            continue
        first = int(found["first"])
        rounds = last - first
        calls = tuple(dict.fromkeys(_CALL.findall(_body(plain[found.end() :]))))
        if calls and rounds >= _FEWEST:
            line = plain.count("\n", 0, found.start()) + 1
            yield RepeatedCall(line, rounds, calls, found.span("bound"), first)


def _number(word: str, text: str) -> int | None:
    """Return a decimal number, or that of a macro."""
    if word.isdigit():
        return int(word)
    macro = re.search(_MACRO.format(re.escape(word)), text, re.MULTILINE)
    return int(macro[1]) if macro else None


def _body(text: str) -> str:
    """Return the statement or block with which a text begins."""
    depth = 0
    for position, character in enumerate(text):
        depth += (character in "{(") - (character in "})")
        if depth == 0 and character in "};":
            return text[: position + 1]
    return text

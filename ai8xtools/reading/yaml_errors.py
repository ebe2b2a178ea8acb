"""Explains why a text is not valid YAML, in the library's words or better ones, with a remedy."""

from __future__ import annotations

import re
from itertools import islice

_LINE_BREAK = re.compile("\r\n|[\n\r\x85\u2028\u2029]")
_ALIAS = re.compile(r"\*([^\s,\]}]+)")
_ODD_SPACE = re.compile("[ ]*([\u00a0\u2000-\u200b\u202f\u3000])")
_REMEDY = "Check indentation, colons and brackets on this line and the one before."
_OF_LISTS = (
    "Check the indentation of this line and those before, and that each entry of a list, such as a "
    "layer, begins with a dash."
)


def explained(problem: str, text: str, row: int, column: int) -> tuple[str, str] | None:
    """Return what is wrong with a text at a place, and the remedy; both count from 0.

    None stands for a `problem` of the library about which nothing better is known.
    """
    content = next(islice(_LINE_BREAK.split(text), row, None), "")
    if "\t" in content[: len(content) - len(content.lstrip())]:
        return (
            "a tab stands in front of the first key of the line",
            "Indent with spaces; YAML allows no tabs there.",
        )
    lines = [*islice(_LINE_BREAK.split(text), row + 1)]
    for number, line in reversed([*enumerate(lines, 1)]):
        if space := _ODD_SPACE.match(line):
            return (
                f"line {number} begins with the character U+{ord(space[1]):04X}, which looks like "
                "a space",
                "Indent with ordinary spaces.",
            )
    if "undefined alias" in problem:
        alias = _ALIAS.match(content[column:])
        name = alias[1][:80] if alias else "..."
        return (
            f"*{name} stands for a value that is marked &{name}, and none is",
            f"Mark that value with &{name}, or put a text that begins with * in quotes.",
        )
    return None


def context_of(error: object) -> str:
    """Return what the library was reading, and where that began if it was another line."""
    context, mark = getattr(error, "context", None) or "", getattr(error, "problem_mark", None)
    began = getattr(error, "context_mark", None)
    if context and began is not None and mark is not None and began.line != mark.line:
        return f"{context} that begins in line {began.line + 1}, column {began.column + 1}"
    return context


def remedy_of(problem: str) -> str:
    """Return what to check if nothing better is known."""
    lists = ("did not find expected key", "expected <block end>", "expected '-' indicator")
    return _OF_LISTS if any(words in problem for words in lists) else _REMEDY

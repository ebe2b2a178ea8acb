"""Which names a C file defines or declares, found without a compiler in one pass over its text."""

from __future__ import annotations

import re
from bisect import bisect_left

from ai8xtools.values import frozen

_HEAD = re.compile(
    r"^(?:extern[ \t]++\"C\"[ \t]++)?+(?P<words>[A-Za-z_][\w \t*]*+)\s*+(?P<next>[(=\[])",
    re.MULTILINE,
)
_DECLARED = re.compile(r"^[^\S\n]*+(?P<words>\w[\w \t*]*+)\s*+\(", re.MULTILINE)
_MEMBER = re.compile(r"^(?=\S)[^\n;=(]*?\b(\w++)::~?+\w++[ \t]*+\(", re.MULTILINE)
_LABEL = re.compile(r"^[ \t]*+(\w++):", re.MULTILINE)
_NO_TYPE = re.compile(r"(?:return|else)\b")


@frozen
class Definitions:
    """Names of functions, and of variables with a value, each behind a type in a line's start.

    `classes` are those of C++ whose functions stand there.
    """

    functions: frozenset[str]
    variables: frozenset[str]
    classes: frozenset[str] = frozenset()


def definitions(text: str) -> Definitions:
    """Return what a C file defines."""
    functions, variables = set(), set()
    bodies, values = _Marks(text, "[;{]"), _Marks(text, "[;=]")
    for match in _HEAD.finditer(text):
        name = _last_name(match["words"])
        if match["next"] == "(":
            if bodies.after(match.end()) == ("{", True):
                functions.add(name)
        elif match["next"] == "=" or values.after(match.end())[0] == "=":
            variables.add(name)
    classes = frozenset(match[1] for match in _MEMBER.finditer(text))
    return Definitions(frozenset(functions - {""}), frozenset(variables - {""}), classes)


def labels(text: str) -> frozenset[str]:
    """Return the names that an assembler file gives to places."""
    return frozenset(_LABEL.findall(text))


def declared_functions(text: str) -> frozenset[str]:
    """Return the functions that a C file declares and does not define there."""
    ends = _Marks(text, "[;{}]")
    names = {
        _last_name(match["words"])
        for match in _DECLARED.finditer(text)
        if not _NO_TYPE.match(match["words"]) and ends.after(match.end()) == (";", True)
    }
    return frozenset(names - {""})


def _last_name(words: str) -> str:
    """Return the name that stands behind a type; empty if there is none."""
    words = words.rstrip(" \t")
    return words[max(map(words.rfind, " \t*")) + 1 :] if set(words) & set(" \t*") else ""


class _Marks:
    """Where some characters stand in a text, and whether a parenthesis closes before each."""

    def __init__(self, text: str, marks: str) -> None:
        matches = [*re.finditer(rf"(?P<closes>\)\s*+)?+(?P<mark>{marks})|\)\s*+", text)]
        matches = [one for one in matches if one["mark"]]
        self._places = [one.end() - 1 for one in matches]
        self._marks = [(one["mark"], one["closes"] is not None) for one in matches]

    def after(self, position: int) -> tuple[str, bool]:
        """Return the next one from a position on; empty at the end of the text."""
        index = bisect_left(self._places, position)
        return self._marks[index] if index < len(self._places) else ("", False)

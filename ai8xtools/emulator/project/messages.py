"""Messages of C compilers, GNU or clang, as values: where they are and what they complain of."""

from __future__ import annotations

import enum
import re
from pathlib import Path

from ai8xtools.values import frozen

_LINE = re.compile(
    r"^(?P<file>[^\n:]+):(?P<line>\d+):(?:(?P<column>\d+):)? (?:fatal )?error: (?P<text>.*)$",
    re.MULTILINE,
)


_UNDERSTOOD_CHARACTERS = 1000
"""Of a text: it may quote a name or a line without end."""


class Complaint(enum.Enum):
    """What a compiler lacks."""

    HEADER = enum.auto()
    IDENTIFIER = enum.auto()
    TYPE = enum.auto()
    MEMBER = enum.auto()
    STRUCTURE = enum.auto()
    """A type is used as a structure, but is not one."""
    OTHER = enum.auto()


@frozen
class CompilerMessage:
    """An error: place, text, and, unless it is of another kind, the name that is missing.

    `owner` is the type that lacks a member.
    """

    file: Path
    line: int
    column: int
    text: str
    kind: Complaint
    name: str = ""
    owner: str = ""


_NAME = r"(?:struct |union )?(?P<name>\w+)"
_OWNER = r"(?:struct |union |volatile |const )*(?P<owner>\w+)"
_PATTERNS = tuple(
    (kind, re.compile(pattern))
    for kind, pattern in (
        (Complaint.HEADER, r"'(?P<name>[^']+)' file not found"),
        (Complaint.HEADER, r"(?P<name>[^:\s][^:]*): No such file or directory"),
        (Complaint.IDENTIFIER, r"use of undeclared identifier '(?P<name>\w+)'"),
        (Complaint.IDENTIFIER, r"'(?P<name>\w+)' undeclared"),
        (Complaint.TYPE, rf"unknown type name '{_NAME}'"),
        (Complaint.TYPE, rf"variable has incomplete type '{_NAME}'"),
        (Complaint.TYPE, rf"storage size of '\w+' isn't known.*{_NAME}"),
        (Complaint.MEMBER, rf"no member named '(?P<name>\w+)' in '{_OWNER}'"),
        (Complaint.MEMBER, rf"'{_OWNER}'(?: {{aka [^}}]*}})? has no member named '(?P<name>\w+)'"),
        (
            Complaint.MEMBER,
            rf"field designator '(?P<name>\w+)' does not refer to any field in type '{_OWNER}'",
        ),
        (Complaint.STRUCTURE, rf"member reference (?:base )?type '{_NAME}[ *]*'"),
        (
            Complaint.STRUCTURE,
            rf"initialization of non-aggregate type '{_NAME}' .*designated initializer",
        ),
        (
            Complaint.STRUCTURE,
            rf"field designator cannot initialize a non-struct, non-union type '{_NAME}'",
        ),
    )
)


def compiler_messages(output: str) -> list[CompilerMessage]:
    """Return the errors in what a compiler printed, in its order."""
    messages = []
    for match in _LINE.finditer(output):
        kind, name, owner = _understood(match["text"])
        place = Path(match["file"]), int(match["line"]), int(match["column"] or 1)
        messages.append(CompilerMessage(*place, match["text"], kind, name, owner))
    return messages


def _understood(text: str) -> tuple[Complaint, str, str]:
    for kind, pattern in _PATTERNS:
        match = pattern.search(text, 0, _UNDERSTOOD_CHARACTERS)
        if match:
            return kind, match["name"], match.groupdict().get("owner") or ""
    return Complaint.OTHER, "", ""

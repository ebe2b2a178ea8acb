"""Errors in the YAML file of a policy: all of them in one run, each with its line."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from difflib import get_close_matches
from typing import Any

from ai8xtools.diagnostics.errors import InputError
from ai8xtools.reading.text import line

_NOTATION = "YAML takes numbers without quotes, and with a point before e: 1.0e-4."


Position = tuple[int, int]
"""Line and column, from 1."""


class PolicySection(dict[Any, Any]):
    """A mapping of a file that knows where it and its keys stand.

    `written` holds the text of plain values as it stands in the file.
    """

    def __init__(self, position: Position) -> None:
        super().__init__()
        self.position = position
        self.positions: dict[Any, Position] = {}
        self.written: dict[Any, str] = {}

    def move(self, key: Any, name: str) -> None:
        """Take the value of a key for that of another one."""
        self[name] = self.pop(key)
        self.positions[name] = self.positions[key]
        self.written[name] = self.written.get(key, shown(self[name]))


def closest(word: str, words: Iterable[str]) -> str | None:
    """Return which of `words` is closest to `word`, whatever its case; None if none is close."""
    by_case = {name.lower(): name for name in words}
    near = get_close_matches(word.lower(), by_case, 1)
    return by_case[near[0]] if near else None


def shown(value: object) -> str:
    """Return a value of such a file as it may stand in a message."""
    return line(repr(value), 80)


class Complaints:
    """Collects the complaints about a file, with one code; `path` is their place if none is known.

    `refuse` raises InputError with all of them.
    """

    def __init__(self, code: str, path: str) -> None:
        self.code = code
        self.path = path
        self._complaints: list[tuple[Position, InputError]] = []

    def add(
        self,
        message: str,
        section: Mapping[Any, Any] | None = None,
        key: Any = None,
        remedy: str | None = None,
    ) -> None:
        """Note a complaint about a section, or about the value of one of its keys."""
        position, place = (0, 0), self.path
        if isinstance(section, PolicySection):
            position = section.positions.get(key, section.position)
            place = ":".join(map(str, (self.path, *position)))
        self._complaints.append((position, InputError(self.code, message, place, remedy)))

    def wrong(
        self,
        section: Mapping[Any, Any],
        key: Any,
        expected: str,
        *,
        name: str | None = None,
        remedy: str | None = None,
    ) -> None:
        """Complain that a key, called `name`, is missing or has a value that is not `expected`."""
        value = section.get(key)
        fault = f"is {self.written(section, key)}" if key in section else "is missing"
        if remedy is None and isinstance(value, str) and _looks_like_number(value):
            remedy = _NOTATION
        message = f"{shown(key)[1:-1] if name is None else name} {fault}; it must be {expected}"
        self.add(message, section, key, remedy)

    def written(self, section: Mapping[Any, Any], key: Any) -> str:
        """Return a value as it stands in the file."""
        text = section.written.get(key) if isinstance(section, PolicySection) else None
        return shown(section[key]) if text is None else text

    def keys(
        self,
        section: Mapping[Any, Any],
        allowed: Iterable[str],
        what: str,
        listed: Iterable[str] | None = None,
    ) -> dict[Any, Any]:
        """Return the values of the `allowed` keys of a section; complain about the others.

        A key with a slip counts as the one that was meant. The complaint names the keys `listed`.
        """
        allowed = tuple(allowed)
        for key in [key for key in section if key not in allowed]:
            self.unknown(section, key, allowed if listed is None else tuple(listed), what)
        return {key: value for key, value in section.items() if key in allowed}

    def unknown(
        self,
        section: Mapping[Any, Any],
        key: Any,
        allowed: tuple[str, ...],
        what: str,
        listed: str | None = None,
    ) -> None:
        """Complain about a key that is not `allowed`; with a slip it counts as the one meant.

        Of many keys the complaint says what is `listed` in place of their names.
        """
        near = closest(str(key), allowed)
        remedy = f"Did you mean '{near}'? " if near else ""
        remedy += f"Allowed are {listed or ', '.join(allowed)}."
        self.add(f"unknown key {shown(key)} in {what}", section, key, remedy)
        if near and near not in section and isinstance(section, PolicySection):
            section.move(key, near)

    def refuse(self) -> None:
        """Raise InputError if there was a complaint; it carries all of them."""
        if self._complaints:
            in_order = sorted(self._complaints, key=lambda one: one[0])
            first, *others = (error for _, error in in_order)
            first.others = tuple(others)
            raise first


def _looks_like_number(text: str) -> bool:
    try:
        float(text)
    except ValueError:
        return False
    return True

"""Kinds of values a key can have: each converts a YAML node and explains what it accepts.

A kind returns the converted value or raises `KindError`; it never guesses. What it accepts is also
described as JSON Schema, for editors.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping
from typing import Any, Protocol, TypeAlias

import yaml

from ai8xtools.reading.text import is_plain, line
from ai8xtools.synthesis.parse.closest import closest
from ai8xtools.synthesis.parse.nodes import kind_of, scalar
from ai8xtools.values import frozen

_LONGEST_TEXT = 250
"""Texts are names, of layers or parts of file names."""
_PRINTABLE_BITS = 128
"""Of a number that a message may repeat: Python refuses to print very long ones."""
_HUGE = 1 << 62
"""No number of a description comes near this; larger ones would overflow or take minutes."""

Schema: TypeAlias = dict[str, Any]


class KindError(Exception):
    """The node does not hold what the key needs; `remedy` may name the nearest valid value.

    `meant` is that value, converted; None if there is none.
    """

    def __init__(self, message: str, remedy: str | None = None, meant: Any = None) -> None:
        super().__init__(message)
        self.message = message
        self.remedy = remedy
        self.meant = meant


class Kind(Protocol):
    """What a key accepts."""

    def read(self, node: yaml.Node) -> Any:
        """Return the converted value of the node or raise KindError."""

    def expected(self) -> str:
        """Say what is accepted, to follow 'expected'."""

    def schema(self) -> Schema:
        """Return what is accepted as JSON Schema (draft 2020-12)."""


def _scalar(node: yaml.Node) -> int | float | bool | str | None:
    try:
        value = scalar(node)
    except ValueError as exc:
        raise KindError(f"is {kind_of(node)}") from exc
    if isinstance(value, int) and value.bit_length() > _PRINTABLE_BITS:
        raise KindError(f"is {kind_of(node)}, a number of {value.bit_length()} bits")
    return value


def _integer(node: yaml.Node) -> int:
    value = _scalar(node)
    if isinstance(value, bool) or not isinstance(value, int):
        raise KindError(f"is {kind_of(node)}")
    if not -_HUGE <= value <= _HUGE:
        raise KindError(f"is {kind_of(node)}, a number of {value.bit_length()} bits")
    return value


def _elements(node: yaml.Node) -> list[yaml.Node]:
    return list(node.value) if isinstance(node, yaml.SequenceNode) else [node]


def _any_case(words: Iterable[str]) -> str:
    """Return a pattern for one of several words; JSON Schema has no flag for upper and lower."""
    return f"^({'|'.join(''.join(map(_both_cases, word)) for word in words)})$"


def _both_cases(character: str) -> str:
    if character.isalpha():
        return f"[{character.upper()}{character.lower()}]"
    return re.escape(character)


def _list_of(element: Schema, least: int, most: int | None = None) -> Schema:
    limits: Schema = {"minItems": least} if most is None else {"minItems": least, "maxItems": most}
    return {"type": "array", "items": element, **limits}


@frozen
class Integer:
    """A whole number within limits."""

    low: int | None = None
    high: int | None = None
    unit: str = ""

    def read(self, node: yaml.Node) -> int:  # noqa: D102 - see Kind
        value = _integer(node)
        if (self.low is not None and value < self.low) or (
            self.high is not None and value > self.high
        ):
            nearest = max(value, self.low) if self.low is not None else value
            nearest = min(nearest, self.high) if self.high is not None else nearest
            raise KindError(f"is {value}", f"The nearest valid value is {nearest}.", nearest)
        return value

    def expected(self) -> str:  # noqa: D102 - see Kind
        if self.low is None and self.high is None:
            return "an integer"
        if self.high is None:
            return f"an integer of at least {self.low}"
        return f"an integer from {self.low} to {self.high}"

    def schema(self) -> Schema:  # noqa: D102 - see Kind
        low = -_HUGE if self.low is None else self.low
        high = _HUGE if self.high is None else self.high
        return {"type": "integer", "minimum": low, "maximum": high}


@frozen
class Flag:
    """True or false; 1 and 0 are accepted."""

    def read(self, node: yaml.Node) -> bool:  # noqa: D102 - see Kind
        value = _scalar(node)
        if isinstance(value, bool) or (isinstance(value, int) and value in (0, 1)):
            return bool(value)
        raise KindError(f"is {kind_of(node)}", "Write true or false, without quotes.")

    def expected(self) -> str:  # noqa: D102 - see Kind
        return "true or false"

    def schema(self) -> Schema:  # noqa: D102 - see Kind
        return {"enum": [True, False, 1, 0]}


def _plain(value: str) -> str:
    """Return a name as it is; names stand in messages, logs and sources."""
    if not is_plain(value):
        raise KindError(
            f"is the text '{line(value, 40)}', which has control characters", "Take them out."
        )
    return value


@frozen
class Text:
    """A text; `numbers` is whether a number may stand without quotes (parts of file names)."""

    numbers: bool = False

    def read(self, node: yaml.Node) -> str:  # noqa: D102 - see Kind
        value = _scalar(node)
        if self.numbers and isinstance(value, int) and not isinstance(value, bool):
            return str(node.value)
        if not isinstance(value, str) or not value:
            raise KindError(
                f"is {kind_of(node)}", "Put the value in quotes if it is meant as text."
            )
        if len(value) > _LONGEST_TEXT:
            raise KindError(f"has {len(value)} characters, the limit is {_LONGEST_TEXT}")
        return _plain(value)

    def expected(self) -> str:  # noqa: D102 - see Kind
        return "a text"

    def schema(self) -> Schema:  # noqa: D102 - see Kind
        kind: Schema = {"type": ["string", "integer"] if self.numbers else "string"}
        return {**kind, "minLength": 1, "maxLength": _LONGEST_TEXT}


@frozen
class Choice:
    """One of several words (any case) or numbers, each standing for a value."""

    choices: Mapping[str | int, Any]

    def read(self, node: yaml.Node) -> Any:  # noqa: D102 - see Kind
        value = _scalar(node)
        key = value.lower() if isinstance(value, str) else value
        if isinstance(key, (bool, float)) or key is None or key not in self.choices:
            words = [str(c) for c in self.choices]
            near = closest(str(key), words)
            numbers = [c for c in self.choices if isinstance(c, int)]
            remedy = f"Did you mean {near}?" if near else None
            meant = self.choices.get(near) if near else None
            if numbers and isinstance(key, int | float) and not isinstance(key, bool):
                nearest = min(numbers, key=lambda c: (abs(c - key), -c))
                remedy = f"The nearest valid value is {nearest}."
                meant = self.choices[nearest]
            raise KindError(f"is {kind_of(node)}", remedy, meant)
        return self.choices[key]

    def expected(self) -> str:  # noqa: D102 - see Kind
        words = [str(c) for c in self.choices]
        return f"one of {', '.join(words)}" if len(words) > 1 else words[0]

    def schema(self) -> Schema:  # noqa: D102 - see Kind
        words = [c for c in self.choices if isinstance(c, str)]
        listed: Schema = {"enum": list(self.choices)}  # what editors offer
        return (
            {"anyOf": [listed, {"type": "string", "pattern": _any_case(words)}]}
            if words
            else listed
        )


@frozen
class Mask:
    """A set of processors: an integer, or hexadecimal text with dots or underscores."""

    bits: int = 64

    def read(self, node: yaml.Node) -> int:  # noqa: D102 - see Kind
        value = _scalar(node)
        if isinstance(value, str) and value.isascii():
            try:
                value = int(value.replace(".", "").replace("_", ""), 16)
            except ValueError:
                raise KindError(f"is {kind_of(node)}") from None
        if isinstance(value, bool) or not isinstance(value, int):
            raise KindError(f"is {kind_of(node)}")
        if value <= 0:
            raise KindError("names no processor" if value == 0 else f"is {value}")
        if value >> self.bits:
            raise KindError(f"names processor {value.bit_length() - 1}")
        return value

    def expected(self) -> str:  # noqa: D102 - see Kind
        return f"a mask of processors 0 to {self.bits - 1} such as 0x0000.0000.0000.000f"

    def schema(self) -> Schema:  # noqa: D102 - see Kind
        digits = self.bits // 4 - 1  # after the first one that is not zero
        text = rf"^(0[xX])?[0._]*[1-9a-fA-F][._]*([0-9a-fA-F][._]*){{0,{digits}}}$"
        number = Integer(1, (1 << self.bits) - 1).schema()
        return {"anyOf": [number, {"type": "string", "pattern": text}]}


@frozen
class Pair:
    """Two numbers, rows and columns; a single number counts for both (or for `second`)."""

    low: int
    high: int | None = None
    second: int | None = None

    def read(self, node: yaml.Node) -> tuple[int, int]:  # noqa: D102 - see Kind
        limits = Integer(self.low, self.high)
        if not isinstance(node, yaml.SequenceNode):
            try:
                value = limits.read(node)
            except KindError as exc:
                meant = None if exc.meant is None else self._both(exc.meant)
                raise KindError(exc.message, exc.remedy, meant) from None
            return self._both(value)
        if len(node.value) != 2:
            raise KindError(f"is a list of {len(node.value)}")
        values: list[int | None] = []
        refusal = None
        for one in node.value:
            try:
                values.append(limits.read(one))
            except KindError as exc:
                refusal = refusal or exc
                values.append(exc.meant)
        rows, columns = values
        pair = None if rows is None or columns is None else (rows, columns)
        if refusal is not None:
            raise KindError(refusal.message, refusal.remedy, pair)
        assert pair is not None
        return pair

    def _both(self, value: int) -> tuple[int, int]:
        return value, value if self.second is None else self.second

    def expected(self) -> str:  # noqa: D102 - see Kind
        return f"{Integer(self.low, self.high).expected()}, or a list of two"

    def schema(self) -> Schema:  # noqa: D102 - see Kind
        one = Integer(self.low, self.high).schema()
        return {"anyOf": [one, _list_of(one, 2, 2)]}


@frozen
class KernelSize:
    """A kernel: `HxW` as text, or a length; gives (rows, columns) with one column for a length."""

    def read(self, node: yaml.Node) -> tuple[int, int]:  # noqa: D102 - see Kind
        value = _scalar(node)
        if isinstance(value, int) and not isinstance(value, bool):
            return value, 0
        rows, x, columns = str(value).lower().partition("x")
        digits = x and rows.isdecimal() and columns.isdecimal()
        if not isinstance(value, str) or not (digits and value.isascii()):
            raise KindError(f"is {kind_of(node)}")
        if len(rows + columns) > 8 or 0 in (int(rows), int(columns)):
            raise KindError(f"is {kind_of(node)}")
        return int(rows), int(columns)

    def expected(self) -> str:  # noqa: D102 - see Kind
        return "1x1 or 3x3 (two-dimensional), or a length from 1 to 9 (Conv1d)"

    def schema(self) -> Schema:  # noqa: D102 - see Kind
        sizes = ["1x1", "3x3"]
        text: Schema = {"type": "string", "pattern": _any_case(sizes)}
        return {"anyOf": [{"enum": sizes}, text, Integer(1, 9).schema()]}


@frozen
class Reference:
    """A layer by number or name; `words` are names with a meaning of their own."""

    words: Mapping[str, int]
    several: bool = False

    def read(self, node: yaml.Node) -> Any:  # noqa: D102 - see Kind
        if not self.several:
            return self._one(node)
        values = tuple(self._one(n) for n in _elements(node))
        if not values:
            raise KindError("is an empty list")
        return values

    def _one(self, node: yaml.Node) -> int | str:
        value = _scalar(node)
        if isinstance(value, str) and value:
            return self.words.get(value.lower(), _plain(value))
        if isinstance(value, bool) or not isinstance(value, int):
            raise KindError(f"is {kind_of(node)}")
        return value

    def expected(self) -> str:  # noqa: D102 - see Kind
        words = "".join(f", or {w}" for w in self.words)
        return "a layer number or name" + words + (", or a list of these" if self.several else "")

    def schema(self) -> Schema:  # noqa: D102 - see Kind
        one: Schema = {"type": ["integer", "string"], "minLength": 1}
        if self.words:
            one = {"anyOf": [{"enum": list(self.words)}, one]}
        return {"anyOf": [one, _list_of(one, 1)]} if self.several else one


@frozen
class Integers:
    """An integer or a list of integers; gives a tuple."""

    low: int
    high: int
    count: int | None = None

    def read(self, node: yaml.Node) -> tuple[int, ...]:  # noqa: D102 - see Kind
        values = tuple(Integer(self.low, self.high).read(n) for n in _elements(node))
        if not values:
            raise KindError("is an empty list")
        if self.count is not None and len(values) != self.count:
            raise KindError(f"is a list of {len(values)}")
        return values

    def expected(self) -> str:  # noqa: D102 - see Kind
        each = Integer(self.low, self.high).expected()
        return (
            f"{each}, or a list" if self.count is None else f"a list of {self.count}, each {each}"
        )

    def schema(self) -> Schema:  # noqa: D102 - see Kind
        one = Integer(self.low, self.high).schema()
        if self.count is not None:
            return _list_of(one, self.count, self.count)
        return {"anyOf": [one, _list_of(one, 1)]}

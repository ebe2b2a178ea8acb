"""The lines of a description that may not be valid YAML: indentation, key, separator, value."""

from __future__ import annotations

import re
from collections.abc import Sequence

from ai8xtools.synthesis.parse.closest import closest
from ai8xtools.synthesis.parse.keys import GLOBAL_KEYS, LAYER_KEYS, Key
from ai8xtools.values import frozen

_LINE = re.compile(
    r"(?P<lead>\s*(?:-\s+)?)(?P<key>[A-Za-z][\w-]*(?: \w+)?)(?P<separator>\s*[:=]\s*)"
    r"(?P<value>[^#\n]*?)(?P<rest>\s*(?:\s#.*)?)$"
)
_LONGEST = 300
_BY_SPELLING = {name: key for key in (*GLOBAL_KEYS, *LAYER_KEYS) for name in key.spellings}


@frozen
class DescriptionLine:
    """A line that holds a key, whatever its indentation; `meant` is the key of the language."""

    number: int
    lead: str
    key: str
    separator: str
    value: str
    meant: Key | None

    @property
    def begins_layer(self) -> bool:
        """Whether there is a dash in front of the key."""
        return "-" in self.lead

    @property
    def column(self) -> int:
        """Where the value begins."""
        return len(self.lead + self.key + self.separator) + 1


def lines_of(text: str) -> list[DescriptionLine]:
    """Return the lines of a text that hold a key and a value."""
    result = []
    for number, content in enumerate(text.split("\n"), 1):
        match = _LINE.match(content) if len(content) <= _LONGEST else None
        if match is not None:
            lead, key, separator, value = match.group("lead", "key", "separator", "value")
            result.append(DescriptionLine(number, lead, key, separator, value, key_meant(key)))
    return result


def key_meant(word: str) -> Key | None:
    """Return the key that a word is or resembles, in whatever style it is written."""
    if word in _BY_SPELLING:
        return _BY_SPELLING[word]
    plain = re.sub(r"(?<=[a-z])(?=[A-Z])|[- ]", "_", word).lower()
    near = closest(plain, [*_BY_SPELLING])
    return None if near is None else _BY_SPELLING[near]


def blocks_of(lines: Sequence[DescriptionLine], count: int) -> list[tuple[int, int]]:
    """Return first line and end (the line behind) of each layer, as their dashes stand."""
    begins = [line.number for line in lines if line.begins_layer]
    top = [x.number for x in lines if not x.lead and begins and x.number > begins[0]]
    last = min(top, default=count + 1)
    begins = [number for number in begins if number < last]
    return [*zip(begins, [*begins[1:], last], strict=True)] if begins else []

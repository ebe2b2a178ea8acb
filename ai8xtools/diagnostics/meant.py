"""The edit that follows from a remedy which names what was probably meant."""

from __future__ import annotations

import re
from collections.abc import Sequence
from difflib import get_close_matches

from ai8xtools.diagnostics.diagnostic import Diagnostic, Edit, Place
from ai8xtools.reading import ForeignFileError, read_text

_MEANT = re.compile(
    r"(?:[Dd]id you mean|Perhaps you mean|Choose) '?([^\s'?,]+?)'?(?:\?|,|\.$| or )"
)
_MOST_BYTES = 4 << 20


def edit_of(diagnostic: Diagnostic, words: Sequence[str]) -> Edit | None:
    """Return the edit that puts the word which a remedy names in the place of the wrong one.

    The wrong one is the value of an option, or stands on a command line (`words`) as a file that is
    not there, or in the line of a file.
    """
    meant = _MEANT.search(diagnostic.remedy or "")
    place = diagnostic.place
    if meant is None or place is None:
        return None
    if place.line is not None:
        return _in_line(place, meant[1])
    if place.file is not None and place.file in words:
        before = words[words.index(place.file) - 1]
        return _of_word(before if before.startswith("--") else place.file, place.file, meant[1])
    if place.option is None or place.option not in words[:-1]:
        return None
    return _of_word(place.option, words[words.index(place.option) + 1], meant[1])


def _of_word(option: str, old: str, new: str) -> Edit | None:
    return None if old == new else Edit(Place(option=option), old, new, certain=False)


def _in_line(place: Place, meant: str) -> Edit | None:
    """Return the edit of the word in a line that resembles what is meant, from the column on."""
    assert place.line is not None
    try:
        lines = read_text(place.file or "", _MOST_BYTES).splitlines()
    except (ForeignFileError, OSError, ValueError):
        return None
    content = lines[place.line - 1] if place.line <= len(lines) else ""
    matches = {m[0]: m for m in re.finditer(r"[\w.+-]+", content) if m.end() >= (place.column or 1)}
    lower = {word.lower(): word for word in matches}
    near = get_close_matches(meant.lower(), lower, 1)
    if not near or lower[near[0]] == meant:
        return None
    match = matches[lower[near[0]]]
    return Edit(Place(place.file, place.line, match.start() + 1), match[0], meant, certain=False)

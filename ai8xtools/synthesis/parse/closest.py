"""What was probably meant by a word that is not known."""

from __future__ import annotations

from collections.abc import Sequence


def closest(word: str, known: Sequence[str]) -> str | None:
    """Return the known word that resembles a word most, None if there is no such."""
    from difflib import get_close_matches  # here: descriptions without mistakes need not wait

    return next(iter(get_close_matches(word, known, 1)), None)

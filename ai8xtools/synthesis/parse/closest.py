"""What was probably meant by a word that is not known."""

from __future__ import annotations

from collections.abc import Sequence


def closest(word: str, words: Sequence[str]) -> str | None:
    """Return which of `words` resembles a word most; None if none does."""
    from difflib import get_close_matches  # here: descriptions without mistakes need not wait

    return next(iter(get_close_matches(word, words, 1)), None)

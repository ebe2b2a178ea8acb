"""Text of unknown origin reaches a terminal with escapes only."""

from __future__ import annotations

import sys

from ai8xtools.reading.text import cleaned, is_plain, line


def test_control_characters_become_escapes() -> None:
    assert cleaned("a\x1b[2J\x07\x9b\x7f\r") == r"a\x1b[2J\x07\x9b\x7f\x0d"
    assert cleaned("one\ntwo\t3") == "one\ntwo\t3"


def test_marks_of_direction_and_invisible_characters_become_escapes() -> None:
    assert cleaned("a\u202eb\u2066\u200b\ufeff\u2028") == r"a\u202eb\u2066\u200b\ufeff\u2028"


def test_other_languages_stay() -> None:
    assert cleaned("Größe 画像 изображение 🙂") == "Größe 画像 изображение 🙂"


def test_every_character_of_unicode_can_be_written_afterwards() -> None:
    text = cleaned("".join(map(chr, range(sys.maxunicode + 1))))
    assert text.encode() and not set(map(chr, (*range(9), *range(11, 32), 127, 155))) & set(text)


def test_a_line_is_short_and_single() -> None:
    assert line("a\nb") == r"a\nb"
    assert line("x" * 300, 10) == "xxxxxxxxxx..."
    assert is_plain("conv1 é") and not any(map(is_plain, ("a\nb", "\x1b", "\u202e")))

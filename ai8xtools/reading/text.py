"""Text of unknown origin, escaped for terminals, logs and messages.

Escape sequences can clear a terminal, change its title or type into it; marks of direction and
invisible characters make a text look like another; line ends forge lines.
"""

from __future__ import annotations

import re
from functools import cache

_BREAKS = "\x00-\x08\x0b-\x1f\x7f-\x9f\u2028\u2029"
_HIDDEN = "\u00ad\u061c\u180e\u200b-\u200f\u202a-\u202e\u2060-\u206f\ufeff\ufff9-\ufffb"
_OTHER = "\ud800-\udfff\ue000-\uf8ff\ufffe\uffff\U000e0000-\U000e0fff\U000f0000-\U0010ffff"


@cache
def _unfit() -> re.Pattern[str]:
    """Return what is escaped; only texts with unusual characters need it."""
    return re.compile(f"[{_BREAKS}{_HIDDEN}{_OTHER}]")


def cleaned(text: str) -> str:
    """Return a text with escapes (`\\x1b`) for all that is not to reach a terminal as it is.

    Newlines and tabs stay. Escaped are control characters, marks of direction, invisible
    characters, halves of surrogate pairs and characters for private use.
    """
    if text.isascii() and text.replace("\n", "").isprintable():
        return text
    return _unfit().sub(_escape, text)


def line(text: str, most: int = 200) -> str:
    """Return a text as one line of at most `most` characters, cleaned."""
    shown = cleaned(text[:most]).replace("\n", "\\n").replace("\t", "\\t")
    return shown + ("..." if len(text) > most else "")


def has_foreign_digits(text: str) -> bool:
    """Whether a text has digits of another script, which Python takes for those from 0 to 9."""
    return not text.isascii() and any(c.isdecimal() and not c.isascii() for c in text)


def is_plain(text: str) -> bool:
    """Whether a text is one line that can be shown as it is."""
    return line(text, len(text)) == text


def _escape(match: re.Match[str]) -> str:
    code = ord(match[0])
    if code < 0x100:
        return f"\\x{code:02x}"
    return f"\\u{code:04x}" if code < 0x10000 else f"\\U{code:08x}"

"""What ai8xize.py prints while it works."""

from __future__ import annotations

import sys
from collections.abc import Iterable

from commands.loader.options import Messages
from diagnostics import Diagnostic, as_json, print_diagnostics


def print_messages(diagnostics: Iterable[Diagnostic], messages: Messages) -> None:
    """Print diagnostics in the form that was asked for."""
    if messages.as_json:
        print(as_json(diagnostics))
    else:
        print_diagnostics(diagnostics)


def print_line(text: str, messages: Messages) -> None:
    """Print a line for people; it must not stand between the messages for an editor."""
    print(text, file=sys.stderr if messages.as_json else sys.stdout)


def visible(diagnostics: Iterable[Diagnostic], messages: Messages) -> list[Diagnostic]:
    """Leave out what the user asked not to be told."""
    return [d for d in diagnostics if d.effects.silenced_by not in messages.silencing]

"""What ai8xize.py prints while it works."""

from __future__ import annotations

from collections.abc import Iterable

from commands.loader.options import Messages
from diagnostics import Diagnostic, print_diagnostics


def print_messages(diagnostics: Iterable[Diagnostic], messages: Messages) -> None:
    """Print diagnostics in the form that was asked for."""
    del messages
    print_diagnostics(diagnostics)


def print_line(text: str, messages: Messages) -> None:
    """Print a line for people; it must not stand between the messages for an editor."""
    del messages
    print(text)


def visible(diagnostics: Iterable[Diagnostic], messages: Messages) -> list[Diagnostic]:
    """Leave out what the user asked not to be told."""
    return [d for d in diagnostics if d.effects.silenced_by not in messages.silencing]

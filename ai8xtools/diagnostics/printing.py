"""Printing diagnostics: for people (coloured on a terminal) and as JSON for editors."""

from __future__ import annotations

import json
import sys
from collections.abc import Iterable
from typing import Any, TextIO

from ai8xtools.diagnostics.diagnostic import Diagnostic, Severity
from ai8xtools.reading.streams import terminal
from ai8xtools.reading.text import cleaned

MOST_SHOWN = 100
"""The most diagnostics that are printed at once, so that a frequent one does not hide the rest."""
MOST_CHARACTERS = 4000
_STYLES = {Severity.ERROR: "bold red", Severity.WARNING: "yellow", Severity.NOTICE: "green"}


class Aside:
    """Standard output while messages are for programs: what is printed goes to standard error.

    Messages are kept in `diagnostics` until the end, so that standard output is a single JSON text:
    their list, or `result` if there are none.
    """

    def __init__(self) -> None:
        self.output = sys.stdout
        self.diagnostics: list[Diagnostic] = []
        self.result: str | None = None

    def __getattr__(self, name: str) -> Any:
        return getattr(sys.stderr, name)

    def text(self) -> str:
        """Return what standard output gets."""
        return (
            self.result
            if self.result is not None and not self.diagnostics
            else as_json(self.diagnostics)
        )


def takes_json() -> bool:
    """Whether messages are kept for a JSON list at the end."""
    return isinstance(sys.stdout, Aside)


def print_result(text: str) -> None:
    """Print what was asked for as JSON, which no message may precede."""
    if isinstance(sys.stdout, Aside):
        sys.stdout.result = text
    else:
        print(text)


def print_diagnostics(diagnostics: Iterable[Diagnostic], stream: TextIO | None = None) -> None:
    """Print each diagnostic as place, severity, message and code, with its remedy below.

    `stream` is standard error unless given. Colours appear on terminals only, so that files and
    pipes hold plain text. With `--diagnostics json` they are kept for the list at the end.
    """
    messages = tuple(diagnostics)
    if stream is None and isinstance(sys.stdout, Aside):
        sys.stdout.diagnostics.extend(messages)
        return
    stream = stream or sys.stderr
    shown = messages[:MOST_SHOWN]
    if not stream.isatty():
        stream.writelines(f"{_cut(cleaned(str(d)))}\n" for d in shown)
    else:
        _print_in_colours(shown, terminal(stream))
    if len(messages) > len(shown):
        stream.write(f"... and {len(messages) - len(shown)} more, which may follow from these\n")


def _print_in_colours(diagnostics: Iterable[Diagnostic], stream: TextIO) -> None:
    from rich.console import Console
    from rich.text import Text

    console = Console(file=stream, highlight=False, soft_wrap=True)
    for diagnostic in diagnostics:
        text = Text(cleaned(f"{diagnostic.place}: ") if diagnostic.place else "", style="bold")
        text.append(f"{diagnostic.severity}: ", style=_STYLES[diagnostic.severity])
        text.append(_cut(cleaned(diagnostic.message)), style="default")
        text.append(f" [{diagnostic.code}]", style="dim")
        if diagnostic.remedy:
            text.append(f"\n  {cleaned(diagnostic.remedy)}", style="default")
        console.print(text)


def _cut(text: str) -> str:
    """Shorten a text that is too long to be read."""
    return text if len(text) <= MOST_CHARACTERS else text[:MOST_CHARACTERS] + "..."


def as_json(diagnostics: Iterable[Diagnostic]) -> str:
    """Return the diagnostics as a JSON list; places that are unknown are null."""
    return json.dumps(
        [
            {
                "code": d.code,
                "severity": str(d.severity),
                "message": d.message,
                "file": d.place.file if d.place else None,
                "line": d.place.line if d.place else None,
                "column": d.place.column if d.place else None,
                "option": d.place.option if d.place else None,
                "remedy": d.remedy,
            }
            for d in diagnostics
        ],
        indent=2,
    )

"""Printing diagnostics: for people (coloured on a terminal) and as JSON for editors."""

from __future__ import annotations

import json
import os
import sys
from collections.abc import Iterable
from typing import Any, TextIO

from ai8xtools.diagnostics.diagnostic import Diagnostic, Place, Severity
from ai8xtools.diagnostics.outcome import current
from ai8xtools.reading.streams import terminal
from ai8xtools.reading.text import cleaned

MOST_SHOWN = 100
"""The most diagnostics that are printed at once, so that a frequent one does not hide the rest."""
MOST_CHARACTERS = 4000
_STYLES = {Severity.ERROR: "bold red", Severity.WARNING: "yellow", Severity.NOTICE: "green"}


class Aside:
    """Standard output while messages are for programs: what is printed goes to standard error.

    Messages are kept in the outcome of the run until its end, so that standard output is a single
    JSON text: their list, or `result` if there are none. `sarif` asks for a log in this format.
    """

    def __init__(self, *, sarif: bool = False) -> None:
        self.output = sys.stdout
        self.sarif = sarif
        self.result: str | None = None

    def __getattr__(self, name: str) -> Any:
        return getattr(sys.stderr, name)

    def text(self, status: int) -> str:
        """Return what standard output gets of a run that ends with a status."""
        messages = current().diagnostics
        if self.sarif:
            from ai8xtools.diagnostics.sarif import as_sarif  # rarely wanted

            return as_sarif(messages, status)
        return self.result if self.result is not None and not messages else as_json(messages)


def takes_json() -> bool:
    """Whether messages are kept for a JSON list at the end."""
    return isinstance(sys.stdout, Aside)


def is_read_at_once() -> bool:
    """Whether a program or a person waits for the messages; others are not worth long searches."""
    return takes_json() or sys.stderr.isatty()


def print_result(text: str) -> None:
    """Print what was asked for as JSON, which no message may precede."""
    if isinstance(sys.stdout, Aside):
        sys.stdout.result = text
    else:
        print(text)


def print_diagnostics(diagnostics: Iterable[Diagnostic], stream: TextIO | None = None) -> None:
    """Print each diagnostic as place, severity, message and code, with its remedy below.

    `stream` is standard error unless given. Colours appear on terminals only, so that files and
    pipes hold plain text. They are kept for the outcome of the run, and not shown if messages go to
    a program.
    """
    messages = tuple(diagnostics)
    if stream is None:
        current().diagnostics.extend(messages)
        if isinstance(sys.stdout, Aside):
            return
    stream = stream or sys.stderr
    shown = messages[:MOST_SHOWN]
    if not stream.isatty() or os.environ.get("NO_COLOR"):
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
    """Return the diagnostics as a JSON list, see docs/messages.schema.json."""
    return json.dumps(values_of(diagnostics), indent=2)


def values_of(diagnostics: Iterable[Diagnostic]) -> list[dict[str, Any]]:
    """Return the diagnostics as plain values; what is unknown is None."""
    return [
        {
            "code": d.code,
            "severity": str(d.severity),
            "message": d.message,
            **_place(d.place or Place()),
            "value": d.value,
            "limit": d.limit,
            "remedy": d.remedy,
            "edit": None
            if d.edit is None
            else {
                **_place(d.edit.place),
                "old": d.edit.old,
                "new": d.edit.new,
                "certain": d.edit.certain,
            },
        }
        for d in diagnostics
    ]


def _place(place: Place) -> dict[str, Any]:
    return {
        "file": place.file,
        "line": place.line,
        "column": place.column,
        "option": place.option,
    }

"""The last line of emulate.py, kept for programs as well."""

from __future__ import annotations

from ai8xtools.diagnostics import note

_VERDICTS = {"PASS": "passed", "FAIL": "failed", "DONE": "done", "NOT": "not passed"}


def tell(line: str, doubt: str | None = None) -> None:
    """Print a verdict, which begins with PASS, FAIL, DONE or NOT PASSED, with a doubt about it."""
    text = line if doubt is None else f"{line}. {doubt}"
    note(verdict=_VERDICTS[line.partition(" ")[0]], reason=text)
    print(text)

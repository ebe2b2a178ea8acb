"""The last line on a terminal: what the run came to, and the command that usually follows."""

from __future__ import annotations

import shlex
from collections.abc import Iterator
from pathlib import Path
from typing import Any

from ai8xtools.diagnostics.outcome import Outcome

_INSTALLED = {
    "train.py": "ai8x-train",
    "quantize.py": "ai8x-quantize",
    "ai8xize.py": "ai8xize",
    "emulate.py": "ai8x-emulate",
}
_SCRIPT = ".py"
_SHORT = 50
"""Characters of a reason that is told in place of the bare verdict."""


def conclusion(outcome: Outcome, columns: int) -> str:
    """Return one line, or two where one would be wider than `columns`; "" if nothing is known."""
    facts = outcome.facts
    result = ", ".join(_results(facts))
    if not outcome.following:
        return f"{facts['subject']}: {result}" if facts["subject"] and result else ""
    first = f"{facts['subject'] or 'it'}: {result or 'ready'}."
    following = f"Next: {shlex.join(_called(outcome))}"
    fits = len(first) + len(following) < columns
    return f"{first}{' ' if fits else chr(10)}{following}"


def _results(facts: dict[str, Any]) -> Iterator[str]:
    if facts["verdict"]:
        reason = facts["reason"] or ""
        yield reason if 0 < len(reason) < _SHORT else facts["verdict"]
    accuracy = facts["accuracy"]
    if accuracy:
        name, value = next(iter(accuracy["measures"].items()))
        yield f"{name} {value:.4g} on {accuracy['samples']:,} samples"
    if facts["cycles"]:
        yield f"{facts['cycles']['count']:,.0f} cycles"


def _called(outcome: Outcome) -> tuple[str, ...]:
    """Return the following command as this one was called: a script in a folder, or installed."""
    tool, *words = outcome.following
    if tool not in _INSTALLED or not outcome.words:
        return (tool, *words)
    this = Path(outcome.words[0])
    if this.suffix != _SCRIPT:
        return (_INSTALLED[tool], *words)
    return ("python", str(this.with_name(tool)), *words)

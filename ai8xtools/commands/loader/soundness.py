"""What is known not to work: said last, refused with --strict, repeated in the main program."""

from __future__ import annotations

from collections.abc import Iterable

from ai8xtools.diagnostics import Diagnostic, DiagnosticError
from ai8xtools.synthesis.facts import without_doubts


def unsound(diagnostics: Iterable[Diagnostic]) -> tuple[Diagnostic, ...]:
    """Return the warnings in spite of which a project is written, but not expected to work."""
    return tuple(d for d in diagnostics if d.effects.unsound)


def refuse_unsound(diagnostics: Iterable[Diagnostic]) -> None:
    """Raise DiagnosticError if there are such warnings; they are errors then."""
    messages = tuple(diagnostics)
    if unsound(messages):
        raise DiagnosticError(without_doubts(messages))


def sentence(diagnostic: Diagnostic) -> str:
    """Return a diagnostic as one line: what is wrong, its code, and the remedy."""
    remedy = f" {diagnostic.remedy}" if diagnostic.remedy else ""
    return f"{diagnostic.message} [{diagnostic.code}].{remedy}"


def last_line(diagnostics: Iterable[Diagnostic], *, verified: bool) -> str | None:
    """Return the line with which a run ends that wrote what is not expected to work.

    `verified` means that the emulated chip has computed the known answer all the same.
    """
    doubts = unsound(diagnostics)
    if not doubts:
        return None
    start = "Warning: not expected to work as it is"
    if verified:
        start = "Warning: the emulated chip computes the known answer of this sample, but"
    more = f" ({len(doubts) - 1} more such warnings above)" if len(doubts) > 1 else ""
    return f"{start}: {sentence(doubts[0])}{more}"

"""A diagnostic, its place and its severity."""

from __future__ import annotations

import enum
from collections.abc import Iterable
from dataclasses import field, replace

from ai8xtools.values import frozen

_SHOWN = 60
"""Characters of an edit that a sentence about it has."""


class Severity(enum.StrEnum):
    """An error ends the run with status 1; warnings and notices do not."""

    ERROR = "error"
    WARNING = "warning"
    NOTICE = "notice"

    @property
    def is_error(self) -> bool:
        """Whether it ends the run."""
        return {Severity.ERROR: True, Severity.WARNING: False, Severity.NOTICE: False}[self]


@frozen
class Place:
    """Where a diagnostic stands: a file with line and column (from 1), a command line option, or
    an option that does not suit what stands in the file.
    """

    file: str | None = None
    line: int | None = None
    column: int | None = None
    option: str | None = None

    def __str__(self) -> str:
        parts = [self.file or "", *(str(n) for n in (self.line, self.column) if n is not None)]
        where = ":".join(parts)
        if self.option is None:
            return where
        return f"{where}: option {self.option}" if where else f"option {self.option}"

    def with_option(self, option: str) -> Place:
        """Return the place of an option that does not suit what stands here."""
        return replace(self, option=option)


@frozen
class Effects:
    """The consequences of a diagnostic for later checks; never printed.

    After an error the facts that it `blocks` are not known; a complaint that `needs` one of them
    may be no more than a consequence. `silenced_by` is the option that hides the complaint. What is
    written in spite of an `unsound` warning is not expected to work as it is. A `hint` explains
    errors and is printed beside them only.
    """

    blocks: frozenset[str] = frozenset()
    needs: frozenset[str] = frozenset()
    silenced_by: str | None = None
    unsound: bool = False
    hint: bool = False


NO_EFFECTS = Effects()


@frozen
class Edit:
    """The cure as a replacement that a program can apply: `old` at `place` becomes `new`.

    In a file, `old` begins at line and column; where it is empty, `new` is inserted. Of an option,
    `old` is the option as it was typed, or its value; where it is empty, the option is added, with
    the value `new`. It is `certain` if nothing else can be meant,
    otherwise the likeliest.
    """

    place: Place
    old: str
    new: str
    certain: bool = True

    def __str__(self) -> str:
        perhaps = "" if self.certain else "Perhaps: "
        if self.place.file is None:
            option = self.place.option
            added = f"add {option} {self.new}" if not self.old else None
            removed = f"leave out {option}" if not self.new else None
            what = added or removed or f"{option} {self.new} instead of {self.old}"
        else:
            old, new = map(_shortened, (self.old, self.new))
            added = f"insert {new!r}" if not old else None
            removed = f"remove {old!r}" if not new else None
            what = f"{added or removed or f'{new!r} instead of {old!r}'} at {self.place}"
        return f"{perhaps}{what}." if perhaps else f"{what[0].upper()}{what[1:]}."


def _shortened(text: str) -> str:
    """Return a text in one line, or its beginning."""
    text = " ".join(text.split())
    return text if len(text) <= _SHOWN else f"{text[:_SHOWN]}..."


@frozen
class Diagnostic:
    """One complaint.

    `message` holds the offending value and the limit in one sentence; `remedy` says what to do
    about it, `edit` the same for programs where it is known in full; `code` (`E204`) is the key of
    docs/errors.md. `value` and `limit` (what is possible) stand apart for programs.
    """

    code: str
    message: str
    place: Place | None = None
    remedy: str | None = None
    severity: Severity = Severity.ERROR
    effects: Effects = field(default=NO_EFFECTS, compare=False, repr=False)
    value: str | None = field(default=None, compare=False, repr=False)
    limit: str | None = field(default=None, compare=False, repr=False)
    edit: Edit | None = field(default=None, compare=False, repr=False)

    def with_edit(self, edit: Edit) -> Diagnostic:
        """Return the same with a cure, which the remedy says in words."""
        remedy = " ".join(filter(None, (self.remedy, str(edit))))
        return replace(self, edit=edit, remedy=remedy)

    def __str__(self) -> str:
        where = f"{self.place}: " if self.place else ""
        remedy = f"\n  {self.remedy}" if self.remedy else ""
        return f"{where}{self.severity}: {self.message} [{self.code}]{remedy}"


class DiagnosticError(Exception):
    """Ends a run: carries all diagnostics so far, in their order."""

    def __init__(self, diagnostics: Iterable[Diagnostic] | Diagnostic) -> None:
        if isinstance(diagnostics, Diagnostic):
            diagnostics = (diagnostics,)
        self.diagnostics = tuple(diagnostics)
        super().__init__("\n".join(map(str, self.diagnostics)))


def refused(
    code: str, message: str, place: Place | None = None, remedy: str | None = None
) -> DiagnosticError:
    """Return the exception that ends a run with this error."""
    return DiagnosticError(Diagnostic(code, message, place, remedy))


def has_errors(diagnostics: Iterable[Diagnostic]) -> bool:
    """Return whether any of them is an error."""
    return any(d.severity.is_error for d in diagnostics)


def refuse_errors(diagnostics: Iterable[Diagnostic]) -> None:
    """Raise DiagnosticError with all of them if any is an error."""
    messages = tuple(diagnostics)
    if has_errors(messages):
        raise DiagnosticError(messages)

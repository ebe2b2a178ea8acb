"""Messages as a SARIF log, version 2.1.0 (OASIS), for editors and code review."""

from __future__ import annotations

import json
from collections.abc import Sequence
from pathlib import Path
from typing import Any
from urllib.parse import quote

from ai8xtools import __version__
from ai8xtools.diagnostics.diagnostic import Diagnostic, Edit, Place, Severity
from ai8xtools.diagnostics.outcome import current

_LEVELS = {Severity.ERROR: "error", Severity.WARNING: "warning", Severity.NOTICE: "note"}


def as_sarif(diagnostics: Sequence[Diagnostic], status: int) -> str:
    """Return the log of a run of the tool; edits of files are fixes."""
    rules = list(dict.fromkeys(d.code for d in diagnostics))
    words = current().words
    driver = {
        "name": Path(words[0]).name if words else "ai8xtools",
        "version": __version__,
        "rules": [{"id": code} for code in rules],
    }
    run = {
        "tool": {"driver": driver},
        "columnKind": "unicodeCodePoints",
        "invocations": [{"executionSuccessful": status == 0, "exitCode": status}],
        "results": [_result(d, rules.index(d.code)) for d in diagnostics],
    }
    schema = "https://json.schemastore.org/sarif-2.1.0.json"
    return json.dumps({"$schema": schema, "version": "2.1.0", "runs": [run]}, indent=2)


def _result(diagnostic: Diagnostic, rule: int) -> dict[str, Any]:
    place, edit = diagnostic.place or Place(), diagnostic.edit
    option = f"option {place.option}: " if place.option else ""
    text = "\n".join(filter(None, (f"{option}{diagnostic.message}", diagnostic.remedy)))
    result: dict[str, Any] = {
        "ruleId": diagnostic.code,
        "ruleIndex": rule,
        "level": _LEVELS[diagnostic.severity],
        "message": {"text": text},
    }
    if place.file:
        location: dict[str, Any] = {"artifactLocation": {"uri": _uri(place.file)}}
        if place.line:
            location["region"] = {"startLine": place.line, "startColumn": place.column or 1}
        result["locations"] = [{"physicalLocation": location}]
    if edit is not None and edit.place.file and edit.place.line:
        result["fixes"] = [_fix(edit, edit.place.file, edit.place.line, diagnostic.remedy)]
    return result


def _fix(edit: Edit, file: str, row: int, remedy: str | None) -> dict[str, Any]:
    column = edit.place.column or 1
    *before, last = edit.old.split("\n")
    region = {
        "startLine": row,
        "startColumn": column,
        "endLine": row + len(before),
        "endColumn": len(last) + (1 if before else column),
    }
    replacement = {"deletedRegion": region, "insertedContent": {"text": edit.new}}
    change = {"artifactLocation": {"uri": _uri(file)}, "replacements": [replacement]}
    return {"description": {"text": remedy or "Replace it."}, "artifactChanges": [change]}


def _uri(file: str) -> str:
    """Return a path as a reference, relative ones as they are."""
    path = Path(file)
    return path.as_uri() if path.is_absolute() else quote(path.as_posix())

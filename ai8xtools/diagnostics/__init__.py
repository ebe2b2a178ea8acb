"""Diagnostics of the tools, and how they reach a person or an editor.

A failure is a value: a `Diagnostic` names the place (file, line and column, or an option), the
offending value with its limit, and a remedy. Stages collect all of them; `DiagnosticError` carries
them outward; `run` is the one place where they are printed and turned into an exit status.

docs/architecture.md, "Diagnostics" has the ranges of the codes. E is an error, W a warning, N a
notice.
"""

from ai8xtools.diagnostics.diagnostic import (
    NO_EFFECTS,
    Diagnostic,
    DiagnosticError,
    Edit,
    Effects,
    Place,
    Severity,
    has_errors,
    refuse_errors,
    refused,
)
from ai8xtools.diagnostics.guard import (
    DEBUG_REPORT,
    diagnostics_of,
    leave,
    run,
    value_of,
    wants_json,
)
from ai8xtools.diagnostics.outcome import Outcome, current, note, suggest
from ai8xtools.diagnostics.printing import (
    as_json,
    is_read_at_once,
    print_diagnostics,
    print_result,
    takes_json,
    values_of,
)

__all__ = [
    "DEBUG_REPORT",
    "NO_EFFECTS",
    "Diagnostic",
    "DiagnosticError",
    "Edit",
    "Effects",
    "Outcome",
    "Place",
    "Severity",
    "as_json",
    "current",
    "diagnostics_of",
    "has_errors",
    "is_read_at_once",
    "leave",
    "note",
    "print_diagnostics",
    "print_result",
    "refuse_errors",
    "refused",
    "run",
    "suggest",
    "takes_json",
    "value_of",
    "values_of",
    "wants_json",
]

"""What ai8xize.py tells while it works."""

from __future__ import annotations

import argparse
import sys
from collections.abc import Iterable

from diagnostics import Diagnostic, DiagnosticError, as_json, print_diagnostics
from synthesis.pipeline import has_errors


def report(diagnostics: Iterable[Diagnostic], args: argparse.Namespace) -> None:
    """Print diagnostics in the form that was asked for."""
    if args.diagnostics == "json":
        print(as_json(diagnostics))
    else:
        print_diagnostics(diagnostics)


def tell(text: str, args: argparse.Namespace) -> None:
    """Print a line for people; it must not stand between the messages for an editor."""
    print(text, file=sys.stderr if args.diagnostics == "json" else sys.stdout)


def refuse_errors(diagnostics: Iterable[Diagnostic]) -> None:
    """Raise if there is an error among them."""
    found = tuple(diagnostics)
    if has_errors(found):
        raise DiagnosticError(found)


def audible(diagnostics: Iterable[Diagnostic], args: argparse.Namespace) -> list[Diagnostic]:
    """Leave out what the user does not want to hear."""
    silenced = {"W390"} if args.no_warn_zero else set()
    silenced |= {"N332", "N333"} if args.ignore_energy_warning else set()
    return [d for d in diagnostics if d.code not in silenced]

"""What ai8xize.py tells while it works."""

from __future__ import annotations

import argparse
import sys
from collections.abc import Iterable

from diagnostics import Diagnostic, as_json, print_diagnostics


def report(diagnostics: Iterable[Diagnostic], args: argparse.Namespace) -> None:
    """Print diagnostics in the form that was asked for."""
    if args.diagnostics == "json":
        print(as_json(diagnostics))
    else:
        print_diagnostics(diagnostics)


def print_line(text: str, args: argparse.Namespace) -> None:
    """Print a line for people; it must not stand between the messages for an editor."""
    print(text, file=sys.stderr if args.diagnostics == "json" else sys.stdout)


def visible(diagnostics: Iterable[Diagnostic], args: argparse.Namespace) -> list[Diagnostic]:
    """Leave out what the user asked not to be told."""
    given = {
        "--no-warn-zero": args.no_warn_zero,
        "--ignore-energy-warning": args.ignore_energy_warning,
    }
    return [d for d in diagnostics if not given.get(d.effects.silenced_by or "")]

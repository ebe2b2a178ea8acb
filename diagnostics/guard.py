"""The outer shell of every script: a failure becomes a message and an exit status."""

from __future__ import annotations

import os
import sys
from collections.abc import Callable
from typing import Protocol, runtime_checkable

import diagnostics.report as report
from diagnostics.diagnostic import Diagnostic, DiagnosticError, Place
from diagnostics.report import print_diagnostics


@runtime_checkable
class Refusal(Protocol):
    """An exception of a room that does not import this one but says the same things.

    `place` is a file name or an option, `remedy` may be None.
    """

    code: str
    message: str
    place: str | None
    remedy: str | None


def run(main: Callable[[], int | None], *, as_json: bool = False) -> int:
    """Call `main` and return the exit status of the script.

    0: done; 1: refused or failed, with diagnostics on standard error; 2 is left to argparse.
    Errors of the operating system (missing file, full disk) and Ctrl-C become diagnostics too. A
    defect of the tool itself is reported as such in one line; set `AI8X_TRACEBACK=1` to see where.
    With `as_json` the diagnostics of an error go to standard output as a JSON list.
    """
    try:
        return main() or 0
    except DiagnosticError as exc:
        if as_json:
            print(report.as_json(exc.diagnostics))
        else:
            print_diagnostics(exc.diagnostics)
    except KeyboardInterrupt:
        _print("E001", "interrupted", remedy="Nothing was left half-written; run it again.")
    except BrokenPipeError:
        sys.stdout = open(os.devnull, "w")  # noqa: SIM115 - keeps the interpreter's exit quiet
    except OSError as exc:
        _print_os_error(exc)
    except MemoryError:
        _print("E003", "out of memory", remedy="Use a smaller batch or close other programs.")
    except Exception as exc:
        if isinstance(exc, Refusal):
            _print(exc.code, exc.message, exc.place, exc.remedy)
        elif os.environ.get("AI8X_TRACEBACK"):
            raise
        else:
            _print(
                "E009",
                f"defect in the tool: {type(exc).__name__}: {exc}",
                remedy="Set AI8X_TRACEBACK=1 to see where, and report it with the command line.",
            )
    return 1


def _print(code: str, message: str, place: str | None = None, remedy: str | None = None) -> None:
    where = None
    if place is not None:
        where = Place(option=place) if place.startswith("-") else Place(file=place)
    print_diagnostics([Diagnostic(code, message, where, remedy)])


def _print_os_error(exc: OSError) -> None:
    """Say which file and what the system answered, with a remedy for the usual causes."""
    remedies = {
        "ENOSPC": "Free some space or choose another folder; existing results are untouched.",
        "EDQUOT": "Free some space or choose another folder; existing results are untouched.",
        "ENOENT": "Check the path.",
        "EACCES": "Check the permissions of the file and its folder.",
        "EROFS": "Choose a folder that can be written.",
        "EISDIR": "Name a file, not a folder.",
        "ENOTDIR": "A part of the path is a file, not a folder.",
    }
    import errno

    name = errno.errorcode.get(exc.errno or 0, "")
    place = str(exc.filename) if exc.filename is not None else None
    _print("E002", exc.strerror or str(exc), place, remedies.get(name))

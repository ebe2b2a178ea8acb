"""What every script runs in: turns a failure into a message and an exit status."""

from __future__ import annotations

import contextlib
import errno
import os
import sys
from collections.abc import Callable, Iterable
from typing import NoReturn

import diagnostics.printing as printing
from diagnostics.diagnostic import Diagnostic, DiagnosticError, Place
from diagnostics.errors import ToolError
from diagnostics.printing import print_diagnostics


def run(main: Callable[[], int | None], *, as_json: bool = False) -> int:
    """Call `main` and return the exit status of the script.

    0: done; 1: refused or failed, with diagnostics on standard error; 2 is left to argparse.
    Errors of the operating system (missing file, full disk) and Ctrl-C become diagnostics too. A
    defect of the tool itself is reported as such in one line; set `AI8X_TRACEBACK=1` to see where.
    With `as_json` diagnostics go to standard output as a JSON list, whatever their origin.
    """
    try:
        return _run(main, as_json)
    except BrokenPipeError:
        sys.stdout = open(os.devnull, "w")  # noqa: SIM115 - keeps the interpreter's exit quiet
    return 1


def leave(status: int) -> NoReturn:
    """End the program at once, after what was printed has been written.

    The interpreter would first give back every object one by one, which a short run need not wait
    for. A debugger, a profiler or a coverage tool that watches the program gets the usual way out.
    """
    if sys.gettrace() is not None or sys.getprofile() is not None:
        sys.exit(status)
    for stream in (sys.stdout, sys.stderr):
        with contextlib.suppress(AttributeError, OSError, ValueError):  # closed, or nobody listens
            stream.flush()
    os._exit(status)


def _run(main: Callable[[], int | None], as_json: bool) -> int:
    """Do what `run` does, except that a closed pipe raises BrokenPipeError."""
    try:
        status = main() or 0
        if sys.stdout is not None:  # None: whoever started the program closed it
            sys.stdout.flush()  # a full disk or a closed pipe is told here, not at the exit
        return status
    except BrokenPipeError:
        raise
    except (KeyboardInterrupt, Exception) as exc:
        _print(diagnostics_of(exc), as_json)
        sys.stdout.flush()
    return 1


def _print(diagnostics: Iterable[Diagnostic], as_json: bool) -> None:
    if as_json:
        print(printing.as_json(diagnostics))
    else:
        print_diagnostics(diagnostics)


def diagnostics_of(exc: BaseException) -> tuple[Diagnostic, ...]:
    """Return an exception as diagnostics; re-raise a defect if a traceback was asked for."""
    match exc:
        case DiagnosticError():
            return exc.diagnostics
        case KeyboardInterrupt():
            found = Diagnostic(
                "E001", "interrupted", remedy="Nothing was left half-written; run it again."
            )
        case OSError():
            found = _os_diagnostic(exc)
        case MemoryError():
            found = Diagnostic(
                "E003", "out of memory", remedy="Use a smaller batch or close other programs."
            )
        case ToolError():
            found = Diagnostic(exc.code, exc.message, _place(exc.place), exc.remedy)
        case _:
            if os.environ.get("AI8X_TRACEBACK"):
                raise exc
            found = Diagnostic(
                "E009",
                f"defect in the tool: {type(exc).__name__}: {exc}",
                remedy="Set AI8X_TRACEBACK=1 to see where, and report it with the command line.",
            )
    return (found,)


def _place(name: str | None) -> Place | None:
    """Return the place of a file name or an option; None if there is neither."""
    if not name:
        return None
    return Place(option=name) if name.startswith("-") else Place(file=name)


_OS_REMEDIES = {
    errno.ENOSPC: "Free some space or choose another folder; existing results are untouched.",
    errno.EDQUOT: "Free some space or choose another folder; existing results are untouched.",
    errno.EFBIG: "The limit of the file system or `ulimit -f` is reached: choose another folder "
    "or raise the limit; existing results are untouched.",
    errno.ENOENT: "Check the path.",
    errno.EACCES: "Check the permissions of the file and its folder.",
    errno.EEXIST: "Choose another name, or move what has this one.",
    errno.ENAMETOOLONG: "Choose a shorter name.",
    errno.EROFS: "Choose a folder that can be written.",
    errno.EISDIR: "Name a file, not a folder.",
    errno.ENOTDIR: "A part of the path is a file, not a folder.",
}

_FULL = (errno.ENOSPC, errno.EDQUOT, errno.EFBIG)
_OUTPUT_REMEDY = (
    "Free some space, or send the output of the program elsewhere; results that were "
    "already complete are unaffected."
)
"""For errors without a file name: they come from an output stream."""


def _os_diagnostic(exc: OSError) -> Diagnostic:
    """Return the file and the system's answer, with a remedy for the usual causes."""
    place = _place(str(exc.filename)) if exc.filename is not None else None
    remedy = _OS_REMEDIES.get(exc.errno or 0)
    if exc.filename is None and exc.errno in _FULL:
        remedy = _OUTPUT_REMEDY
    return Diagnostic("E002", exc.strerror or str(exc), place, remedy)

"""Runs every script: turns a failure into a message and an exit status."""

from __future__ import annotations

import contextlib
import errno
import os
import re
import shutil
import sys
from collections.abc import Callable, Sequence
from dataclasses import replace
from importlib.util import find_spec
from itertools import pairwise
from typing import NoReturn, TextIO, cast

from ai8xtools.diagnostics.diagnostic import Diagnostic, DiagnosticError, Place
from ai8xtools.diagnostics.errors import ToolError
from ai8xtools.diagnostics.outcome import Outcome, current, recorded
from ai8xtools.diagnostics.printing import Aside, print_diagnostics
from ai8xtools.diagnostics.signals import Terminated, ending_as_interrupts
from ai8xtools.reading import ForeignFileError, where_else
from ai8xtools.reading.streams import clean_streams, silence
from ai8xtools.reading.text import line


def run(main: Callable[[], int | None]) -> int:
    """Call `main` and return the exit status of the script.

    0: done; 1: refused or failed, with diagnostics on standard error; 2 is left to argparse. The
    outcome is written if the command line requests it. Errors of the operating system (missing
    file, full disk), Ctrl-C and SIGTERM become diagnostics too. A defect of the tool itself is
    reported as such in one line; set `AI8X_TRACEBACK=1` to see where. With `--diagnostics json`
    standard output is a JSON list of diagnostics, whatever their origin, with `sarif` a log in that
    format, and all else that is printed goes to standard error. What is printed is cleaned of
    control characters.
    """
    words = tuple(sys.argv)
    with clean_streams(), recorded(words) as outcome:
        diagnostics: list[Diagnostic] = []
        aside = _aside(words)
        status, cause = _status(main, diagnostics)
        status = _write_files(outcome, status)
        if aside is not None:
            status = _write_json(aside, status)
        elif status == 0:
            _conclude(outcome)
        file = _report_file(words)
        if file is not None and status != _USAGE:
            from ai8xtools.diagnostics import debug_report  # rarely wanted

            debug_report.write(file, debug_report.report(words, status, diagnostics, cause))
        if isinstance(cause, SystemExit):
            raise cause
    return status


def _write_files(outcome: Outcome, status: int) -> int:
    """Write the files about the run that were asked for; return its exit status."""
    outcome.status = status
    for write in outcome.at_end.values():
        try:
            write(outcome)
        except OSError as exc:
            print_diagnostics([_os_diagnostic(exc)])
            status = status or 1
    return status


def _conclude(outcome: Outcome) -> None:
    """Tell a person the result and what comes next; a program gets neither."""
    if not sys.stdout.isatty():
        return
    from ai8xtools.diagnostics.conclusion import conclusion  # people only

    text = conclusion(outcome, shutil.get_terminal_size().columns)
    if text:
        with contextlib.suppress(OSError):
            print(text)


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


def wants_json(words: Sequence[str]) -> bool:
    """Whether messages go to a program, even if the command line turns out to be wrong."""
    return value_of("--diagnostics", words, abbreviated=True) in ("json", "sarif")


def _aside(words: Sequence[str]) -> Aside | None:
    """Lead what is printed away from standard output if messages go to a program."""
    if not wants_json(words):
        return None
    aside = Aside(sarif=value_of("--diagnostics", words, abbreviated=True) == "sarif")
    sys.stdout = cast("TextIO", aside)
    return aside


def _write_json(aside: Aside, status: int) -> int:
    """Write the JSON text to standard output, which gets its place back; return the exit status."""
    sys.stdout = aside.output
    diagnostics = current().diagnostics
    if status and not diagnostics and aside.result is None:
        diagnostics.append(
            Diagnostic("E011", f"ended with status {status}", remedy="Standard error says why.")
        )
    try:
        print(aside.text(status))
        sys.stdout.flush()
    except OSError:
        silence(sys.stdout)
        return status or 1
    return status


def _status(
    main: Callable[[], int | None], diagnostics: list[Diagnostic]
) -> tuple[int, BaseException | None]:
    """Return the exit status and what ended `main` early; the reasons are added to
    `diagnostics`."""
    try:
        with ending_as_interrupts():
            return _run(main), None
    except BrokenPipeError as exc:  # whoever reads has seen enough
        silence(sys.stdout)
        return 1, exc
    except SystemExit as exc:
        return (exc.code if isinstance(exc.code, int) else 0 if exc.code is None else 1), exc
    except (KeyboardInterrupt, Exception) as exc:
        diagnostics.extend(map(_with_edit, diagnostics_of(exc)))
        try:
            print_diagnostics(diagnostics)
            sys.stdout.flush()
        except OSError:
            silence(sys.stdout)
        return 1, exc


def _run(main: Callable[[], int | None]) -> int:
    """Return the status of `main` once what it printed has been written."""
    try:
        status = main() or 0
    except SystemExit:
        sys.stdout.flush()
        raise
    sys.stdout.flush()  # a full disk or a closed pipe is told here, not at the exit
    return status


def diagnostics_of(exc: BaseException) -> tuple[Diagnostic, ...]:
    """Return an exception as diagnostics; re-raise a defect if a traceback was asked for."""
    match exc:
        case DiagnosticError():
            return exc.diagnostics
        case KeyboardInterrupt():
            what = "ended from outside" if isinstance(exc, Terminated) else "interrupted"
            diagnostic = Diagnostic("E001", what, remedy=str(exc) or _AGAIN)
        case OSError():
            diagnostic = _os_diagnostic(exc)
        case MemoryError():
            diagnostic = Diagnostic(
                "E003", "out of memory", remedy="Use a smaller batch or close other programs."
            )
        case ToolError():
            return tuple(map(_of_tool, (exc, *exc.others)))
        case ModuleNotFoundError(name=str(name)) if find_spec(name.partition(".")[0]) is None:
            diagnostic = Diagnostic(
                "E624", f"the package {name} is not installed for {sys.executable}",
                remedy="Use .venv/bin/python, which `make setup` makes, or install what "
                "requirements.txt names for this Python.",
            )  # fmt: skip
        case _:
            _note_defect(exc)
            if os.environ.get("AI8X_TRACEBACK"):
                raise exc
            diagnostic = Diagnostic(
                "E009",
                f"defect in the tool: {type(exc).__name__}: {_text_of(exc)}",
                remedy=f"Run it again with {DEBUG_REPORT} FILE and report the defect with "
                "this file; it holds versions, options and places in the source, no data.",
            )
    return (diagnostic,)


def _of_tool(error: ToolError) -> Diagnostic:
    """Return an error as a diagnostic, with the cure if it arose in a Python file of a user."""
    diagnostic = Diagnostic(error.code, error.message, _place(error.place), error.remedy)
    if (error.__cause__ or error.__context__) is None:
        return diagnostic
    from ai8xtools.diagnostics.python_errors import edit_of  # rarely wanted

    edit = edit_of(error)
    return diagnostic if edit is None else diagnostic.with_edit(edit)


def _with_edit(diagnostic: Diagnostic) -> Diagnostic:
    """Return a message with the edit that follows from its remedy, unless it has one."""
    if diagnostic.edit is not None or not diagnostic.remedy:
        return diagnostic
    from ai8xtools.diagnostics.meant import edit_of  # only for messages

    return replace(diagnostic, edit=edit_of(diagnostic, sys.argv))


def _note_defect(exc: BaseException) -> None:
    """Add a defect to the file that AI8X_DEFECTS names: the tests fail for each."""
    file = os.environ.get("AI8X_DEFECTS")
    if file:
        with contextlib.suppress(OSError), open(file, "a", encoding="utf-8") as noted:
            noted.write(f"{type(exc).__name__}: {_text_of(exc)}\n")


_AGAIN = "Nothing was left half-written; run it again."
_USAGE = 2
DEBUG_REPORT = "--debug-report"


def _report_file(words: Sequence[str]) -> str | None:
    """Return the file that a command line names for the report; None if it names none."""
    return value_of(DEBUG_REPORT, words) or None


def value_of(option: str, words: Sequence[str], *, abbreviated: bool = False) -> str | None:
    """Return the value of an option on a command line that may be wrong; None without it."""
    for word, following in pairwise((*words, "")):
        name, equals, value = word.partition("=")
        if name == option or (abbreviated and len(name) > 3 and option.startswith(name)):
            return value if equals else following
    return None


def _text_of(exc: BaseException) -> str:
    """Return the message of an exception in one line; some exceptions fail to format it."""
    try:
        return line(str(exc))
    except ValueError:  # a number with too many digits
        return "(no text)"


def _place(name: str | None) -> Place | None:
    """Return the place of a file name, perhaps with line and column, or an option; None if there is
    neither."""
    if not name:
        return None
    if name.startswith("-"):
        return Place(option=name)
    inside = _INSIDE.fullmatch(name)
    if inside is None:
        return Place(file=name)
    return Place(inside[1], int(inside[2]), None if inside[3] is None else int(inside[3]))


_INSIDE = re.compile(r"(.+?):([1-9]\d{0,8})(?::([1-9]\d{0,8}))?", re.ASCII | re.DOTALL)


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
"""The place of errors without a file name: they come from an output stream."""


def _os_diagnostic(exc: OSError) -> Diagnostic:
    """Return the file and the system's answer, with a remedy for the usual causes."""
    place = _place(str(exc.filename)) if exc.filename is not None else None
    remedy = exc.remedy if isinstance(exc, ForeignFileError) else None
    if exc.errno == errno.ENOENT and isinstance(exc.filename, str):
        remedy = where_else(exc.filename)
    remedy = remedy or _OS_REMEDIES.get(exc.errno or 0)
    if exc.filename is None and exc.errno in _FULL:
        remedy = _OUTPUT_REMEDY
    return Diagnostic("E002", exc.strerror or str(exc), place, remedy)

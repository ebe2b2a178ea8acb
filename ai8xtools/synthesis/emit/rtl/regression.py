"""The list of all tests, to which each generated test adds itself once.

Source: docs/rtl.md, "Time-out and list of tests".
"""

from __future__ import annotations

import os
from collections.abc import Iterator
from pathlib import Path

from ai8xtools.checkpoint import atomic
from ai8xtools.diagnostics import Diagnostic, Place
from ai8xtools.reading import MIB, read_bytes
from ai8xtools.synthesis.emit.rtl.options import RtlOptions
from ai8xtools.synthesis.emit.rtl.timeout import queue_name
from ai8xtools.synthesis.program import Program
from ai8xtools.synthesis.summary import Summary

_TEST = "run_test"
_PERMISSIONS = 0o7777
_MOST_BYTES = 64 * MIB


def regression_line(program: Program, summary: Summary, options: RtlOptions) -> str:
    """Return the line of a test: its path and its queue."""
    parts = ("tests", options.top_level, options.project.name, _TEST)
    path = "/".join(part for part in parts if part is not None)
    return f"{path}:{queue_name(program, summary, options)}"


def list_problems(options: RtlOptions) -> Iterator[Diagnostic]:
    """Yield why the test could not be added to the list of tests."""
    if options.regression_folder is None:
        return
    folder = Path(options.regression_folder)
    test_list = folder / options.regression_list
    parent = Path(os.path.realpath(test_list)).parent  # it may be a link
    if not options.regression_folder:
        option, message = "--autogen", "the name of the folder is empty"
        remedy = "Name the folder of the list of tests, or leave out --autogen."
    elif not folder.is_dir():
        option = "--autogen"
        message = f"there is no folder {options.regression_folder!r} for the list of tests"
        remedy = "Create it, or leave out --autogen."
    elif test_list.exists() and not test_list.is_file():
        what = "a folder" if test_list.is_dir() else "a device or pipe"
        option, message = "--autogen_list", f"'{test_list}' is {what}, not a list of tests"
        remedy = "Choose another name."
    elif not os.access(parent, os.W_OK | os.X_OK):  # the list is replaced as a whole
        option, message = "--autogen", f"no list of tests can be written to the folder '{parent}'"
        remedy = "Change its permissions, or leave out --autogen."
    elif test_list.exists() and not os.access(test_list, os.R_OK | os.W_OK):
        option, message = "--autogen", f"the list of tests '{test_list}' cannot be written"
        remedy = "Change its permissions, or leave out --autogen."
    elif (reason := _unreadable(test_list)) is not None:
        option, message = "--autogen_list", f"'{test_list}' is not a list of tests: {reason}"
        remedy = "Choose another name."
    else:
        return
    yield Diagnostic("E096", message, Place(option=option), remedy)


def _unreadable(test_list: Path) -> str | None:
    """Return why a list of tests cannot be read; None if it can be, or does not exist."""
    try:
        content = _content(test_list)
    except OSError as exc:
        return exc.strerror or str(exc)
    return "it holds zero bytes" if b"\0" in content else None


def _content(test_list: Path) -> bytes:
    """Return what a list of tests holds; nothing if there is none."""
    return read_bytes(test_list, _MOST_BYTES) if os.path.lexists(test_list) else b""


def add_test(list_file: Path, line: str) -> bool:
    """Add a line to the list unless one of its lines contains it; return whether it was added.

    The line takes the place of one that has the same test in another queue. The list is replaced as
    a whole and keeps its permissions; processes that do this at the same time wait for each other.
    Raises OSError if it cannot be read or written.
    """
    target = Path(os.path.realpath(list_file))
    with atomic.alone_in(target.parent):
        exists = target.exists()
        lines = _content(target).splitlines()
        if any(line.encode() in existing for existing in lines):
            return False
        mode = target.stat().st_mode & _PERMISSIONS if exists else None
        content = b"".join(existing + b"\n" for existing in _with(lines, line.encode()))
        atomic.write_bytes(target, content)
        if mode is not None:
            target.chmod(mode)
    return True


def _with(lines: list[bytes], line: bytes) -> list[bytes]:
    """Return the lines with another one, where its test was or at the end."""
    test = line.rpartition(b":")[0]
    same = [existing.strip().rpartition(b":")[0] == test for existing in lines]
    place = same.index(True) if any(same) else len(lines)
    others = [existing for existing, dropped in zip(lines, same, strict=True) if not dropped]
    return [*others[:place], line, *others[place:]]

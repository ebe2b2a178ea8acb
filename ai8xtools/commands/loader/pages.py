"""Files beside a project that options ask for: the report and its twin as JSON, a description."""

from __future__ import annotations

import errno
import os
from pathlib import Path

from ai8xtools.commands.deliver import Folder
from ai8xtools.commands.loader.options import LoaderOptions, inputs
from ai8xtools.commands.outcome import is_foreign
from ai8xtools.diagnostics import DiagnosticError, Place, refused
from ai8xtools.diagnostics.options import excludes

_TWIN_HEAD = '{\n "version": 1,\n "tool": "ai8xize.py '
"""What the JSON beside a page begins with."""


def destination(options: LoaderOptions) -> Folder:
    """Return where the project goes, and the files beside it that options ask for."""
    output = options.output
    reports = () if output.report is None else report_files(output.report)
    beside = (
        *(("--report", str(path)) for path in reports),
        ("--write-config", output.configuration),
    )
    return Folder(options.folder, options.overwrite, tuple(inputs(options)), beside)


def report_files(report: str) -> tuple[Path, ...]:
    """Return the files of --report: the page and its JSON twin, or JSON alone if that is named."""
    page = Path(report)
    twin = page.with_suffix(".json")
    return (page,) if page == twin else (page, twin)


def check_report(options: LoaderOptions) -> None:
    """Refuse a report that could not be made or written."""
    report = options.output.report
    if report is None:
        return
    if options.output.check_only:
        raise DiagnosticError(excludes("--report", "--check-only"))
    if Path(report).is_dir():
        raise IsADirectoryError(errno.EISDIR, os.strerror(errno.EISDIR), report)
    for path in report_files(report):
        if path.is_dir():
            raise IsADirectoryError(errno.EISDIR, os.strerror(errno.EISDIR), str(path))
    for twin in report_files(report)[1:]:  # its name is not the user's choice
        if is_foreign(twin, _TWIN_HEAD):
            text = f"{twin} is there and no report; it stays"
            raise refused("E060", text, Place(option="--report"), "Name another page.")


def write_pages(report: str, page: str, twin: str) -> None:
    """Write the page and its twin as JSON, or that alone if it is named."""
    # imported here: most runs write no report
    from ai8xtools.checkpoint import atomic
    from ai8xtools.checkpoint.pairs import write_pair

    first, *other = report_files(report)
    if not other:
        atomic.write_bytes(first, twin.encode("ascii"))
        return
    write_pair(first, page.encode("utf-8", "backslashreplace"), other[0], twin.encode("ascii"))

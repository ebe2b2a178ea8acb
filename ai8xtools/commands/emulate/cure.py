"""What differs in the C of a project that fails from what `ai8xize.py` would write again.

The project names the command that made it. If description and weights are still there and give the
same answer file, what differs in a generated file is a change that somebody made.
"""

from __future__ import annotations

import re
import shlex
from collections.abc import Mapping, Sequence
from contextlib import chdir
from dataclasses import replace
from pathlib import Path

from ai8xtools.answer import FILE_NAME
from ai8xtools.commands.emulate.arguments import EmulateOptions
from ai8xtools.commands.emulate.emulate import emulate
from ai8xtools.commands.emulate.origin import command_of
from ai8xtools.diagnostics import (
    Diagnostic,
    DiagnosticError,
    Edit,
    Place,
    current,
    diagnostics_of,
    is_read_at_once,
    print_diagnostics,
    takes_json,
)
from ai8xtools.diagnostics.errors import ToolError
from ai8xtools.diagnostics.outcome import unheard
from ai8xtools.reading import source_text

Files = Mapping[str, str | bytes]
_GENERATED = re.compile("^.*@generated.*$", re.MULTILINE)


def emulate_or_cure(options: EmulateOptions) -> int:
    """Run what the options name; tell programs why it fails, and add the cure if there is one."""
    try:
        status = emulate(options)
    except ToolError as exc:
        if options.project is None or not is_read_at_once():
            raise
        first, *others = diagnostics_of(exc)
        raise DiagnosticError((_with(first, _edit(Path(options.project))), *others)) from None
    if status and options.project is not None and is_read_at_once():
        edit = _edit(Path(options.project))
        reason = current().facts["reason"] or "FAIL"
        failed = Diagnostic("E845", f"the project fails: {reason}", Place(file=options.project))
        if edit is not None or takes_json():
            print_diagnostics([_with(failed, edit)])
    return status


def _with(diagnostic: Diagnostic, edit: Edit | None) -> Diagnostic:
    """Return a message with the cure, if there is one."""
    if edit is None:
        return diagnostic
    remedy = " ".join(filter(None, (diagnostic.remedy, f"As ai8xize.py wrote it: {edit}")))
    return replace(diagnostic, edit=edit, remedy=remedy)


def _edit(project: Path) -> Edit | None:
    """Return the change that makes the first altered file as it was written."""
    command = command_of(project)
    files = {} if command is None else _again(command, project)
    for name in sorted(files, key=lambda name: (name.startswith("main"), name)):
        right, path = files[name], project / name
        if isinstance(right, bytes) or not path.is_file():
            continue
        found = source_text(path)
        if _GENERATED.sub("", found) != _GENERATED.sub("", right):
            return _difference(path, found, right)
    return None


def _again(command: str, project: Path) -> Files:
    """Return the files that a command would write, if they have the answer file of the project.

    Its paths count from the working directory, or from the folder that the project is in.
    """
    for folder in (Path.cwd(), project.resolve().parent):
        files = _written_in(command, folder)
        answer = project / FILE_NAME
        if files and (not answer.is_file() or answer.read_bytes() == files.get(FILE_NAME)):
            return files
    return {}


def _written_in(command: str, folder: Path) -> Files:
    from ai8xtools.commands.loader.arguments import parse  # needs the network loader
    from ai8xtools.commands.loader.create import files_of

    try:
        with chdir(folder), unheard():
            return files_of(parse(shlex.split(command)))
    except (SystemExit, DiagnosticError, ToolError, OSError, ValueError):
        return {}


def _difference(path: Path, found: str, right: str) -> Edit:
    """Return the lines of one text that are others in the other, as one block."""
    old, new = found.splitlines(keepends=True), right.splitlines(keepends=True)
    before = _same(old, new)
    behind = _same(old[before:][::-1], new[before:][::-1])
    place = Place(str(path), before + 1, 1)
    old, new = (part[before : len(part) - behind] for part in (old, new))
    return Edit(place, "".join(old), "".join(new), certain=False)


def _same(one: Sequence[str], other: Sequence[str]) -> int:
    """Return how many elements at the beginning are the same."""
    pairs = enumerate(zip(one, other, strict=False))
    return next((n for n, (a, b) in pairs if a != b), min(len(one), len(other)))

"""Files of a folder before they are written: no file may replace another."""

from __future__ import annotations

from collections.abc import Collection, Iterable
from pathlib import PurePosixPath
from typing import TypeVar

from ai8xtools.diagnostics import Diagnostic, DiagnosticError, Place

Content = TypeVar("Content")
"""Text or bytes of a file."""


def distinct(
    files: Iterable[tuple[str, Content]], reserved: Collection[str] = ()
) -> dict[str, Content]:
    """Return files by path in their folder; `reserved` are paths that are already in use.

    Raises DiagnosticError (E072) if two files have the same path, or if one has that of a folder in
    which another stands: written to a disk, one of them would be lost.
    """
    contents: dict[str, Content] = {}
    clashes: dict[str, None] = {}
    for path, content in files:
        if path in contents or path in reserved:
            clashes[path] = None
        contents[path] = content
    folders = {str(parent) for path in contents for parent in PurePosixPath(path).parents}
    clashes |= dict.fromkeys(path for path in contents if path in folders)
    if clashes:
        raise DiagnosticError([_clash(path) for path in clashes])
    return contents


def _clash(path: str) -> Diagnostic:
    return Diagnostic(
        "E072",
        f"file name {path!r} is that of another generated file",
        Place(file=path),
        "Give every file its own name.",
    )

"""Folders that tools write: checked before any work, then written at once."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from pathlib import Path

from ai8xtools.commands.same_files import refuse_overwriting
from ai8xtools.diagnostics import suggest
from ai8xtools.values import frozen
from ai8xtools.writing.folder import check_folder, write_project


@frozen
class Folder:
    """The folder of a project, and the files that writing it must not overwrite.

    `inputs` are files that the tool reads, `beside` others that it writes, each with the option
    that names it; None stands for what is not given.
    """

    path: Path
    overwrite: bool
    inputs: tuple[str | None, ...] = ()
    beside: tuple[tuple[str, str | None], ...] = ()

    def check(self) -> None:
        """Raise for a folder that could not be written: DiagnosticError E060 and E061."""
        check_folder(self.path, overwrite=self.overwrite)

    def check_beside(self) -> None:
        """Raise for files beside it that could not be written: InputError E704."""
        refuse_overwriting(self.beside, self.inputs)


def deliver(
    files: Mapping[str, str | bytes],
    folder: Folder,
    executables: Iterable[str] = (),
    empty_folders: Iterable[str] = (),
) -> str:
    """Write the files of a project, completely or not at all; return what was written.

    Raises InputError E704 if one of them would take the place of a file that is read or written
    beside it, and what `write_project` raises.
    """
    own = (str(folder.path / name) for name in files)
    refuse_overwriting((*folder.beside, *((path, path) for path in own)), folder.inputs)
    write_project(
        files,
        folder.path,
        overwrite=folder.overwrite,
        executables=tuple(executables),
        empty_folders=tuple(empty_folders),
    )
    if "Makefile" in files:
        suggest("make", "-C", folder.path)
    return f"{len(files)} files to {folder.path}"

"""Names of a project without the accelerator, and the log among its files."""

from __future__ import annotations

from collections.abc import Iterator, Mapping

from ai8xtools.diagnostics import Diagnostic, DiagnosticError
from ai8xtools.synthesis.emit.options import ProjectOptions, is_plain, name_taken, not_plain
from ai8xtools.writing.manifest import MANIFEST
from ai8xtools.writing.packages import unsuitable
from ai8xtools.writing.symbols import complaints


def complaints_of_names(
    options: ProjectOptions, library: str | None = None
) -> Iterator[Diagnostic]:
    """Yield what is wrong with names of a project, and why it cannot be a package.

    `library` is the folder of a user's library that it calls.
    """
    for option, name in (("--prefix", options.name), ("--log-filename", options.log_filename)):
        if name is not None and not is_plain(name):
            yield not_plain(option, name)
    yield from complaints(options.symbol_prefix)
    outside = "--cmsis-nn" if library is not None else ""
    yield from unsuitable(options.build, options.name, options.symbol_prefix, library=outside)


def with_log(files: Mapping[str, str], name: str | None, text: str) -> dict[str, str]:
    """Return the files of a project and its log of this name; None: it has none.

    Raises DiagnosticError (E072) if another file has that name.
    """
    if name is None:
        return dict(files)
    if name.lower() in map(str.lower, (*files, MANIFEST)):
        raise DiagnosticError(name_taken("--log-filename", name))
    return {**files, name: text}

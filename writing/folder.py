"""Writing a project to disk: all of its files or none.

Source: docs/generated-project.md, "Files".
"""

from __future__ import annotations

import contextlib
import os
import shutil
import tempfile
from collections.abc import Collection, Iterator, Mapping
from pathlib import Path

from checkpoint.atomic import umask
from diagnostics import Diagnostic, DiagnosticError, Place
from writing.manifest import MANIFEST, manifest, stale_files

KEPT = frozenset({"project.mk"})  # the user's own settings: written once, never replaced
_LONGEST = 245  # of the name and the folder above it, as the vendor's file systems take it
_HASH_DIGITS = 32


def folder_name(name: str, parent: str) -> str:
    """Return the name of a project's folder in `parent`; a very long one is cut and hashed.

    Source: docs/generated-project.md, "Files"; docs/rtl.md, "Files".
    """
    surplus = len(name) + len(parent) - _LONGEST
    if surplus <= 0:
        return name
    from hashlib import md5  # rarely needed and slow to import

    kept = max(0, len(name) - surplus - _HASH_DIGITS)
    return f"{name[:kept]}-{md5(name.encode(), usedforsecurity=False).hexdigest()}"


def check_folder(folder: str | os.PathLike[str], *, overwrite: bool) -> None:
    """Raise DiagnosticError if the project cannot be written there.

    E060: it exists and must not be overwritten; E061: something else than a folder is in the way.
    """
    target = Path(folder)
    if target.is_dir():
        if not overwrite:
            raise _refusal(
                "E060", target, "the folder exists already", "Add --overwrite or another --prefix."
            )
        return
    for part in (target, *target.parents):
        if part.is_dir():
            return
        if os.path.lexists(part):
            raise _refusal("E061", part, "it is not a folder", "Choose another --test-dir.")


def write_project(
    files: Mapping[str, str | bytes],
    folder: str | os.PathLike[str],
    *,
    overwrite: bool = False,
    executables: Collection[str] = (),
    empty_folders: Collection[str] = (),
) -> None:
    """Write the files of a project (content by path relative to the folder).

    They are written to a temporary folder beside it first, which then becomes the project; in a
    folder that exists they replace the files of the same names, and those that were generated
    before, but no longer are, disappear unless they were edited. Other files and project.mk stay.
    If anything fails, Ctrl-C included, everything is as it was before. Files among `executables`
    are programs; `empty_folders` are made as well.

    Raises DiagnosticError as `check_folder` does, and OSError if the disk refuses.
    """
    check_folder(folder, overwrite=overwrite)
    target = Path(folder)
    contents = {
        name: content.encode() if isinstance(content, str) else content
        for name, content in files.items()
    }
    contents[MANIFEST] = manifest(contents, KEPT).encode()
    with _new_parents(target.parent), _staging(target) as staging:
        _fill(staging, contents)
        for name in executables:
            (staging / name).chmod(0o777 & ~umask())
        if target.is_dir():
            _replace(staging, target.resolve(), contents, empty_folders)
        else:
            for name in empty_folders:
                (staging / name).mkdir(exist_ok=True)
            staging.rename(target)


def _refusal(code: str, path: Path, message: str, remedy: str) -> DiagnosticError:
    return DiagnosticError(Diagnostic(code, message, Place(file=str(path)), remedy))


@contextlib.contextmanager
def _new_parents(parent: Path) -> Iterator[None]:
    """Create missing parent folders; remove them again if the block fails."""
    missing = [part for part in (parent, *parent.parents) if not part.exists()]
    parent.mkdir(parents=True, exist_ok=True)
    try:
        yield
    except BaseException:
        for part in missing:
            with contextlib.suppress(OSError):
                part.rmdir()
        raise


@contextlib.contextmanager
def _staging(target: Path) -> Iterator[Path]:
    """Create a temporary folder beside the target and remove what is left of it."""
    parent = target.resolve().parent
    try:
        staging = Path(tempfile.mkdtemp(prefix=f".{target.name[:100]}.", dir=parent))
    except OSError as exc:
        exc.filename = str(target)  # name the folder the user asked for
        raise
    try:
        staging.chmod(0o777 & ~umask())
        yield staging
    except OSError as exc:
        if exc.filename is None or str(exc.filename).startswith(str(staging)):
            exc.filename = str(target)
        raise
    finally:
        shutil.rmtree(staging, ignore_errors=True)


def _fill(staging: Path, contents: Mapping[str, bytes]) -> None:
    for parent in dict.fromkeys((staging / name).parent for name in contents):
        parent.mkdir(parents=True, exist_ok=True)
    for name, content in contents.items():
        (staging / name).write_bytes(content)


def _replace(
    staging: Path, target: Path, files: Collection[str], empty_folders: Collection[str]
) -> None:
    """Move new files into an existing folder and stale ones away; undo it all if that fails."""
    for name in files:
        if (target / name).is_dir():
            raise _refusal("E061", target / name, "it is a folder, not a file", "Move it away.")
    backup = staging / ".replaced"
    stale = stale_files(target, {*files, *KEPT})
    moved: list[tuple[Path, Path | None]] = []
    created: list[Path] = []
    try:
        for name in empty_folders:
            _make_folders(target / name, created)
        for name in files:
            path = target / name
            if name in KEPT and path.exists():
                continue
            _make_folders(path.parent, created)
            saved = None
            if os.path.lexists(path):
                saved = backup / name
                saved.parent.mkdir(parents=True, exist_ok=True)
            moved.append((path, saved))
            if saved is not None:
                os.replace(path, saved)
            os.replace(staging / name, path)
        for name in stale:
            saved = backup / name
            saved.parent.mkdir(parents=True, exist_ok=True)
            moved.append((target / name, saved))
            os.replace(target / name, saved)
    except BaseException:
        _restore(moved, created)
        raise


def _make_folders(folder: Path, created: list[Path]) -> None:
    missing = [part for part in (folder, *folder.parents) if not part.exists()]
    for part in reversed(missing):
        part.mkdir()
        created.append(part)


def _restore(moved: list[tuple[Path, Path | None]], created: list[Path]) -> None:
    for path, saved in reversed(moved):
        with contextlib.suppress(OSError):
            if saved is None:
                path.unlink()
            elif os.path.lexists(saved):
                os.replace(saved, path)
    for folder in reversed(created):
        with contextlib.suppress(OSError):
            folder.rmdir()

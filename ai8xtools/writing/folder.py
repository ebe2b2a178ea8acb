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

from ai8xtools.checkpoint.atomic import (
    alone_in,
    make_folders,
    remove_litter,
    sync,
    temporary_prefix,
    umask,
)
from ai8xtools.diagnostics import DiagnosticError, Place, refused
from ai8xtools.reading import system
from ai8xtools.writing.exchange import can_exchange, carry_over, exchange, link
from ai8xtools.writing.manifest import MANIFEST, listed_files, manifest, stale_files

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
            raise _refusal("E061", part, "it is not a folder", "Choose another place.")


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
    before, but no longer are, disappear unless they were edited. Other files and project.mk stay;
    a file of the user that would be replaced is refused (E063) if the folder lists its own.
    If anything fails, Ctrl-C included, everything is as it was before; where the system can let
    two folders change places, even a run that is killed leaves the old project or the new one.
    Files among `executables` are programs; `empty_folders` are made as well.

    Raises DiagnosticError as `check_folder` does, and OSError if the disk refuses.
    """
    check_folder(folder, overwrite=overwrite)
    target = Path(folder)
    contents = {
        name: content.encode() if isinstance(content, str) else content
        for name, content in files.items()
    }
    contents[MANIFEST] = manifest(contents, KEPT).encode()
    before = _state(target)
    with _new_parents(target), _staging(target) as staging:
        _fill(staging, contents, executables)
        if before is None:
            _make_all(staging, empty_folders)
            _sync_folders(staging)
            _appear(staging, target)
        elif not _holds_all(target, contents, empty_folders):
            _take_place(staging, Path(os.path.realpath(target)), contents, empty_folders, before)


def _state(folder: Path) -> tuple[int, int, int] | None:
    """Return a state that changes when another run writes the folder; None without a folder."""
    try:
        whole = folder.stat()
    except OSError:
        return None
    try:
        listed = (folder / MANIFEST).stat()
    except OSError:
        return whole.st_dev, whole.st_ino, 0
    return whole.st_dev, whole.st_ino, listed.st_mtime_ns


def _appear(staging: Path, target: Path) -> None:
    """Give a new folder its name, unless another run was quicker."""
    try:
        staging.rename(target)
    except OSError:
        if target.is_dir():
            raise _written_meanwhile(target) from None
        raise
    sync(target.parent)


def _take_place(
    staging: Path,
    target: Path,
    contents: Mapping[str, bytes],
    empty_folders: Collection[str],
    before: tuple[int, int, int],
) -> None:
    """Let the new files replace those of a folder: all at once, where the system can do that."""
    listed = listed_files(target)
    for name, content in contents.items():
        path = target / name
        if path.is_dir():
            raise _refusal("E061", path, "it is a folder, not a file", "Move it away.")
        others = listed and name not in {*listed, *KEPT, MANIFEST} and os.path.lexists(path)
        if others and not _is(path, content):
            raise _refusal("E063", path, "it was not generated, and would be replaced",
                           "Move it away, or choose another --prefix.")  # fmt: skip
    stale = stale_files(target, {*contents, *KEPT})
    if not can_exchange(staging):
        _replace(staging, target, contents, empty_folders, stale)
        return
    carry_over(target, staging, {*contents, *stale} - KEPT)
    _make_all(staging, empty_folders)
    _sync_folders(staging)
    with alone_in(target.parent):
        if _state(target) != before:
            raise _written_meanwhile(target)
        exchange(staging, target)
    sync(target.parent)


def _written_meanwhile(target: Path) -> DiagnosticError:
    return _refusal(
        "E062", target, "another run has written the folder meanwhile; it is as that run left it",
        "Run this one again, or choose another --prefix.",
    )  # fmt: skip


def _make_all(folder: Path, names: Collection[str]) -> None:
    for name in names:
        (folder / name).mkdir(parents=True, exist_ok=True)


def _holds_all(target: Path, contents: Mapping[str, bytes], empty_folders: Collection[str]) -> bool:
    """Whether a folder is already what it is to become: then it is left alone."""
    try:
        same = all(
            (name in KEPT and (target / name).is_file()) or _is(target / name, content)
            for name, content in contents.items()
        )
    except OSError:
        return False
    stale = stale_files(target, {*contents, *KEPT})
    return same and not stale and all((target / name).is_dir() for name in empty_folders)


def _is(path: Path, content: bytes) -> bool:
    """Whether a path is a file with this content; nothing else is opened."""
    same_size = path.is_file() and path.stat().st_size == len(content)
    return same_size and path.read_bytes() == content


def _refusal(code: str, path: Path, message: str, remedy: str) -> DiagnosticError:
    return refused(code, message, Place(file=str(path)), remedy)


@contextlib.contextmanager
def _new_parents(target: Path) -> Iterator[None]:
    """Create missing parent folders; remove them again if the block fails."""
    folders: list[Path] = []
    try:
        make_folders(target.parent, folders)
        yield
    except BaseException as exc:
        if isinstance(exc, OSError) and exc.filename is None:
            exc.filename = str(target)
        for part in reversed(folders):
            with contextlib.suppress(OSError):
                part.rmdir()
        raise


@contextlib.contextmanager
def _staging(target: Path) -> Iterator[Path]:
    """Create a temporary folder beside the target and remove what is left of it."""
    parent = Path(os.path.realpath(target)).parent
    try:
        with alone_in(parent):
            remove_litter(parent, target.name)
            prefix = temporary_prefix(target.name)
            staging = Path(tempfile.mkdtemp(prefix=prefix, dir=parent))
            release = system.hold(staging)
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
        release()
        shutil.rmtree(staging, ignore_errors=True)


def _fill(staging: Path, contents: Mapping[str, bytes], executables: Collection[str]) -> None:
    for parent in dict.fromkeys((staging / name).parent for name in contents):
        parent.mkdir(parents=True, exist_ok=True)
    for name, content in contents.items():
        mode = 0o777 if name in executables else 0o666
        handle = os.open(staging / name, system.CREATE, mode)
        with os.fdopen(handle, "wb") as file:
            file.write(content)
            file.flush()
            os.fsync(file.fileno())


def _sync_folders(staging: Path) -> None:
    for folder, folders, files in os.walk(staging):
        if folders or files:
            sync(folder)


def _replace(
    staging: Path,
    target: Path,
    files: Collection[str],
    empty_folders: Collection[str],
    stale: Collection[str],
) -> None:
    """Move new files into an existing folder and stale ones away; undo it all if that fails.

    At every moment each file is old or new, and in the end all are on the disk.
    """
    backup = staging / ".replaced"
    moved: list[tuple[Path, Path | None]] = []
    created: list[Path] = []
    try:
        for name in empty_folders:
            make_folders(target / name, created)
        for name in files:
            path = target / name
            if name in KEPT and path.exists():
                continue
            make_folders(path.parent, created)
            saved = None
            if os.path.lexists(path):
                saved = backup / name
                saved.parent.mkdir(parents=True, exist_ok=True)
            moved.append((path, saved))
            if saved is not None:
                link(path, saved)
            os.replace(staging / name, path)
        for name in stale:
            saved = backup / name
            saved.parent.mkdir(parents=True, exist_ok=True)
            moved.append((target / name, saved))
            link(target / name, saved)
            (target / name).unlink()
        for folder in dict.fromkeys(path.parent for path, _ in moved):
            sync(folder)
    except BaseException:
        _restore(moved, created)
        raise


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

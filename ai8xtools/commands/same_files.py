"""No output takes the place of an input, nor of another output."""

from __future__ import annotations

import os
from collections.abc import Iterable
from pathlib import Path

from ai8xtools.diagnostics.errors import InputError
from ai8xtools.writing.manifest import listed_files

_Identity = tuple[int, int] | str
_OF_PROJECTS = frozenset({".c", ".h", ".s", ".S", ".mk", ".ld", ".yaml", ".py", ".npy", ".npz"})
_MAKEFILES = frozenset({"Makefile", "makefile", "GNUmakefile"})


def refuse_overwriting(
    outputs: Iterable[tuple[str, str | None]], inputs: Iterable[str | os.PathLike[str] | None]
) -> None:
    """Raise InputError (E704) if an output is the file of an input or of another output.

    `outputs` are pairs of what names the file (an option, or the file itself) and the file; None
    stands for what is not given. Links are followed.
    """
    read = {_identity(os.fspath(path)): os.fspath(path) for path in inputs if path is not None}
    written: dict[_Identity, tuple[str, str]] = {}
    for option, path in outputs:
        if path is None:
            continue
        identity = _identity(path)
        if identity in read:
            lost = f"input and output are the same file; {read[identity]} would be lost"
            raise _refused(lost, option)
        if identity in written:
            other, name = written[identity]
            case = "" if name == path else f" ({name}), where case tells no names apart"
            raise _refused(f"{path} is what {other} writes, too{case}", option)
        written[identity] = option, path


def refuse_project_files(
    outputs: Iterable[tuple[str, str | os.PathLike[str] | None]], folder: str | None
) -> None:
    """Raise InputError (E704) if an output is a source or a generated file of a project."""
    if folder is None:
        return
    root = Path(os.path.realpath(folder))
    generated = set(listed_files(root))
    for option, path in outputs:
        if path is None or not os.path.exists(path):  # noqa: PTH110 - a name may be anything
            continue
        real = Path(os.path.realpath(path))
        if not real.is_relative_to(root):
            continue
        name = real.relative_to(root).as_posix()
        if name in generated or real.suffix in _OF_PROJECTS or real.name in _MAKEFILES:
            raise _refused(f"{path} is a file of the project; it would be lost", option)


def _identity(path: str) -> _Identity:
    """Return what two names of the same file share."""
    try:
        status = os.stat(path)  # noqa: PTH116 - a name may be anything
    except (OSError, ValueError):
        # two files that do not exist yet would be one where the system knows no case
        return os.path.realpath(path).casefold() if "\0" not in path else path
    return status.st_dev, status.st_ino


def _refused(message: str, place: str) -> InputError:
    return InputError("E704", message, place, "Name another output.")

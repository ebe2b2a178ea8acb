"""The user's copy of Arm's library: the files that a project uses, and whether they exist."""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator
from pathlib import Path

from ai8xtools.diagnostics import Diagnostic, DiagnosticError, Place
from ai8xtools.reading import real_path
from ai8xtools.software.emit.interface import Library

_OPTION = Place(option="--cmsis-nn")
_PLACES = ("CMSIS/NN", "NN", "")
"""Places of the library in a copy of CMSIS 5: from its root, its folder CMSIS, or the library."""
_BESIDE = ("DSP/Include", "DSP/PrivateInclude", "Core/Include")
_OLD, _NEW = "arm_convolve_HWC_q7_basic.c", "arm_convolve_s8.c"
_HEADER = "arm_nnfunctions.h"
_FOR_MAKE = re.compile(r"[^\s#$%:;\\*?\[\]()'\"]+")
_REMEDY = "Give the folder of CMSIS 5.9.0 or older (github.com/ARM-software/CMSIS_5)."


def read_library(folder: str, names: Iterable[str]) -> Library:
    """Return what a project takes of a copy of CMSIS 5: its files with these `names`.

    Raises DiagnosticError: no folder or no library (E940), a newer one, which does not have the
    functions (E941), files are missing (E940), a name that make cannot take (E943).
    """
    base = real_path(folder)
    if not base.is_dir():
        raise _refusal("E940", f"{folder} is not a folder", _REMEDY)
    if not _FOR_MAKE.fullmatch(str(base)):
        raise _refusal("E943", f"make cannot take a folder with this name: {base}",
                       "Use a path without blanks and special characters.")  # fmt: skip
    library = _library_of(base)
    if library is None:
        raise _refusal("E940", f"there is no CMSIS-NN in {base}", _REMEDY)
    base = base.parent if library == base else base  # what it includes stands beside it
    files = {path.name: path for path in _sources(library)}
    if _OLD not in files and _NEW in files:
        newer = f"{folder} is newer than CMSIS 5.9.0: it has {_NEW}, but no {_OLD} any more"
        raise _refusal("E941", newer, _REMEDY)
    needed = [*dict.fromkeys(f"{name}.c" for name in names)]
    missing = [name for name in needed if name not in files]
    if not (library / "Include" / _HEADER).is_file():
        missing.append(f"Include/{_HEADER}")
    if missing:
        partial = f"the copy of CMSIS-NN in {folder} is not complete, it lacks {', '.join(missing)}"
        raise _refusal("E940", partial, "Copy the whole folder CMSIS of the release.")
    return Library(
        str(base),
        tuple(path.relative_to(base).as_posix() for path in _includes(library)),
        tuple(files[name].relative_to(base).as_posix() for name in needed),
    )


def _library_of(base: Path) -> Path | None:
    """Return the folder with Include and Source of the library."""
    folders = (base / place for place in _PLACES)
    return next((path for path in folders if (path / "Source").is_dir()), None)


def _sources(library: Path) -> Iterator[Path]:
    """Yield the C files of the library, which stand in folders by subject."""
    source = library / "Source"
    yield from sorted(source.glob("*.c"))
    yield from sorted(source.glob("*/*.c"))


def _includes(library: Path) -> Iterator[Path]:
    """Yield the folders with headers: those of the library, and of what it includes."""
    yield library / "Include"
    others = (library.parent / name for name in _BESIDE)
    yield from (path for path in others if path.is_dir())


def _refusal(code: str, message: str, remedy: str) -> DiagnosticError:
    return DiagnosticError(Diagnostic(code, message, _OPTION, remedy))

"""Errors inside the files of models and data sets, with the line of the file."""

from __future__ import annotations

import importlib.util
import sys
import traceback
from collections.abc import Callable
from pathlib import Path
from typing import Any

from ai8xtools.diagnostics.errors import InputError, ToolError, reason_of
from ai8xtools.root import ROOT
from datasets.torchvision_access import torchvision

SOURCES = ROOT
KINDS = ("models", "datasets")
OWN = "model_of_"
"""What the names of modules begin with that are files of FILE:CLASS."""


def folders(kind: str) -> list[Path]:
    """Return the folders that are searched for `kind`; later ones win."""
    return list(dict.fromkeys([SOURCES / kind, Path.cwd() / kind]))


_OF_THE_VENDOR = {
    "utils": "`utils` belongs to the vendor's training tool: put that folder beside the folder of "
    "your file, or take one of the networks here, which do not need it (--model).",
    "datasets.utils": "`datasets.utils` belongs to the vendor's training tool; datasets/ here has "
    "other helpers (docs/datasets.md).",
    "distiller": "`distiller` belongs to the vendor's training tool: take the import out.",
    "torchvision": "Install it in the version that belongs to your torch: pip install torchvision",
}
"""Modules that files written for the vendor's tool import, and what to do about each."""


def ready_for(file: Path) -> None:
    """Prepare what a file is going to import: what lies beside its folder is found last, and
    torchvision must be known before its first use."""
    beside = str(file.resolve().parent.parent)
    if beside not in sys.path:
        sys.path.append(beside)
    if b"torchvision" in file.read_bytes() and importlib.util.find_spec("torchvision"):
        torchvision()


def remedy_of(exc: Exception, otherwise: str) -> str:
    """Return the remedy for a file that cannot be imported."""
    if isinstance(exc, ModuleNotFoundError) and exc.name:
        names = (exc.name, exc.name.partition(".")[0])
        return next((_OF_THE_VENDOR[n] for n in names if n in _OF_THE_VENDOR), otherwise)
    return otherwise


def place_of(exc: BaseException) -> str | None:
    """Return FILE:LINE of the innermost call in a file of models or data sets, or in FILE:CLASS;
    None without."""
    searched = {folder for kind in KINDS for folder in folders(kind)}
    place = None
    for frame, line in traceback.walk_tb(exc.__traceback__):
        file = frame.f_code.co_filename
        own = str(frame.f_globals.get("__name__", "")).startswith(OWN)
        if own or Path(file).parent in searched:
            place = f"{file}:{line}"
    return place


def definition(function: Callable[..., Any]) -> str | None:
    """Return FILE:LINE where a function (or the call of a class) begins; None when unknown."""
    code = getattr(getattr(function, "__init__", None), "__code__", None)
    code = getattr(function, "__code__", code)
    return None if code is None else f"{code.co_filename}:{code.co_firstlineno}"


def complains_itself(exc: Exception) -> bool:
    """Return whether an exception's own message is the best: errors of a tool or the system."""
    return isinstance(exc, OSError | MemoryError | ToolError)


def failure(exc: Exception, what: str, function: Callable[..., Any]) -> InputError:
    """Return the error for a failure in the code of a model or data set, called by `function`."""
    return InputError(
        "E662",
        f"{what} fails: {type(exc).__name__}: {first_line(exc)}",
        place_of(exc) or definition(function),
        "Correct the file.",
    )


def first_line(exc: BaseException) -> str:
    """Return the first line of an exception's message, or its type."""
    return reason_of(exc)

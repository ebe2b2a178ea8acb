"""What data sets raise when their files are missing or damaged."""

from __future__ import annotations

import importlib
from types import ModuleType

from ai8xtools.diagnostics.errors import InputError

ANEW = "Delete the file, so that it is downloaded again."
ANEW_FOLDER = "Delete the folder of the file, so that all of it is downloaded again."
REPLACE = "Replace the file with a fresh copy, or take it out of the folder."


class DatasetError(InputError):
    """A data set cannot be read: `place` is a file or folder."""


def library(name: str, purpose: str, place: str, packages: str = "") -> ModuleType:
    """Import a library that few need; DatasetError says how to install it, or `packages`."""
    try:
        return importlib.import_module(name)
    except ImportError as exc:
        raise DatasetError(
            "E624",
            f"the Python package {name!r}, which {purpose}, cannot be imported ({exc})",
            place,
            f"Install it: pip install {packages or name.partition('.')[0]}",
        ) from exc

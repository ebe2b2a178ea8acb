"""The file that `--debug-report` writes for developers, without any data of the user.

It names versions, options without their values, and what went wrong: the code and place in the
tool's own source. Names of files, texts of messages and data stay out.
"""

from __future__ import annotations

import contextlib
import json
import os
import platform
import sys
import traceback
from collections.abc import Iterable, Sequence
from importlib import metadata
from pathlib import Path
from typing import Any

from ai8xtools.diagnostics.diagnostic import Diagnostic
from ai8xtools.root import ROOT

VERSION = 1
_LIBRARIES = ("numpy", "torch", "torchvision", "PyYAML", "Jinja2", "rich", "unicorn", "ziglang")


def report(
    words: Sequence[str],
    status: int,
    diagnostics: Iterable[Diagnostic],
    exc: BaseException | None,
) -> dict[str, Any]:
    """Return the report about a run with the command line `words`."""
    return {
        "format": "debug report",
        "version": VERSION,
        "tool": Path(words[0]).name if words else "",
        "options": [_option(word) for word in words[1:] if word.startswith("-") and len(word) > 1],
        "python": platform.python_version(),
        "system": f"{platform.system()} {platform.machine()}",
        "libraries": {name: _version(name) for name in _LIBRARIES},
        "status": status,
        "diagnostics": [
            {
                "code": d.code,
                "severity": str(d.severity),
                "line": d.place.line if d.place else None,
                "column": d.place.column if d.place else None,
            }
            for d in diagnostics
        ],
        "exceptions": [] if exc is None else _exceptions(exc),
    }


def write(path: str, content: dict[str, Any]) -> None:
    """Write a report; a disk that refuses is no reason for another failure."""
    with contextlib.suppress(OSError):
        handle = os.open(path, os.O_WRONLY | os.O_CREAT | os.O_EXCL, 0o666)
        with os.fdopen(handle, "w", encoding="utf-8") as file:
            json.dump(content, file, indent=2)
            file.write("\n")


def _option(word: str) -> str:
    """Return an option without its value; a number is no secret, a text may be a name."""
    name = word.partition("=")[0]
    return name if name.lstrip("-").replace("-", "").replace("_", "").isalnum() else "(a value)"


def _version(name: str) -> str | None:
    try:
        return metadata.version(name)
    except metadata.PackageNotFoundError:
        return None


def _exceptions(exc: BaseException) -> list[dict[str, Any]]:
    """Return the type of an exception and of its causes, with the places in the source."""
    exceptions: list[dict[str, Any]] = []
    current: BaseException | None = exc
    while current is not None and len(exceptions) < 5:
        frames = traceback.extract_tb(current.__traceback__)
        places = [f"{_inside(frame.filename)}:{frame.lineno} {frame.name}" for frame in frames]
        exceptions.append({"type": type(current).__name__, "at": places[-40:]})
        current = current.__cause__ or current.__context__
    return exceptions


def _inside(filename: str) -> str:
    """Return a file by its place in the tool or in a library; files of the user are not named."""
    path = Path(filename)
    if path.is_relative_to(ROOT) and ".venv" not in path.parts:
        return str(path.relative_to(ROOT))
    for folder in map(Path, sys.path):
        if "site-packages" in folder.parts and path.is_relative_to(folder):
            return str(path.relative_to(folder))
    return path.name if filename.startswith(sys.base_prefix) else "(elsewhere)"

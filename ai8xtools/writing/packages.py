"""Metadata of build systems around the sources of a library.

Source: docs/library.md, "Build systems".
"""

from __future__ import annotations

import json
from collections.abc import Callable, Mapping, Sequence

from ai8xtools.writing.templates import render

_VERSION = "1.0.0"
_PROGRAM = "main.c"


def package_files(systems: Sequence[str], name: str, files: Mapping[str, str]) -> dict[str, str]:
    """Return the files that build systems need for a library of this name."""
    sources = sorted(path for path in files if path.endswith(".c") and path != _PROGRAM)
    result: dict[str, str] = {}
    for system in systems:
        result |= SYSTEMS[system](name, sources)
    return result


def _cmake(name: str, sources: Sequence[str]) -> dict[str, str]:
    values = {"name": name, "version": _VERSION, "sources": sources}
    return {
        "CMakeLists.txt": render("build/CMakeLists.txt.j2", **values),
        f"{name}-config.cmake.in": render("build/config.cmake.in.j2", **values),
    }


def _platformio(name: str, sources: Sequence[str]) -> dict[str, str]:
    content = {
        "name": name,
        "version": _VERSION,
        "description": "A quantized neural network in C99",
        "keywords": ["neural network", "inference"],
        "frameworks": "*",
        "platforms": "*",
        "headers": f"{name}.h",
        "build": {
            "srcDir": ".",
            "includeDir": ".",
            "srcFilter": ["-<*>", *(f"+<{source}>" for source in sources)],
        },
    }
    return {"library.json": json.dumps(content, indent=2) + "\n"}


SYSTEMS: Mapping[str, Callable[[str, Sequence[str]], dict[str, str]]] = {
    "cmake": _cmake,
    "platformio": _platformio,
}
"""What there is, by its word."""

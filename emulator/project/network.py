"""The functions of a network in a tree of C files, whoever named them: which files define them.

Projects of 2020 load everything with one function.
Source: docs/generated-project.md, "Order of calls".
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from pathlib import Path

from emulator.errors import EmulatorError
from emulator.project.tree import ProjectTree
from reading import source_text
from values import frozen

_DEFINITION = r"^[A-Za-z_][\w \t*]*\b{}\s*\([^;{{]*\)\s*\{{"
_START = re.compile(
    _DEFINITION.format(r"(?P<prefix>\w*cnn\w*?)_(?:start|load|configure)"), re.MULTILINE
)
_PARTS = ("init", "load_weights", "load_bias", "configure", "start", "unload", "load", "enable")
_SAMPLE = re.compile(r"\b(?:SAMPLE_)?INPUT_\d+\b")
_HELPERS = ("memcpy32", "softmax_q17p14_q15", "load_kernels", "load_bias")


@frozen
class NetworkSources:
    """The C files that define a network's functions, whose names begin with `prefix`.

    `program` are files with a load_input() that loads the sample, and with check_output();
    `samples` and `results` the headers with the sample and its expected output.
    """

    prefix: str
    files: tuple[Path, ...]
    program: tuple[Path, ...]
    samples: Path | None
    results: Path | None


def network_sources(tree: ProjectTree) -> NetworkSources:
    """Find the network in a tree.

    Raises EmulatorError (E814): no file defines such functions, or several networks do.
    """
    texts = {path: source_text(path) for path in (*tree.sources, *tree.others)}
    named = {path: found for path, text in texts.items() if (found := _prefixes(text))}
    chosen = {path: found for path, found in named.items() if path in tree.sources} or named
    prefixes = sorted({prefix for found in chosen.values() for prefix in found})
    if not prefixes:
        raise EmulatorError(
            "E814",
            "no C file defines functions of a network, such as cnn_start() or cnn_load()",
            str(tree.root),
            "Name the folder that holds cnn.c.",
        )
    if len(prefixes) > 1:
        places = ", ".join(tree.shown(path) for path in chosen)
        raise EmulatorError(
            "E814",
            f"it holds {len(prefixes)} networks: {', '.join(prefixes)} in {places}",
            str(tree.root),
            "Leave out the others with --exclude FILE.",
        )
    prefix = prefixes[0]
    files = [path for path in chosen if _defines(texts[path], prefix)]
    program = [
        path
        for path in tree.sources
        if path not in files and _has(texts[path], "load_input") and _SAMPLE.search(texts[path])
    ]
    return NetworkSources(
        prefix,
        tuple(files),
        tuple(program),
        _header(tree, files, "sampledata.h"),
        _header(tree, files, "sampleoutput.h"),
    )


def _prefixes(text: str) -> set[str]:
    return {found["prefix"] for found in _START.finditer(text)}


def _defines(text: str, prefix: str) -> bool:
    return any(_has(text, name) for name in (*(f"{prefix}_{part}" for part in _PARTS), *_HELPERS))


def _has(text: str, name: str) -> bool:
    return re.search(_DEFINITION.format(re.escape(name)), text, re.MULTILINE) is not None


def _header(tree: ProjectTree, files: Sequence[Path], name: str) -> Path | None:
    """Return the header of a name that stands nearest to the network."""
    beside = [path.with_name(name) for path in files]
    folders = [folder / name for folder in tree.include]
    found = (path for path in (*beside, *folders, *tree.files(name)) if path.is_file())
    return next(found, None)

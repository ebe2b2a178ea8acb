"""The functions of a network in a tree of C files, whoever named them: which files define them.

Projects of 2020 load everything with one function.
Source: docs/generated-project.md, "Order of calls".
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from pathlib import Path

from ai8xtools.emulator.errors import EmulatorError
from ai8xtools.emulator.project.definitions import definitions
from ai8xtools.emulator.project.tree import ProjectTree
from ai8xtools.reading import source_text
from ai8xtools.values import frozen

_STARTS = ("_start", "_load", "_configure")
_PARTS = ("init", "load_weights", "load_bias", "configure", "start", "unload", "load", "enable")
_SAMPLE = re.compile(r"\b(?:\w*_)?INPUT_\d+\b")
_ALL = "_all_init"
_HELPERS = ("memcpy32", "softmax_q17p14_q15", "load_kernels", "load_bias")


@frozen
class NetworkSources:
    """The C files that define a network's functions, whose names begin with `prefix`.

    `program` are files with a load_input() that loads the sample, and with check_output();
    `samples` and `results` the headers with the sample and its expected output. `residents` are the
    prefixes of all networks that are in the accelerator together, which the function `loads_all`
    loads.
    """

    prefix: str
    files: tuple[Path, ...]
    program: tuple[Path, ...]
    samples: Path | None
    results: Path | None
    residents: tuple[str, ...] = ()
    loads_all: str = ""


def network_sources(tree: ProjectTree, *, residents: bool = False) -> NetworkSources:
    """Find the network in a tree; with `residents` also several that are loaded together, of which
    the first one is chosen, and all files of the program.

    Raises EmulatorError (E814): no file defines such functions, or several networks do.
    """
    defined: dict[Path, frozenset[str]] = {}
    with_sample = set()
    for path in (*tree.sources, *tree.others):
        text = source_text(path)
        defined[path] = definitions(text).functions
        if _SAMPLE.search(text):
            with_sample.add(path)
    named = {path: own for path, names in defined.items() if (own := _prefixes(names))}
    chosen = {path: own for path, own in named.items() if path in tree.sources} or named
    prefixes = sorted({prefix for own in chosen.values() for prefix in own})
    if not prefixes:
        raise EmulatorError(
            "E814",
            "no C file defines functions of a network, such as cnn_start() or cnn_load()",
            str(tree.root),
            "Name the folder that holds cnn.c.",
        )
    together = [name for names in defined.values() for name in names if name.endswith(_ALL)]
    if len(prefixes) > 1 and residents and len(together) == 1:
        return NetworkSources(
            prefixes[0], tree.sources, (), None, None, tuple(prefixes), together[0]
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
    files = [path for path in chosen if _is_part(defined[path], prefix)]
    program = [
        path
        for path in tree.sources
        if path not in files and "load_input" in defined[path] and path in with_sample
    ]
    return NetworkSources(
        prefix,
        tuple(files),
        tuple(program),
        _header(tree, files, "sampledata.h"),
        _header(tree, files, "sampleoutput.h"),
    )


def _prefixes(functions: frozenset[str]) -> set[str]:
    """Return what names such as cnn_start or my_cnn2_load begin with."""
    ends = ((name, end) for name in functions for end in _STARTS if name.endswith(end))
    return {name.removesuffix(end) for name, end in ends if "cnn" in name.removesuffix(end)}


def _is_part(functions: frozenset[str], prefix: str) -> bool:
    return not functions.isdisjoint((*(f"{prefix}_{part}" for part in _PARTS), *_HELPERS))


def _header(tree: ProjectTree, files: Sequence[Path], name: str) -> Path | None:
    """Return the header of a name that stands nearest to the network."""
    beside = [path.with_name(path.name.removesuffix("cnn.c") + name) for path in files
              if path.name.endswith("cnn.c")]  # fmt: skip
    beside += [path.with_name(name) for path in files]
    folders = [folder / name for folder in tree.include]
    candidates = (path for path in (*beside, *folders, *tree.files(name)) if path.is_file())
    return next(candidates, None)

"""What --device may name. A target is a folder of `commands` that declares a `Target`, and a line.

The folder owns its options (`arguments`), and its way from them to files; the engines are shared.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from functools import cache
from importlib import import_module

from ai8xtools.values import frozen

FOLDERS = ["chips", "software", "cmsis", "lowbit", "q15", "fixed"]
"""Of all targets; the first one is taken where --device names none of them."""


@frozen
class Target:
    """Values of --device that have a command line of their own in some tools.

    `names` are the values, `what` explains them in --help. `tools` are the tools that have it, each
    with the module that reads its command line, with `arguments()` and `parse(words)`, and the
    function that does what these options ask for and returns the
    exit status. `option` stands for --device, if there is one, and so do `models` in train.py.
    `elsewhere` is said where a tool does not have it.
    """

    names: tuple[str, ...]
    what: str
    tools: Mapping[str, tuple[str, str]]
    option: str | None = None
    models: tuple[str, ...] = ()
    elsewhere: str = ""


def targets(tool: str | None = None) -> tuple[Target, ...]:
    """Return the targets of a tool, or all, the chips first."""
    return tuple(one for one in _all((*FOLDERS,)) if tool is None or tool in one.tools)


@cache
def _all(folders: Sequence[str]) -> tuple[Target, ...]:
    found: list[Target] = [import_module(f"ai8xtools.commands.{name}").TARGET for name in folders]
    return tuple(found)


def elsewhere(name: str) -> str:
    """Return what is said of a name of --device that a tool does not have, "" for no target's."""
    known = (one.elsewhere for one in targets() if name.upper() in one.names)
    return next(known, "")


def choices(tool: str) -> str:
    """Return what --device of a tool may name, for --help."""
    return "; ".join(f"{' or '.join(one.names)}: {one.what}" for one in targets(tool))


def owners(tool: str, option: str) -> str:
    """Return the names of the targets of a tool that have an option: "MCU, CMSIS-NN or BITNET"."""
    names = [
        name
        for one in targets(tool)
        if import_module(one.tools[tool][0]).arguments().knows(option)
        for name in one.names
    ]
    return " or ".join(filter(None, (", ".join(names[:-1]), *names[-1:])))

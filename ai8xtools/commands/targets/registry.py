"""What --device may name. A target is a folder of `commands` that declares a `Target`, and a line.

The folder owns its options (`arguments`), and its way from them to files; the engines are shared.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from functools import cache
from importlib import import_module
from typing import Any

from ai8xtools.values import frozen

FOLDERS = ["chips", "software", "cmsis", "lowbit", "q15", "fixed"]
"""Of all targets; the first one is taken where --device names none of them."""
_COMMANDS = __name__.removesuffix(".targets.registry")


@frozen
class Target:
    """Values of --device that have a command line of their own in some tools.

    `names` are the values, `what` explains them in --help. `tools` are the tools that have it, each
    with the module that reads its command line (`arguments()` makes the parser, `parse(words)` the
    options) and the function that does what the options ask for and returns the exit status, both
    as named within `commands`: they are loaded when they are needed. `option` stands for --device,
    if there is one, and so do `models` in train.py. `elsewhere` is said where a tool does not have
    it. `fits` is the function that judges a network when a chip is asked for with --fits.
    """

    names: tuple[str, ...]
    what: str
    tools: Mapping[str, tuple[str, str]]
    option: str | None = None
    models: tuple[str, ...] = ()
    elsewhere: str = ""
    fits: str | None = None

    def parser(self, tool: str) -> Any:
        """Return the `Parser` of the command line that a tool has for this target."""
        return _module(self.tools[tool][0]).arguments()

    def run(self, tool: str, words: Sequence[str]) -> int:
        """Do what a command line says; return the exit status."""
        reading, doing = self.tools[tool]
        options = _module(reading).parse(words)
        status: int = _function(doing)(options)
        return status

    def judge(self) -> Any:
        """Return the function that says what a network takes of this target, see `fits`."""
        assert self.fits is not None
        return _function(self.fits)


def _function(name: str) -> Any:
    module, _, function = name.rpartition(".")
    return getattr(_module(module), function)


def _module(name: str) -> Any:
    return import_module(f"{_COMMANDS}.{name}")


def targets(tool: str | None = None) -> tuple[Target, ...]:
    """Return the targets of a tool, or all, the chips first."""
    return tuple(one for one in _all((*FOLDERS,)) if tool is None or tool in one.tools)


@cache
def _all(folders: Sequence[str]) -> tuple[Target, ...]:
    return tuple(_module(name).TARGET for name in folders)


def elsewhere(name: str) -> str:
    """Return what to say of a --device that a tool does not have; "" if no target has the name."""
    texts = (one.elsewhere for one in targets() if name.upper() in one.names)
    return next(texts, "")


def choices(tool: str) -> str:
    """Return what --device of a tool may name, for --help."""
    return "; ".join(f"{' or '.join(one.names)}: {one.what}" for one in targets(tool))


def owners(tool: str, option: str) -> str:
    """Return the names of the targets of a tool that have an option: "MCU, CMSIS-NN or BITNET"."""
    matches = (one for one in targets(tool) if one.parser(tool).knows(option))
    names = [name for one in matches for name in one.names]
    return " or ".join(filter(None, (", ".join(names[:-1]), *names[-1:])))

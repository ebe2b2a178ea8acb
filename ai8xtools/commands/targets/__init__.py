"""What --device may name: from a command line to the target, and to what that does."""

from __future__ import annotations

from collections.abc import Sequence
from importlib import import_module

from ai8xtools.commands.targets.arguments import select
from ai8xtools.commands.targets.registry import Target, choices, elsewhere, owners, targets

__all__ = ["Target", "choices", "elsewhere", "main", "owners", "targets"]


def main(tool: str, words: Sequence[str]) -> int:
    """Do what the command line of a tool says; return the exit status."""
    target = select(tool, words)
    reading, doing = target.tools[tool]
    options = import_module(reading).parse(words)
    module, _, function = doing.rpartition(".")
    status: int = getattr(import_module(module), function)(options)
    return status

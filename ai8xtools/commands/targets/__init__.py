"""What --device may name: from a command line to the target, and to what that does."""

from __future__ import annotations

from collections.abc import Sequence

from ai8xtools.commands.targets.arguments import last_device, select
from ai8xtools.commands.targets.registry import Target, choices, elsewhere, owners, targets

__all__ = ["Target", "choices", "elsewhere", "main", "owners", "targets"]


def main(tool: str, words: Sequence[str]) -> int:
    """Do what the command line of a tool says; return the exit status."""
    words = last_device(words)
    return select(tool, words).run(tool, words)

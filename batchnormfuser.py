#!/usr/bin/env python3
"""Fold the batch normalization of a checkpoint into the weights and biases before it."""

from __future__ import annotations

import ai8xtools.interrupts  # noqa: F401 - before all else

# isort: split

import sys
from collections.abc import Sequence

from ai8xtools.diagnostics import run


def main(arguments: Sequence[str] | None = None) -> None:
    """Do what the command line says."""
    # inside, so that `run` reports Ctrl-C meanwhile
    from ai8xtools.commands.fuser.arguments import parse
    from ai8xtools.commands.fuser.fuse import fuse

    fuse(parse(arguments))


if __name__ == "__main__":
    sys.exit(run(main))

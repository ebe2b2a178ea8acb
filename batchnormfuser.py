#!/usr/bin/env python3
"""Fold the batch normalization of a checkpoint into the weights and biases before it."""

from __future__ import annotations

import sys
from collections.abc import Sequence

from diagnostics import run


def main(arguments: Sequence[str] | None = None) -> None:
    """Do what the command line says."""
    from commands.fuser import fuser  # inside, so that `run` reports Ctrl-C meanwhile

    fuser.main(arguments)


if __name__ == "__main__":
    sys.exit(run(main))

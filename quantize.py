#!/usr/bin/env python3
"""Quantize a trained checkpoint: integer weights and biases, and an output shift for each layer."""

from __future__ import annotations

import ai8xtools.interrupts  # noqa: F401 - before all else

# isort: split

import sys
from collections.abc import Sequence

from ai8xtools.diagnostics import run


def main(arguments: Sequence[str] | None = None) -> int:
    """Do what the command line says."""
    from ai8xtools.commands import targets  # inside, so that `run` reports Ctrl-C meanwhile

    return targets.main("quantize.py", sys.argv[1:] if arguments is None else arguments)


if __name__ == "__main__":
    sys.exit(run(main))

#!/usr/bin/env python3
"""Quantize a trained checkpoint: integer weights and biases, and an output shift for each layer."""

from __future__ import annotations

import interrupts  # noqa: F401 - before all else

# isort: split

import sys
from collections.abc import Sequence

from diagnostics import run


def main(arguments: Sequence[str] | None = None) -> None:
    """Do what the command line says."""
    # inside, so that `run` reports Ctrl-C meanwhile
    from commands.quantize.arguments import parse
    from commands.quantize.quantize import quantize

    quantize(parse(arguments))


if __name__ == "__main__":
    sys.exit(run(main))

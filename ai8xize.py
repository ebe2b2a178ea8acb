#!/usr/bin/env python3
"""Turn a network description and a quantized checkpoint into a C project for the accelerator."""

from __future__ import annotations

import interrupts  # noqa: F401 - before all else

# isort: split

import gc
import os
import sys
from itertools import pairwise

from diagnostics import leave, run

# One thread is fastest for networks of this size and keeps the memory of the BLAS library small.
os.environ.setdefault("OPENBLAS_NUM_THREADS", "1")


def main() -> int:
    """Do what the command line says; return the exit status."""
    if "BITNET" in " ".join(sys.argv).upper():
        from commands.lowbit.arguments import is_lowbit
        from commands.lowbit.arguments import parse as parse_lowbit

        if is_lowbit(sys.argv[1:]):
            from commands.lowbit.create import create_lowbit

            return create_lowbit(parse_lowbit(sys.argv[1:], json=wants_json(sys.argv)))
    from commands.loader.arguments import parse

    options = parse(json=wants_json(sys.argv))
    if options.debug:
        os.environ["AI8X_TRACEBACK"] = "1"
    if options.software is not None and options.output.fits is None:
        from commands.software.create import create_software  # needs no stage of the accelerator

        return create_software(options, options.software)
    from commands.loader.create import create_project

    return create_project(options)


def wants_json(words: list[str]) -> bool:
    """Whether messages go to an editor, even if the command line turns out to be wrong."""
    return "--diagnostics=json" in words or ("--diagnostics", "json") in pairwise(words)


if __name__ == "__main__":
    # A run makes few cycles of objects: searching for them costs time and finds nothing.
    gc.set_threshold(100_000)
    leave(run(main, as_json=wants_json(sys.argv)))

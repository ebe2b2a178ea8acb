#!/usr/bin/env python3
"""Turn a network description and a quantized checkpoint into a C project for the accelerator."""

from __future__ import annotations

import ai8xtools.interrupts  # noqa: F401 - before all else

# isort: split

import gc
import os
import sys

from ai8xtools.commands import targets
from ai8xtools.diagnostics import leave, run

# One thread is fastest for networks of this size and keeps the memory of the BLAS library small.
os.environ.setdefault("OPENBLAS_NUM_THREADS", "1")


def main() -> int:
    """Do what the command line says; return the exit status."""
    return targets.main("ai8xize.py", sys.argv[1:])


if __name__ == "__main__":
    # A run makes few cycles of objects: searching for them costs time and finds nothing.
    gc.set_threshold(100_000)
    leave(run(main))

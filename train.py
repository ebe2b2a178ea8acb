#!/usr/bin/env python3
"""Train and evaluate networks for the MAX78000 and MAX78002; see --help."""

from __future__ import annotations

import ai8xtools.interrupts  # noqa: F401 - before all else

# isort: split

import sys

from ai8xtools.diagnostics import run


def main() -> int:
    """Do what the command line says."""
    from ai8xtools.commands import targets  # inside, so that `run` reports Ctrl-C meanwhile

    return targets.main("train.py", sys.argv[1:])


if __name__ == "__main__":
    sys.exit(run(main))

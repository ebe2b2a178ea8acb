#!/usr/bin/env python3
"""Run the firmware of a generated project on an emulated chip, without a board."""

from __future__ import annotations

import interrupts  # noqa: F401 - before all else

# isort: split

import sys

from diagnostics import run


def main() -> int:
    """Do what the command line says; return the exit status."""
    # inside, so that `run` reports Ctrl-C meanwhile
    from commands.emulate.arguments import parse
    from commands.emulate.emulate import emulate

    return emulate(parse())


if __name__ == "__main__":
    sys.exit(run(main))

#!/usr/bin/env python3
"""Run the firmware of a generated project on an emulated chip, without a board."""

from __future__ import annotations

import ai8xtools.interrupts  # noqa: F401 - before all else

# isort: split

import sys

from ai8xtools.diagnostics import run


def main() -> int:
    """Do what the command line says; return the exit status."""
    # inside, so that `run` reports Ctrl-C meanwhile
    from ai8xtools.commands.emulate.arguments import parse
    from ai8xtools.commands.emulate.cure import emulate_or_cure

    return emulate_or_cure(parse())


if __name__ == "__main__":
    sys.exit(run(main))

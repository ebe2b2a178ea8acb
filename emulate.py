#!/usr/bin/env python3
"""Run the firmware of a generated project on an emulated chip, without a board."""

from __future__ import annotations

import sys

from diagnostics import run


def main() -> int:
    """Do what the command line says; return the exit status."""
    from commands.emulate import emulation  # inside, so that `run` reports Ctrl-C meanwhile

    return emulation.main()


if __name__ == "__main__":
    sys.exit(run(main))

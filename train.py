#!/usr/bin/env python3
"""Train and evaluate networks for the MAX78000 and MAX78002; see --help."""

import sys

from diagnostics import run
from training import options, session


def main() -> int:
    """Do what the command line says."""
    session.run(options.parse())
    return 0


if __name__ == "__main__":
    sys.exit(run(main))

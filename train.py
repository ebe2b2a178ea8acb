#!/usr/bin/env python3
"""Train and evaluate networks for the MAX78000 and MAX78002; see --help."""

from __future__ import annotations

import sys

from diagnostics import run


def main() -> int:
    """Do what the command line says."""
    from scripts.train_options import parse

    options = parse(sys.argv[1:])
    # PyTorch takes seconds to import: --help needs none of it, and `run` reports Ctrl-C meanwhile.
    from training import session

    session.run(options)
    return 0


if __name__ == "__main__":
    sys.exit(run(main))

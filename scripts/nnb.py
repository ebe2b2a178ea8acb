#!/usr/bin/env python3
"""Show, verify and take apart containers: nnb.py info|verify|extract|decrypt FILE."""

from __future__ import annotations

import sys
from pathlib import Path

sys.path.insert(0, str(Path(__file__).resolve().parent.parent))

import ai8xtools.interrupts  # noqa: F401 - before all else

# isort: split

from collections.abc import Sequence

from ai8xtools.diagnostics import run


def main(words: Sequence[str] | None = None) -> int:
    """Do what the command line says."""
    from ai8xtools.commands.container.arguments import parse
    from ai8xtools.commands.container.container import handle

    return handle(parse(words))


if __name__ == "__main__":
    sys.exit(run(main))

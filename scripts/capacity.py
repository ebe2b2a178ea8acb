#!/usr/bin/env python3
"""Size and bits of low-bit networks against accuracy: capacity.py --data DIR --out NAME."""

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
    from ai8xtools.commands.lowbit.arguments.drawing import parse_capacity
    from ai8xtools.commands.lowbit.capacity import draw

    return draw(parse_capacity(words))


if __name__ == "__main__":
    sys.exit(run(main))

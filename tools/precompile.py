#!/usr/bin/env python3
"""Compile modules and templates ahead, as pip does for what it installs.

Then the first run is as quick as later ones, and so are runs from a folder that cannot be written.
Nothing depends on it: what is missing or out of date is compiled when it is needed.
"""

from __future__ import annotations

import compileall
import sys
from pathlib import Path

ROOT = Path(__file__).resolve().parent.parent
sys.path.insert(0, str(ROOT))  # started as a script, Python looks beside this file only

from ai8xtools.diagnostics import run  # noqa: E402
from ai8xtools.writing.templates import compile_all  # noqa: E402


def main() -> int:
    """Compile every package of the repository; what cannot be written is left out."""
    compileall.compile_dir(str(ROOT), maxlevels=0, quiet=2)
    for package in sorted(ROOT.glob("*/__init__.py")):
        compileall.compile_dir(str(package.parent), quiet=2)
    compile_all()
    return 0


if __name__ == "__main__":
    sys.exit(run(main))

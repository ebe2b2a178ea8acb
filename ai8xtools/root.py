"""Where the package finds what stands beside it."""

from __future__ import annotations

from pathlib import Path

_PACKAGE = Path(__file__).resolve().parent
ROOT = _PACKAGE.parent if (_PACKAGE.parent / "ai8xize.py").is_file() else _PACKAGE / "installed"
"""The folder of ai8x.py, device/, models/, templates/ and their like.

This is the checkout, or the copy of it in an installed package.
"""

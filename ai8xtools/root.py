"""Where the package finds what stands beside it."""

from __future__ import annotations

from pathlib import Path

_PACKAGE = Path(__file__).resolve().parent
_INSTALLED = _PACKAGE / "installed"
IS_INSTALLED = _INSTALLED.is_dir()
"""Whether this is an installed package, not a checkout."""
ROOT = _INSTALLED if IS_INSTALLED else _PACKAGE.parent
"""The folder of ai8x.py, device/, models/, templates/ and their like.

This is the checkout, or the copy of it in an installed package.
"""

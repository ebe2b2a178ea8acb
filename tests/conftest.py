"""Fixtures shared by all tests."""

from __future__ import annotations

from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parent.parent
SHARED = ROOT.parent / "shared"


@pytest.fixture
def shared() -> Path:
    """The folder of known answers beside the repository; tests that need it skip without it."""
    if not SHARED.is_dir():
        pytest.skip("the folder of known answers (../shared) is not present")
    return SHARED

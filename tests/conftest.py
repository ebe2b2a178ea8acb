"""Fixtures shared by all tests."""

from __future__ import annotations

import os
from pathlib import Path

import pytest
from hypothesis import HealthCheck, settings

ROOT = Path(__file__).resolve().parent.parent
SHARED = ROOT.parent / "shared"

# The default tests draw the same examples every time, so that they fail for the change at hand and
# nothing else; `make properties` explores. What it finds becomes an explicit example.
# A slow machine fails no test.
PATIENT = (HealthCheck.too_slow,)
settings.register_profile(
    "same every time", derandomize=True, database=None, suppress_health_check=PATIENT
)
settings.register_profile("explore", derandomize=False, suppress_health_check=PATIENT)
settings.load_profile("explore" if os.environ.get("AI8X_PROPERTIES") else "same every time")


@pytest.fixture
def shared() -> Path:
    """The folder of known answers beside the repository; tests that need it skip without it."""
    if not SHARED.is_dir():
        pytest.skip("the folder of known answers (../shared) is not present")
    return SHARED

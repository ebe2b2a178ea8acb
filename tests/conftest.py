"""Fixtures shared by all tests."""

from __future__ import annotations

import os
import shutil
import tempfile
from collections.abc import Generator
from pathlib import Path

import pytest
from hypothesis import HealthCheck, settings

if "PYTEST_XDIST_WORKER" in os.environ:  # several processes: their threads would take turns
    os.environ.setdefault("OMP_NUM_THREADS", "1")

ROOT = Path(__file__).resolve().parent.parent
ENGINE = ROOT / "ai8xtools"
SHARED = ROOT.parent / "shared"


def room_folder(name: str) -> Path:
    """Return the folder of a room, which stands in the package or beside it."""
    return ENGINE / name if (ENGINE / name).is_dir() else ROOT / name


# The default tests draw the same examples every time, so that they fail for the change at hand and
# nothing else; `make properties` explores. What it finds becomes an explicit example.
# A slow machine fails no test.
PATIENT = (HealthCheck.too_slow,)
settings.register_profile(
    "same every time", derandomize=True, database=None, deadline=None, suppress_health_check=PATIENT
)
settings.register_profile(
    "explore", derandomize=False, deadline=None, suppress_health_check=PATIENT
)
settings.load_profile("explore" if os.environ.get("AI8X_PROPERTIES") else "same every time")


@pytest.fixture
def shared() -> Path:
    """The folder of known answers beside the repository; tests that need it skip without it."""
    if not SHARED.is_dir():
        pytest.skip("the folder of known answers (../shared) is not present")
    return SHARED


DEFECTS = pytest.StashKey[Path]()
"""Where the tools note each error that nobody foresaw (E009), in this process or another one."""


def pytest_configure(config: pytest.Config) -> None:
    """Let every tool that a test starts note its defects."""
    config.stash[DEFECTS] = Path(tempfile.mkdtemp(prefix="defects-"), "noted")
    os.environ["AI8X_DEFECTS"] = str(config.stash[DEFECTS])


def pytest_unconfigure(config: pytest.Config) -> None:
    """Remove the notes."""
    shutil.rmtree(config.stash[DEFECTS].parent, ignore_errors=True)


@pytest.hookimpl(wrapper=True)
def pytest_runtest_call(item: pytest.Item) -> Generator[None, object, object]:
    """Fail a test, or the set-up before it, that led to an E009; some mean to (`defect`)."""
    file = item.config.stash[DEFECTS]
    os.environ.pop("AI8X_TRACEBACK", None)  # --debug sets it, in a test before this one, too
    try:
        result = yield
    finally:
        noted = file.read_text() if file.exists() else ""
        file.unlink(missing_ok=True)
    if noted and item.get_closest_marker("defect") is None:
        pytest.fail(f"a tool ended with a defect [E009]: {noted}", pytrace=False)
    return result


def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    """Several processes begin with the slow tests, so that none works on one while others rest."""
    if "PYTEST_XDIST_WORKER" in os.environ:
        items.sort(key=lambda item: item.get_closest_marker("slow") is None)

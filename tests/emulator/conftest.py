"""Fixtures of the emulator's tests: a project written by hand, and variants of it."""

from __future__ import annotations

import shutil
from collections.abc import Callable
from pathlib import Path

import pytest

pytest.importorskip("unicorn", reason="the emulator needs unicorn (requirements-emulator.txt)")

PROJECT = Path(__file__).resolve().parent / "project"


@pytest.fixture(scope="session")
def project() -> Path:
    """A correct project: one layer on MAX78000."""
    return PROJECT


@pytest.fixture
def variant(tmp_path: Path) -> Callable[..., Path]:
    """Copy the project with texts replaced: variant(("old", "new"), ...)."""

    def build(*replacements: tuple[str, str]) -> Path:
        folder = tmp_path / "variant"
        shutil.copytree(PROJECT, folder)
        for old, new in replacements:
            files = [path for path in folder.iterdir() if old in path.read_text()]
            assert files, f"{old!r} is not in the project"
            for path in files:
                path.write_text(path.read_text().replace(old, new))
        return folder

    return build

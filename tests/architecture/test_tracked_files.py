"""What stands in the repository: files, and none of the set-up of one machine."""

from __future__ import annotations

import shutil
import subprocess

import pytest

from tests.conftest import ROOT


def test_no_link_is_tracked() -> None:
    """A link names a place of one machine; that of a virtual environment replaces the real one.

    Git deletes an ignored folder without a question where a merge brings a file of its name.
    """
    if shutil.which("git") is None or not (ROOT / ".git").exists():
        pytest.skip("not a checkout of git")
    listed = subprocess.run(
        ["git", "ls-files", "--stage"], cwd=ROOT, capture_output=True, text=True, check=True
    )
    files = [line.split("\t", 1) for line in listed.stdout.splitlines()]
    assert len(files) > 100
    assert [name for mode, name in files if mode.startswith("120000")] == []
    assert [name for _, name in files if name.split("/")[0] == ".venv"] == []

"""The version stands in one place, and every tool shows it."""

from __future__ import annotations

import re
import subprocess
import sys
import tomllib

import pytest

import ai8xtools
from tests.conftest import ROOT

TOOLS = ("train", "quantize", "batchnormfuser", "ai8xize", "emulate", "scripts/nnb")


@pytest.mark.parametrize("tool", TOOLS)
def test_every_tool_shows_the_version(tool: str) -> None:
    ended = subprocess.run(
        [sys.executable, ROOT / f"{tool}.py", "--version"], capture_output=True, text=True
    )
    assert (ended.returncode, ended.stderr) == (0, "")
    assert ended.stdout == f"{tool.removeprefix('scripts/')}.py {ai8xtools.__version__}\n"


def test_the_version_is_written_once() -> None:
    project = tomllib.loads((ROOT / "pyproject.toml").read_text())
    assert "version" not in project["project"] and "version" in project["project"]["dynamic"]
    assert project["tool"]["hatch"]["version"]["path"] == "ai8xtools/__init__.py"


def test_the_changelog_begins_with_this_version_and_nothing_unreleased_is_older() -> None:
    titles = re.findall(r"^## \[([^]]+)\]", (ROOT / "CHANGELOG.md").read_text(), re.MULTILINE)
    assert titles[:2] == ["Unreleased", ai8xtools.__version__]

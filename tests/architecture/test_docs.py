"""What the documentation names exists."""

from __future__ import annotations

import re
from pathlib import Path

import pytest

from tests.conftest import ROOT

PAGES = [*sorted(ROOT.glob("*.md")), *sorted((ROOT / "docs").glob("*.md"))]
TARGETS = set(re.findall(r"^([a-z-]+):", (ROOT / "Makefile").read_text(), re.MULTILINE))


def test_readme_names_the_two_commands() -> None:
    readme = (ROOT / "README.md").read_text()
    assert "make demo" in readme and "make test" in readme


@pytest.mark.parametrize("page", PAGES, ids=lambda page: page.name)
def test_relative_links_lead_somewhere(page: Path) -> None:
    links = re.findall(r"\]\((?!https?:)([^)#]+)", page.read_text())
    assert [link for link in links if not (page.parent / link).exists()] == []


@pytest.mark.parametrize("page", sorted(ROOT.glob("*.md")), ids=lambda page: page.name)
def test_named_make_targets_exist(page: Path) -> None:
    named = set(re.findall(r"(?:`|^ {4}|=\S+ )make ([a-z-]+)", page.read_text(), re.MULTILINE))
    assert named <= TARGETS


@pytest.mark.parametrize("page", PAGES, ids=lambda page: page.name)
def test_named_scripts_exist(page: Path) -> None:
    named = set(re.findall(r"\b(?:scripts|tools)/\w+\.\w+", page.read_text()))
    assert [script for script in named if not (ROOT / script).is_file()] == []


def test_every_make_target_is_explained() -> None:
    makefile = (ROOT / "Makefile").read_text()
    phony = re.findall(r"^\.PHONY: ([a-z -]+)$", makefile, re.MULTILINE)
    explained = set(re.findall(r"^([a-z-]+):.*## .+$", makefile, re.MULTILINE))
    assert set(phony[-1].split()) == explained

"""What the documentation names exists."""

from __future__ import annotations

import re
from pathlib import Path

import pytest

from tests.conftest import ROOT
from tools.manual.site import with_outside_links

MANUAL = sorted((ROOT / "docs").rglob("*.md"))
PAGES = [*sorted(ROOT.glob("*.md")), *MANUAL]
TARGETS = set(re.findall(r"^([a-z-]+):", (ROOT / "Makefile").read_text(), re.MULTILINE))


def test_readme_names_the_two_commands() -> None:
    readme = (ROOT / "README.md").read_text()
    assert "make demo" in readme and "make test" in readme


@pytest.mark.parametrize("page", PAGES, ids=lambda page: page.name)
def test_relative_links_lead_somewhere(page: Path) -> None:
    links = re.findall(r"\]\((?!https?:)([^)#]+)", page.read_text())
    assert [link for link in links if not (page.parent / link).exists()] == []


def anchors(page: Path) -> set[str]:
    """Return the anchors of a page's headings, as GitHub and mkdocs make them."""
    text = re.sub(r"^```.*?^```", "", page.read_text(), flags=re.MULTILINE | re.DOTALL)
    headings = re.findall(r"^#+ (.+)$", text, re.MULTILINE)
    return {re.sub(r"[^\w -]", "", heading).lower().replace(" ", "-") for heading in headings}


@pytest.mark.parametrize("page", PAGES, ids=lambda page: page.name)
def test_links_to_sections_lead_to_headings(page: Path) -> None:
    links = re.findall(r"\]\((?!https?:)([^)#]*\.md)?#([^)]+)\)", page.read_text())
    assert [
        (target, anchor)
        for target, anchor in links
        if anchor not in anchors((page.parent / target).resolve() if target else page)
    ] == []


def test_every_page_of_the_manual_is_in_the_navigation() -> None:
    listed = re.findall(r"^ +- ([\w/-]+\.md)$", (ROOT / "mkdocs.yml").read_text(), re.MULTILINE)
    assert sorted(listed) == [str(page.relative_to(ROOT / "docs")) for page in MANUAL]


def test_links_out_of_the_manual_are_for_readers_of_the_site_too() -> None:
    text = "[README](../README.md), [the schema](../networks/schema.json) and [here](a.md#b)"
    plain = "README (`README.md`), the schema (`networks/schema.json`) and [here](a.md#b)"
    assert with_outside_links(text, "docs", None) == plain
    there = with_outside_links(text, "docs", "https://example.org/x/")
    assert there.startswith("[README](https://example.org/x/blob/main/README.md), ")
    assert with_outside_links("[LICENSE](../../LICENSE)", "docs/hardware", None) == "`LICENSE`"


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

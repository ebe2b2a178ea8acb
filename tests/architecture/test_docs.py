"""What the documentation names exists."""

from __future__ import annotations

import re
import subprocess
from pathlib import Path
from types import SimpleNamespace

import pytest

from tests.conftest import ROOT
from tools.manual.site import on_post_build, on_post_page, on_post_template, with_outside_links

MANUAL = sorted((ROOT / "docs").rglob("*.md"))
MODULES = [
    path
    for path in sorted(ROOT.rglob("*.py"))
    if not {".venv", "build", ".git", "node_modules"} & set(path.relative_to(ROOT).parts)
]
PAGES = [*sorted(ROOT.glob("*.md")), *MANUAL]
TARGETS = set(re.findall(r"^([a-z-]+):", (ROOT / "Makefile").read_text(), re.MULTILINE))


def test_readme_names_the_two_commands() -> None:
    readme = (ROOT / "README.md").read_text()
    assert "make demo" in readme and "make test" in readme


def test_readme_is_short_and_leads_to_each_of_its_sections() -> None:
    readme = (ROOT / "README.md").read_text()
    sections = re.findall(r"^## (.+)$", readme, re.MULTILINE)
    linked = re.findall(r"\[([^]]+)\]\(#", readme.partition("\n## ")[0])
    assert len(readme.splitlines()) <= 150
    assert linked == sections


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
    listed = re.findall(
        r"^ +- ([\w/-]+\.md)$", (ROOT / "tools/manual/mkdocs.yml").read_text(), re.MULTILINE
    )
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
    named = set(re.findall(r"(?:`|^ {4}|=\S+ )make ([a-z][a-z-]*)", page.read_text(), re.MULTILINE))
    assert named <= TARGETS


def test_named_measurements_exist() -> None:
    texts = [path.read_text() for path in (*PAGES, *MODULES)]
    named = {what for text in texts for what in re.findall(r"\bWHAT=([a-z][a-z-]+)", text)}
    assert len(named) > 25
    assert {f"measure-{what}" for what in named} <= TARGETS


@pytest.mark.parametrize("page", PAGES, ids=lambda page: page.name)
def test_named_scripts_exist(page: Path) -> None:
    named = set(re.findall(r"\b(?:scripts|tools)/\w+\.\w+", page.read_text()))
    assert [script for script in named if not (ROOT / script).is_file()] == []


def make(*words: str) -> subprocess.CompletedProcess[str]:
    return subprocess.run(["make", *words], cwd=ROOT, capture_output=True, text=True)


def test_make_lists_its_targets_and_measurements() -> None:
    """Twenty at most: a longer list is not read."""
    makefile = (ROOT / "Makefile").read_text()
    phony = set(re.findall(r"^\.PHONY: help ([a-z -]+)$", makefile, re.MULTILINE)[-1].split())
    assert set(re.findall(r"^  make ([a-z-]+) +\S", make().stdout, re.MULTILINE)) == phony
    assert len(phony) <= 20
    listed = set(re.findall(r"WHAT=([a-z-]+) +\S", make("measure").stdout))
    assert {f"measure-{what}" for what in listed} == {t for t in TARGETS if t[:8] == "measure-"}


def test_make_refuses_to_measure_what_is_not_there() -> None:
    ended = make("measure", "WHAT=" + "nothing")
    assert ended.returncode == 2 and "nothing to measure with the name nothing" in ended.stderr


CITATION = re.compile(r'docs/([\w/-]+\.md)((?:, "[^"]+")*(?: and "[^"]+")?)')


def cited(path: Path) -> list[tuple[str, str | None]]:
    """Return the pages of the manual that a module names, each with the title of a section."""
    text = re.sub(r"\s*\n\s*(?:# ?)?", " ", path.read_text())
    found: list[tuple[str, str | None]] = []
    for citation in CITATION.finditer(text):
        titles = re.findall(r'"([^"]+)"', citation[2])
        found += [(citation[1], title) for title in titles or [None]]
    return found


def test_modules_name_pages_and_sections_of_the_manual_that_exist() -> None:
    wrong = []
    for path in MODULES:
        for page, title in cited(path):
            target = ROOT / "docs" / page
            if not target.is_file() or (title and f"# {title}\n" not in target.read_text()):
                wrong.append((str(path.relative_to(ROOT)), page, title))
    assert sum(len(cited(path)) for path in MODULES) > 200
    assert wrong == []


def test_nothing_names_a_document_outside_the_repository() -> None:
    outside = re.compile(r"\bspec/[\w-]+\.md|\.\./shared/(?:spec|findings|design)")
    templates = [p for p in ROOT.glob("templates/**/*.*") if "__pycache__" not in p.parts]
    files = [*MODULES, *PAGES, *templates, ROOT / "Makefile"]
    found = [str(p.relative_to(ROOT)) for p in files if outside.search(p.read_text())]
    assert [name for name in found if name != "tests/architecture/test_docs.py"] == []


def test_manual_fetches_nothing_from_elsewhere(tmp_path: Path) -> None:
    (tmp_path / "assets").mkdir()
    shim = '<script src="https://unpkg.com/iframe-worker/shim"></script>'
    link = '<a href="https://example.org">x</a><link rel="icon" href="x.png">'
    page = SimpleNamespace(url="hardware/index.html")
    assert on_post_page(shim, page) == '<script src="../assets/worker.js"></script>'
    (tmp_path / "index.html").write_text(on_post_template(shim) + link)
    on_post_build({"site_dir": tmp_path})
    assert (tmp_path / "assets/worker.js").is_file()
    for foreign in (shim, '<link rel=stylesheet href="//example.org/x.css">'):
        (tmp_path / "other.html").write_text(foreign)
        with pytest.raises(SystemExit, match=r"fetches (https:)?//"):
            on_post_build({"site_dir": tmp_path})

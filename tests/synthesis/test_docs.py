"""The pages that tools/make_docs.py writes are complete and up to date."""

from __future__ import annotations

import re
from pathlib import Path

import pytest

from ai8xtools.synthesis.check import CONSTRAINTS
from ai8xtools.synthesis.parse.keys import GLOBAL_KEYS, LAYER_KEYS
from tests.conftest import ROOT
from tools.make_docs import SOURCES, catalogue, errors_page, explanations, filled_pages, make_docs


def test_every_code_of_the_source_has_a_row() -> None:
    files = {path for pattern in SOURCES for path in ROOT.glob(pattern)}
    codes = {c for path in files for c in re.findall(r'"([EWN]\d{3})"', path.read_text())}
    page = errors_page(explanations(ROOT))
    assert codes and [c for c in sorted(codes) if f"| {c} |" not in page] == []


def test_constraints_are_listed_with_messages_and_reason() -> None:
    found = explanations(ROOT)
    for constraint in CONSTRAINTS:
        assert found[constraint.code].messages
        assert constraint.reason in found[constraint.code].reasons
        assert constraint.kind in found[constraint.code].kinds


def test_every_key_and_alias_is_described() -> None:
    page = filled_pages(ROOT)[ROOT / "docs" / "network-description.md"]
    for key in (*LAYER_KEYS, *GLOBAL_KEYS):
        assert all(f"`{name}`" in page for name in key.spellings)
        assert key.sentence in page


def test_messages_keep_what_is_fixed_and_blank_the_rest(tmp_path: Path) -> None:
    (tmp_path / "tool.py").write_text(
        "def f(n):\n"
        "    Diagnostic('E999', f'{n} is {n}{n}, ' + ('a' if n else 'b'), None)\n"
        "    text = f'again {n}'\n"
        "    Diagnostic('E999', text)\n"
        "def g(message):\n"
        "    Diagnostic('E999', message)\n"
        "g('given')\n"
    )
    found = explanations(tmp_path)["E999"].messages
    assert found == ["… is …, a", "… is …, b", "again …", "given"]


def test_every_code_is_in_one_group_and_has_one_meaning() -> None:
    """It is said in the catalogue, or beside the check, and never in both."""
    found = explanations(ROOT)
    grouped = [(code, text) for group in catalogue().values() for code, text in group.items()]
    assert sorted(code for code, _ in grouped) == sorted(found)
    assert [code for code, text in grouped if bool(text) == bool(found[code].reasons)] == []
    meanings = [text for _, text in grouped if text]
    assert [text for text in meanings if meanings.count(text) > 1] == []


def test_a_number_has_one_letter() -> None:
    """People say "366" and mean one message."""
    letters: dict[str, set[str]] = {}
    for code in explanations(ROOT):
        letters.setdefault(code[1:], set()).add(code[0])
    assert {number: found for number, found in letters.items() if len(found) > 1} == {}


def test_every_code_is_named_by_a_test() -> None:
    tests = [path for path in (ROOT / "tests").rglob("*.py") if path != Path(__file__)]
    named = {code for path in tests for code in re.findall(r"[EWN]\d{3}", path.read_text())}
    assert sorted(set(explanations(ROOT)) - named) == []


def test_architecture_names_the_ranges_of_all_codes() -> None:
    text = (ROOT / "docs" / "architecture.md").read_text()
    rows = re.findall(r"^\| (\d{3}–\d{3}(?:, \d{3}–\d{3})*) \|", text, re.MULTILINE)
    ranges = [tuple(map(int, one.split("–"))) for row in rows for one in row.split(", ")]
    numbers = [int(code[1:]) for code in explanations(ROOT)]
    assert [n for n in numbers if sum(low <= n <= high for low, high in ranges) != 1] == []


def test_committed_pages_are_up_to_date(capsys: pytest.CaptureFixture[str]) -> None:
    assert (make_docs(check=True), capsys.readouterr().out) == (0, "")

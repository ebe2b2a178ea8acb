"""What a complaint blocks or implies stands where the complaint is made, not in tables of codes."""

from __future__ import annotations

import ast
import re
from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.architecture.imports import ROOMS
from tests.conftest import ENGINE, ROOT, room_folder

CODE = re.compile(r"[EWN]\d{3}")
FILES = [
    *sorted(ROOT.glob("*.py")),
    *(file for room in (*ROOMS, "tools") for file in sorted(room_folder(room).rglob("*.py"))),
]


def is_code(node: ast.AST) -> bool:
    return (
        isinstance(node, ast.Constant)
        and isinstance(node.value, str)
        and CODE.fullmatch(node.value) is not None
    )


def uses_apart(tree: ast.AST) -> Iterator[int]:
    """Yield the lines of collections of codes, and of comparisons and patterns with a code."""
    for node in ast.walk(tree):
        parts: list[ast.AST | None] = []
        if isinstance(node, ast.Set | ast.List | ast.Tuple):
            parts = [*node.elts]
        elif isinstance(node, ast.Dict):
            parts = [*node.keys, *node.values]
        elif isinstance(node, ast.Compare):
            parts = [node.left, *node.comparators]
        elif isinstance(node, ast.MatchValue):
            parts = [node.value]
        if any(part is not None and is_code(part) for part in parts):
            yield node.lineno  # type: ignore[attr-defined]


@pytest.mark.parametrize(
    "text",
    [
        "X = {'E302', other}",
        "X = frozenset(('E302', 'E303'))",
        "X = {'E361': 'E360'}",
        "[d for d in found if d.code in ['E219']]",
        "refusal.code != 'E501'",
        "match d.code:\n    case 'E208': pass",
    ],
)
def test_tables_and_comparisons_are_found(text: str) -> None:
    assert list(uses_apart(ast.parse(text)))


def test_declaring_a_complaint_is_no_table() -> None:
    text = "@constraint('E361', covers=Covered('E360'))\ndef f(): error('E302', CODE, ('a', 'b'))"
    assert list(uses_apart(ast.parse(text))) == []


def test_no_codes_stand_apart_from_their_complaints() -> None:
    found = [
        f"{file.relative_to(ROOT)}:{line}"
        for file in FILES
        if CODE.search(file.read_text())
        for line in uses_apart(ast.parse(file.read_bytes()))
    ]
    assert len(FILES) > 300
    assert found == []


def test_codes_named_in_declarations_exist() -> None:
    from ai8xtools.synthesis.check import CONSTRAINTS

    codes = {entry.code for entry in CONSTRAINTS}
    assert {entry.covers.code for entry in CONSTRAINTS if entry.covers} <= codes


def test_options_named_in_declarations_exist() -> None:
    page = (ENGINE / "commands" / "loader" / "arguments" / "shared.py").read_text()
    named = re.findall(
        r'(?:waived_by|silenced_by)="(--[a-z-]+)"',
        "".join(file.read_text() for file in sorted(Path(ENGINE / "synthesis").rglob("*.py"))),
    )
    assert set(named) >= {"--ignore-bias-groups", "--ignore-energy-warning"}
    assert [option for option in named if f'"{option}"' not in page] == []

"""There is one base of errors, and its module costs nothing to import."""

from __future__ import annotations

import ast
from pathlib import Path

import pytest

from tests.architecture.imports import ROOMS
from tests.conftest import ENGINE, ROOT, room_folder

BASE = ENGINE / "diagnostics" / "errors.py"
ATTRIBUTES = {"code", "message", "place", "remedy"}


def assigned_attributes(node: ast.ClassDef) -> set[str]:
    """Names that a class gives its instances, in its body or through `self`."""
    return {
        target.attr if isinstance(target, ast.Attribute) else target.id
        for statement in ast.walk(node)
        if isinstance(statement, ast.Assign | ast.AnnAssign)
        for target in getattr(statement, "targets", [getattr(statement, "target", None)])
        if isinstance(target, ast.Attribute | ast.Name)
    }


def classes_like_the_base(file: Path) -> list[str]:
    """Exceptions of a file that declare code, message, place and remedy themselves."""
    return [
        f"{file.relative_to(ROOT)}: {node.name}"
        for node in ast.walk(ast.parse(file.read_bytes(), str(file)))
        if isinstance(node, ast.ClassDef)
        and node.name.endswith("Error")
        and assigned_attributes(node) >= ATTRIBUTES
    ]


def test_the_base_imports_nothing() -> None:
    imports = [
        node
        for node in ast.walk(ast.parse(BASE.read_bytes()))
        if isinstance(node, ast.Import | ast.ImportFrom)
    ]
    assert [ast.unparse(node) for node in imports] == ["from __future__ import annotations"]


@pytest.mark.parametrize("room", [*ROOMS, "scripts"])
def test_no_other_error_declares_the_attributes_of_the_base(room: str) -> None:
    found = [
        name
        for file in sorted(room_folder(room).rglob("*.py"))
        for name in classes_like_the_base(file)
    ]
    assert found == (
        ["ai8xtools/diagnostics/errors.py: ToolError"] if room == "diagnostics" else []
    )

"""The emulator takes registers apart by the names of their fields, not by shifts and masks.

Sets of bytes and pixels are arrays of truth values here, so that only masks with numbers count.
"""

from __future__ import annotations

import ast
from pathlib import Path

import pytest

from tests.conftest import ROOT

HELPERS = {
    "emulator/bits.py": "bytes of words, signed values, sets of numbers; no registers",
}
"""Modules whose subject is the arithmetic on bits."""
REASONS = {
    ("emulator/machine/arithmetic.py", "finish"): "the output shift is a shift",
    ("emulator/cpu/core.py", "_core"): "flags of unicorn",
    ("emulator/cpu/core.py", "_run_function"): "the lowest bit of Thumb addresses",
    ("emulator/cpu/architecture.py", ""): "flags of unicorn",
}
"""Functions ("": a module) with shifts or masks that are about no register."""

MASKING = (ast.BitAnd, ast.BitOr, ast.BitXor)
FILES = sorted((ROOT / "emulator").rglob("*.py"))


def constant(node: ast.expr) -> bool:
    """Whether a node is a number, or a constant by its name."""
    if isinstance(node, ast.UnaryOp):
        return constant(node.operand)
    if isinstance(node, ast.Attribute):
        return node.attr.isupper() or node.attr == "code_bit"
    if isinstance(node, ast.Name):
        return node.id.isupper()
    return isinstance(node, ast.Constant) and isinstance(node.value, int)


def places(text: str) -> set[tuple[str, int]]:
    """Functions and lines with a shift, or with a mask that is a constant."""
    found = set()

    def visit(node: ast.AST, function: str) -> None:
        if isinstance(node, ast.FunctionDef):
            function = node.name
        if isinstance(node, ast.BinOp | ast.AugAssign):
            operands = [node.value] if isinstance(node, ast.AugAssign) else [node.left, node.right]
            shifts = isinstance(node.op, ast.LShift | ast.RShift)
            if shifts or (isinstance(node.op, MASKING) and any(map(constant, operands))):
                found.add((function, node.lineno))
        for child in ast.iter_child_nodes(node):
            visit(child, function)

    visit(ast.parse(text), "")
    return found


@pytest.mark.parametrize("path", FILES, ids=lambda path: str(path.relative_to(ROOT)))
def test_no_register_is_taken_apart_by_hand(path: Path) -> None:
    name = str(path.relative_to(ROOT))
    if name in HELPERS:
        return
    found = {place for place in places(path.read_text()) if (name, place[0]) not in REASONS}
    assert found == set()


@pytest.mark.parametrize("name, function", REASONS)
def test_every_reason_is_needed(name: str, function: str) -> None:
    assert function in {place[0] for place in places((ROOT / name).read_text())}


def test_shifts_and_masks_are_noticed() -> None:
    text = (
        "def f(word):\n    word |= 8\n    return word >> 3, word & 0xF, word & ~MASK, word | other"
    )
    assert places(text) == {("f", 2), ("f", 3)}

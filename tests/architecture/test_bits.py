"""No bits by hand: the words of registers are made and read by the names of their fields.

Rooms that make or read accelerator words neither shift nor mask, and hold no number that could be a
word of a register: `device` declares the registers, numpy views turn bytes into words.
"""

from __future__ import annotations

import ast
from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.conftest import ROOT

ROOMS = ("synthesis/encode",)
"""Folders below the root, with everything in them."""

ALLOWED = {
    ("synthesis/encode/data.py", "0x55555555"): "fixed pattern of data memory, no register",
    ("synthesis/encode/data.py", "0xAAAAAAAA"): "fixed pattern of data memory, no register",
}  # fmt: skip
"""Why an expression is not a word that is made by hand."""

_SHIFTS = (ast.LShift, ast.RShift)
_MASKS = (ast.BitAnd, ast.BitOr, ast.BitXor)
_DICTIONARIES = (ast.Dict, ast.DictComp)
_NUMPY = {"left_shift", "right_shift", "invert", "bitwise_not", "bitwise_and", "bitwise_or",
          "bitwise_xor", "packbits", "unpackbits"}  # fmt: skip
_LARGEST_COUNT = 255
"""Larger numbers are more likely to be words than counts."""


def findings(source: str) -> Iterator[str]:
    """Yield the shifts, masks and likely words of a module as they stand there."""
    tree = ast.parse(source)
    typed = {id(part) for node in ast.walk(tree) for part in _types(node)}
    for node in ast.walk(tree):
        if id(node) not in typed and _is_by_hand(node, source):
            yield ast.get_source_segment(source, node) or ast.unparse(node)


def _types(node: ast.AST) -> Iterator[ast.AST]:
    """Yield the expressions in which `|` joins types."""
    found: list[ast.AST | None] = []
    if isinstance(node, ast.arg | ast.AnnAssign):
        found.append(node.annotation)
    elif isinstance(node, ast.FunctionDef):
        found.append(node.returns)
    elif isinstance(node, ast.Call) and ast.unparse(node.func) in ("isinstance", "cast"):
        found += node.args
    elif isinstance(node, ast.Assign) and isinstance(node.value, ast.BinOp):
        names = {part.id for part in ast.walk(node.value) if isinstance(part, ast.Name)}
        if all(name[0].isupper() or name in ("int", "str", "float") for name in names):
            found.append(node.value)  # an alias of types
    for expression in found:
        if expression is not None:
            yield from ast.walk(expression)


def _is_by_hand(node: ast.AST, source: str) -> bool:
    match node:
        case ast.BinOp(left, op, right):
            dictionary = isinstance(left, _DICTIONARIES) or isinstance(right, _DICTIONARIES)
            return isinstance(op, _SHIFTS) or (isinstance(op, _MASKS) and not dictionary)
        case ast.AugAssign(_, op, value):
            dictionary = isinstance(value, _DICTIONARIES)
            return isinstance(op, _SHIFTS) or (isinstance(op, _MASKS) and not dictionary)
        case ast.UnaryOp(ast.Invert(), _):
            return True
        case ast.Attribute(_, name) if name in _NUMPY:
            return True
        case ast.Constant(int(value)) if not isinstance(value, bool):
            text = ast.get_source_segment(source, node) or ""
            return value > _LARGEST_COUNT or text[:2].lower() in ("0x", "0b", "0o")
    return False


def _modules() -> list[Path]:
    return sorted(path for room in ROOMS for path in (ROOT / room).rglob("*.py"))


@pytest.mark.parametrize("path", _modules(), ids=lambda path: str(path.relative_to(ROOT)))
def test_words_are_made_of_named_fields(path: Path) -> None:
    name = str(path.relative_to(ROOT))
    found = {text for text in findings(path.read_text()) if (name, text) not in ALLOWED}
    assert found == set()


def test_every_permission_is_needed() -> None:
    found = {
        (str(path.relative_to(ROOT)), text)
        for path in _modules()
        for text in findings(path.read_text())
    }
    assert {entry for entry in ALLOWED if entry[0].startswith(ROOMS)} <= found


@pytest.mark.parametrize(
    "line",
    [
        "word = field << 12",
        "word |= enable",
        "first = lowest & ~3",
        "low = value & mask",
        "START = 0x1C80",
        "DONE = 4096",
        "bits = np.bitwise_or.reduce(parts)",
        "word >>= 4",
    ],
)
def test_bits_by_hand_are_found(line: str) -> None:
    assert [*findings(line)]


@pytest.mark.parametrize(
    "line",
    [
        "def f(x: int | None) -> int | str: return x",
        "fields |= {'enable': 1}",
        "both = {**one} | {'b': 2}",
        "Step = Write | Wait",
        "isinstance(x, int | str)",
        "last = count // 16 * 16 - 1",
        "found: dict[str, int | None] = {}",
    ],
)
def test_types_dictionaries_and_counts_are_not(line: str) -> None:
    assert [*findings(line)] == []

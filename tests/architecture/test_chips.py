"""What differs between the chips stands in device/: other code asks for facts, not for names."""

from __future__ import annotations

import ast
import re
from collections.abc import Iterator

import pytest

from tests.conftest import ROOT

NUMBERS = {84, 85, 87}
NAMES = re.compile(r"(?:MAX|AI)?(?:84|85|87|78000|78002)", re.IGNORECASE)
IN_A_NAME = re.compile(r"max7800\d|ai8\d", re.IGNORECASE)
IDENTITY = {"name", "die"}
"""Attributes that say which chip it is."""
NAMED_BY_USERS = {"models", "datasets"}
"""Rooms whose classes and functions have the names of published networks."""
SCRIPTS = sorted(ROOT.glob("*.py"))
ROOMS = sorted(path.parent.name for path in ROOT.glob("*/__init__.py"))
FILES = [
    *SCRIPTS,
    *(
        file
        for room in {*ROOMS, "tools", "benchmarks"} - {"device", "tests"}
        for file in (ROOT / room).rglob("*.py")
    ),
]


def is_chip(node: ast.AST | None) -> bool:
    """Whether an expression is a chip, its name or its number, or is made of one."""
    match node:
        case ast.Constant(value=bool()):
            return False
        case ast.Constant(value=int(number)):
            return number in NUMBERS
        case ast.Constant(value=str(text)):
            return NAMES.fullmatch(text) is not None
        case ast.Name(id=name) | ast.Attribute(attr=name) if NAMES.fullmatch(name):
            return True
        case ast.Attribute(value=ast.Name(id=owner) | ast.Attribute(attr=owner), attr=attribute):
            return attribute in IDENTITY and owner == "chip"
        case ast.Tuple(elts=elements) | ast.List(elts=elements) | ast.Set(elts=elements):
            return any(map(is_chip, elements))
    return False


def told_apart(tree: ast.AST) -> Iterator[tuple[int, str]]:
    """Yield line and kind of each place that tells chips apart by name or number."""
    for node in ast.walk(tree):
        match node:
            case ast.Dict(keys=keys) if any(map(is_chip, keys)):
                yield node.lineno, "table"
            case ast.DictComp(key=key) if is_chip(key):
                yield node.lineno, "table"
            case ast.Subscript(slice=index, ctx=ast.Load()) if is_chip(index):
                yield node.lineno, "table"
            case ast.Compare(left=left, comparators=others) if any(map(is_chip, (left, *others))):
                yield node.lineno, "comparison"
            case ast.MatchValue(value=value) if is_chip(value):
                yield node.lineno, "comparison"
            case ast.FunctionDef(name=name) | ast.ClassDef(name=name) if IN_A_NAME.search(name):
                yield node.lineno, "definition"


def test_chips_are_told_apart_in_device_only() -> None:
    found = []
    named = re.compile(r"84|85|87|78000|78002|max7800\d|ai8\d|chip", re.IGNORECASE)
    for file in FILES:
        if not named.search(file.read_text()):
            continue
        path = file.relative_to(ROOT)
        for line, kind in told_apart(ast.parse(file.read_bytes(), str(file))):
            if not (kind == "definition" and path.parts[0] in NAMED_BY_USERS):
                found.append(f"{path}:{line}: {kind}")
    assert found == []


def test_templates_name_no_chip() -> None:
    named = re.compile(r"MAX7800|AI8\d|chip\.(?:die|name) *[=!~]")
    found = [
        f"{template.relative_to(ROOT)}: {text}"
        for template in sorted((ROOT / "templates").rglob("*.j2"))
        for text in re.findall(r"{[{%].*?[%}]}", template.read_text(), re.DOTALL)
        if named.search(text)
    ]
    assert found == []


@pytest.mark.parametrize(
    "text",
    [
        "TABLE = {'MAX78000': 1}",
        "TABLE = {85: 1}",
        "TABLE = {chip.die: 1 for chip in chips}",
        "TABLE[network.chip.name]",
        "if chip == 87: pass",
        "if chip is MAX78002: pass",
        "if program.chip.name in SOME: pass",
        "wanted = number in (84, 85)",
        "match chip.die:\n    case 85: pass",
        "def size_of_max78000(): pass",
    ],
)
def test_telling_chips_apart_is_noticed(text: str) -> None:
    assert [*told_apart(ast.parse(text))] != []

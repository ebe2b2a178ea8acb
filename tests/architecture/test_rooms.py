"""Rules of docs/architecture.md that an import contract cannot express."""

from __future__ import annotations

import ast
import re
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.architecture.imports import ROOMS
from tests.conftest import ROOT, room_folder

# Marks of C, SystemVerilog and make that do not occur in messages for people
FOREIGN_CODE = re.compile(
    r"#include\b|#define\b|\bu?int(?:8|16|32|64)_t\b|\bvoid \w+\(|\bendmodule\b|\.PHONY|\$\(CC\)"
)


def python_files(*folders: str) -> Iterator[Path]:
    for folder in folders:
        yield from sorted(room_folder(folder).rglob("*.py"))


def imported_names(file: Path) -> set[str]:
    """Top-level names of everything a file imports, inside functions too."""
    names = set()
    for node in ast.walk(ast.parse(file.read_bytes(), str(file))):
        if isinstance(node, ast.Import):
            names |= {alias.name.split(".")[0] for alias in node.names}
        elif isinstance(node, ast.ImportFrom) and node.module and not node.level:
            names.add(node.module.split(".")[0])
    return names


def strings_besides_docstrings(file: Path) -> Iterator[tuple[int, str]]:
    """Line and text of every string of a file that is not a docstring."""
    tree = ast.parse(file.read_bytes(), str(file))
    docstrings = {
        id(node.body[0].value)
        for node in ast.walk(tree)
        if isinstance(node, ast.Module | ast.ClassDef | ast.FunctionDef)
        and node.body
        and isinstance(node.body[0], ast.Expr)
    }
    for node in ast.walk(tree):
        if (
            isinstance(node, ast.Constant)
            and isinstance(node.value, str)
            and id(node) not in docstrings
        ):
            yield node.lineno, node.value


@pytest.mark.parametrize(
    "room", ["device", "checkpoint", "diagnostics", "synthesis", "writing", "emulator", "software"]
)
def test_importing_a_whole_room_does_not_load_torch(room: str) -> None:
    modules = [
        ".".join(file.relative_to(ROOT).with_suffix("").parts).removesuffix(".__init__")
        for file in python_files(room)
    ]
    program = (
        "import importlib, sys\n"
        f"for name in {modules!r}: importlib.import_module(name)\n"
        "print(*(name for name in ('torch', 'torchvision') if name in sys.modules))"
    )
    result = subprocess.run(
        [sys.executable, "-c", program], cwd=ROOT, capture_output=True, text=True, check=False
    )
    assert result.returncode == 0, result.stderr
    assert modules and result.stdout.strip() == ""


def test_exactly_one_module_imports_torchvision() -> None:
    files = [*python_files(*ROOMS, "tools"), *sorted(ROOT.glob("*.py"))]
    found = [
        str(file.relative_to(ROOT))
        for file in files
        if "torchvision" in file.read_text() and "torchvision" in imported_names(file)
    ]
    assert len(found) == 1, found


def test_values_of_tools_that_start_quickly_are_declared_with_frozen() -> None:
    """`values.frozen` instead of a frozen dataclass, which costs each start three times as much."""
    rooms = (
        "checkpoint", "commands", "device", "diagnostics", "emulator", "quantization", "software",
        "synthesis", "writing",
    )  # fmt: skip
    found = [
        f"{file.relative_to(ROOT)}:{node.lineno}"
        for file in python_files(*rooms)
        if "frozen=" in file.read_text()
        for node in ast.walk(ast.parse(file.read_bytes(), str(file)))
        if isinstance(node, ast.Call) and ast.unparse(node.func).endswith("dataclass")
        if any(keyword.arg == "frozen" for keyword in node.keywords)
    ]
    assert found == []


def test_text_of_generated_files_stands_in_templates_not_in_python_strings() -> None:
    found = [
        f"{file.relative_to(ROOT)}:{line}: {text[:60]!r}"
        for file in python_files(*ROOMS)
        if FOREIGN_CODE.search(file.read_text().replace("\\", " "))  # escapes may precede a word
        for line, text in strings_besides_docstrings(file)
        if FOREIGN_CODE.search(text)
    ]
    assert found == []

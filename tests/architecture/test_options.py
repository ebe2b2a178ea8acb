"""Options become frozen values where argparse reads them; its Namespace goes no further."""

from __future__ import annotations

import ast
from collections.abc import Iterator
from dataclasses import FrozenInstanceError, fields, is_dataclass
from pathlib import Path

import pytest

from ai8xtools.commands.emulate.arguments import EmulateOptions
from ai8xtools.commands.fuser.arguments import FuserOptions
from ai8xtools.commands.loader.options import LoaderOptions
from ai8xtools.commands.quantize.arguments import CalibrationOptions, QuantizeOptions
from ai8xtools.training.options import TrainingOptions
from tests.architecture.imports import ROOMS
from tests.architecture.test_rooms import imported_names, python_files
from tests.conftest import ROOT

NAMESPACE = "Namespace"


def reads_options(file: Path) -> bool:
    """Whether a file belongs to the modules that read a command line."""
    parts = file.relative_to(ROOT).with_suffix("").parts
    return "commands" in parts and "arguments" in parts


def handed_on(tree: ast.AST) -> Iterator[int]:
    """Yield the lines of functions that take or return a Namespace."""
    for node in ast.walk(tree):
        if isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef):
            found = node.args
            given = [*found.posonlyargs, *found.args, *found.kwonlyargs]
            given += [a for a in (found.vararg, found.kwarg) if a is not None]
            annotations = [a.annotation for a in given] + [node.returns]
            if any(NAMESPACE in ast.unparse(a) for a in annotations if a is not None):
                yield node.lineno


def test_no_function_beyond_the_command_lines_takes_a_namespace() -> None:
    files = [*python_files(*ROOMS, "tools"), *sorted(ROOT.glob("*.py"))]
    found = [
        f"{file.relative_to(ROOT)}:{line}"
        for file in files
        if not reads_options(file) and NAMESPACE in file.read_text()
        for line in handed_on(ast.parse(file.read_bytes(), str(file)))
    ]
    assert len(files) > 100 and found == []


def test_only_modules_that_read_a_command_line_know_argparse() -> None:
    found = [
        str(file.relative_to(ROOT))
        for file in python_files("commands")
        if not reads_options(file) and "argparse" in imported_names(file)
    ]
    assert found == []


@pytest.mark.parametrize(
    "signature",
    ["a: argparse.Namespace", "*, a: Namespace | None", "*a: 'Namespace'", "b=0, **a: Namespace"],
)
def test_a_function_that_takes_a_namespace_is_seen(signature: str) -> None:
    assert [*handed_on(ast.parse(f"def f({signature}): ..."))] == [1]


@pytest.mark.parametrize(
    "kind",
    [
        LoaderOptions, QuantizeOptions, CalibrationOptions, FuserOptions, EmulateOptions,
        TrainingOptions,
    ],
)  # fmt: skip
def test_options_are_frozen_values(kind: type) -> None:
    assert is_dataclass(kind) and fields(kind)
    with pytest.raises(FrozenInstanceError):
        setattr(object.__new__(kind), fields(kind)[0].name, None)

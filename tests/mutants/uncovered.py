"""Statements of the rooms that compute and that no measured test executes."""

from __future__ import annotations

import ast
from collections.abc import Iterator, Sequence
from pathlib import Path

from tests.mutants.drawing import files_of
from tests.mutants.nearest import Measured, packed
from tests.mutants.pythons import code_lines


def uncovered(root: Path, rooms: Sequence[str], measured: dict[str, Measured]) -> Iterator[str]:
    """Yield a line for each file of Python with such statements; refusals are left out."""
    for path in (one for room in rooms for one in files_of(root, room) if one.suffix == ".py"):
        file, text = path.relative_to(root).as_posix(), path.read_text()
        code = code_lines(text)
        executed: set[int] = set().union(*(one.executed(file, text) for one in measured.values()))
        missing = {
            node.lineno
            for node in ast.walk(ast.parse(text))
            if isinstance(node, ast.stmt)
            and node.lineno in code
            and not isinstance(node, ast.FunctionDef | ast.ClassDef | ast.Raise | ast.Assert)
            and executed.isdisjoint(_head(node))
        }
        if missing:
            yield f"{file}: {packed(missing)}"


def _head(node: ast.stmt) -> range:
    body = getattr(node, "body", None)
    last = body[0].lineno - 1 if body else node.end_lineno or node.lineno
    return range(node.lineno, max(last, node.lineno) + 1)

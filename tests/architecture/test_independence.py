"""The emulator judges what the loader writes: neither computes with the other's code. The
executors of the tests judge the shared integers of the product in the same way.

Import rules keep the rooms apart; this finds what was copied. Functions and expressions are
compared without names, texts and annotations, classes by the names of their fields.
"""

from __future__ import annotations

import ast
import re
from collections.abc import Iterator

from tests.conftest import ROOT, room_folder

FUNCTION, EXPRESSION = 40, 26
"""Nodes from which on a function or an expression says enough to have been copied."""
FIELDS = 3
"""A class with more fields of the same names is a copy."""


class _Nameless(ast.NodeTransformer):
    """Leaves structure, operators and numbers."""

    def visit_Name(self, node: ast.Name) -> ast.AST:
        return ast.copy_location(ast.Name("x", ast.Load()), node)

    def visit_Attribute(self, node: ast.Attribute) -> ast.AST:
        """A value, whether it is a variable or stands in a record."""
        return ast.copy_location(ast.Name("x", ast.Load()), node)

    def visit_Constant(self, node: ast.Constant) -> ast.AST:
        value = "" if isinstance(node.value, str) else node.value
        return ast.copy_location(ast.Constant(value), node)

    def visit_arg(self, _: ast.arg) -> ast.AST:
        return ast.arg("x", None)

    def visit_keyword(self, node: ast.keyword) -> ast.AST:
        return ast.keyword("x", self.visit(node.value))

    def visit_AnnAssign(self, node: ast.AnnAssign) -> ast.AST:
        return ast.Assign([self.visit(node.target)], node.value and self.visit(node.value))

    def visit_FunctionDef(self, node: ast.FunctionDef) -> ast.AST:
        arguments, body = self.visit(node.args), _without_text(node.body)
        plain = ast.FunctionDef("x", arguments, [self.visit(one) for one in body], [], None)
        return ast.copy_location(plain, node)


def _without_text(body: list[ast.stmt]) -> list[ast.stmt]:
    return [
        one for one in body
        if not (isinstance(one, ast.Expr) and isinstance(one.value, ast.Constant))
    ]  # fmt: skip


def _pieces(source: str) -> Iterator[tuple[str, int]]:
    """Yield classes, functions and expressions as text without names, each with its line."""
    tree = ast.parse(source)
    for node in ast.walk(tree):
        if isinstance(node, ast.ClassDef):
            fields = [
                ast.unparse(one.target) for one in node.body if isinstance(one, ast.AnnAssign)
            ]
            if len(fields) > FIELDS:
                yield f"fields {fields}", node.lineno
    plain = _Nameless().visit(tree)
    sizes: dict[ast.AST, int] = {}
    _measure(plain, sizes)
    for node in ast.walk(plain):
        if isinstance(node, ast.FunctionDef | ast.expr):
            least = FUNCTION if isinstance(node, ast.FunctionDef) else EXPRESSION
            if sizes[node] >= least:
                yield ast.dump(node), node.lineno


def _measure(node: ast.AST, sizes: dict[ast.AST, int]) -> int:
    """Count the nodes of a tree and of each of its branches."""
    sizes[node] = 1 + sum(_measure(one, sizes) for one in ast.iter_child_nodes(node))
    return sizes[node]


def shared(ours: dict[str, str], theirs: dict[str, str]) -> list[str]:
    """Return what stands in two sets of modules, by module."""
    known = {
        piece: f"{name}:{line}" for name, text in ours.items() for piece, line in _pieces(text)
    }
    return [
        f"{known[piece]} is {name}:{line}"
        for name, text in theirs.items()
        for piece, line in _pieces(text)
        if piece in known
    ]


def modules(room: str) -> dict[str, str]:
    return {
        str(path.relative_to(ROOT)): path.read_text()
        for path in sorted(room_folder(room).rglob("*.py"))
    }


def test_loader_and_emulator_share_no_code() -> None:
    assert shared(modules("synthesis") | modules("integers"), modules("emulator")) == []


def test_executors_of_tests_neither_use_nor_copy_those_of_the_product() -> None:
    files = [*(ROOT / "tests/software/oracle").glob("*.py"), ROOT / "tests/plain_arithmetic.py"]
    judges = {file.name: file.read_text() for file in files}
    assert len(judges) > 8
    executors = r"\bintegers\b.*import|import.*\bintegers\b|\.(simulate|execute|engine)\b"
    assert not {name for name, text in judges.items() if re.search(executors, text)}
    product = modules("integers") | modules("synthesis/simulate") | modules("quantization/q15")
    assert shared(product, judges) == []


def test_a_copy_with_other_names_is_found() -> None:
    source = """
def cycles(layer, terms):
    rows, columns = layer.size
    inner = (rows - 1) * (columns + 2 * terms.pad) + rows * (terms.pad + 1) - 3
    return inner if terms.pad else inner // 2
"""
    other = source.replace("layer", "config.input").replace("inner", "most").replace("pad", "edge")
    other = other.replace("config.input, terms", "one: int, two: str").replace("cycles", "steps")
    assert {"a:2 is b:2", "a:4 is b:4"} <= {*shared({"a": source}, {"b": other})}
    assert shared({"a": source}, {"b": other.replace("+ 1", "+ 4").replace("+ 2", "- 2")}) == []
    fields = "class Line:\n    rows: int\n    pad: int\n    step: int\n    skip: int\n"
    assert shared({"a": fields}, {"b": fields.replace("Line", "Walk")}) == ["a:1 is b:1"]
    assert shared({"a": fields}, {"b": fields.replace("pad", "edge")}) == []

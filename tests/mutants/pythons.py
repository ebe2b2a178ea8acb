"""Mutants of Python: the operators of cosmic-ray where they do not change wording alone."""

from __future__ import annotations

import ast
import functools
import random
import re
import warnings
from collections.abc import Iterator
from typing import Any

Span = tuple[tuple[int, int], tuple[int, int]]
"""From and up to a line (from 1) and column (in bytes, from 0)."""

_SPEAKING = re.compile(
    r"(Error|Exception|Warning)$|^(print|warn|warning|info|debug|error|log\w*|assert_never|"
    r"cast|TypeVar|NewType|reveal_type)$"
)
_IDLE_KEYWORDS = {
    "frozen",
    "slots",
    "repr",
    "eq",
    "order",
    "kw_only",
    "strict",
    "maxsize",
    "stacklevel",
}
_IDLE_DECORATORS = {
    "cache",
    "lru_cache",
    "cached_property",
    "overload",
    "override",
    "final",
    "wraps",
}
_LEFT_OUT = ("NoOp", "VariableReplacer", "VariableInserter")
_IDENTITY = re.compile(
    r"Comparison.*_(Eq|NotEq|Lt|LtE|Gt|GtE|Is|IsNot)_(Is|IsNot)$|_(Is|IsNot)_\w+$"
)


@functools.cache
def _operators() -> list[tuple[str, Any]]:
    """Return kinds of changes, each with an operator; several may be of a kind."""
    from cosmic_ray.operators.provider import OperatorProvider

    provider = OperatorProvider()
    return [
        (name.partition("_")[0], provider[name]())
        for name in sorted(provider)
        if name not in _LEFT_OUT and not _unfit(name)
    ]


def _unfit(name: str) -> bool:
    """Whether an operator exchanges equality and identity, or `-x` and `not x`; or a sum and `|`
    or `^`, which are the same for a base and a place within it that share no bits."""
    if name.startswith("ReplaceUnary") and name.endswith("_Not"):
        return True
    if name.endswith(("_Add_BitOr", "_Add_BitXor")):
        return True
    return bool(_IDENTITY.search(name)) and not name.endswith(("_Is_IsNot", "_IsNot_Is"))


def _name(node: ast.AST) -> str:
    match node:
        case ast.Call():
            return _name(node.func)
        case ast.Attribute():
            return node.attr
        case ast.Name():
            return node.id
    return ""


def _idle(node: ast.AST) -> Iterator[ast.AST | None]:
    """Yield the parts of a node that could change nothing but wording or types."""
    match node:
        case ast.JoinedStr() | ast.Assert():
            yield node
        case ast.Raise():
            yield node.exc if isinstance(node.exc, ast.Call) else None
            yield node.cause
        case ast.AnnAssign() | ast.arg():
            yield node.annotation
        case ast.FunctionDef() | ast.AsyncFunctionDef():
            yield node.returns
            for one in node.decorator_list:
                if _name(one) in _IDLE_DECORATORS:
                    one.col_offset -= 1  # of @
                    yield one
            if node.name in ("__repr__", "__str__"):
                yield node
        case ast.Call():
            if _SPEAKING.search(_name(node)):
                yield from (*node.args, *(keyword.value for keyword in node.keywords))
            yield from (one for one in node.keywords if one.arg in _IDLE_KEYWORDS)
        case ast.If() if _name(node.test) == "TYPE_CHECKING" or "__main__" in ast.dump(node.test):
            yield node
        case ast.Assign() if _of_types(node.value):
            yield node


def _of_types(value: ast.expr) -> bool:
    """Whether a value is a name for types: `A | B`, `dict[str, A]` and the like."""
    match value:
        case ast.BinOp(op=ast.BitOr()):
            return _of_types(value.left) and _of_types(value.right)
        case ast.Subscript() | ast.Name():
            return _name(value if isinstance(value, ast.Name) else value.value)[:1].isupper() or (
                _name(value if isinstance(value, ast.Name) else value.value)
                in ("dict", "list", "tuple", "set", "int", "str", "float", "bool", "bytes", "type")
            )
    return isinstance(value, ast.Constant) and value.value is None


def idle_spans(text: str) -> list[Span]:
    """Return the spans in which nothing is drawn."""
    return [
        ((part.lineno, part.col_offset), (part.end_lineno, part.end_col_offset))
        for node in ast.walk(ast.parse(text))
        for part in _idle(node)
        if part is not None
    ]


def code_lines(text: str) -> list[int]:
    """Return the lines, from 1, of statements that are no docstrings or bare strings."""
    tree = ast.parse(text)
    lines: set[int] = set()
    for node in ast.walk(tree):
        if isinstance(node, (ast.expr, ast.stmt)) and not _bare_string(node):
            lines.add(node.lineno)
    strings = {
        line
        for node in ast.walk(tree)
        if _bare_string(node)
        for line in range(node.lineno, node.end_lineno + 1)
    }
    return sorted(lines - strings)


def _bare_string(node: ast.AST) -> bool:
    return (
        isinstance(node, ast.Expr)
        and isinstance(node.value, ast.Constant)
        and isinstance(node.value.value, str)
    )


class PythonFile:
    """A file of Python from which mutants are drawn."""

    def __init__(self, text: str) -> None:
        self._text = text
        self.lines = code_lines(text)

    @functools.cached_property
    def _idle(self) -> list[Span]:
        return idle_spans(self._text)

    @functools.cached_property
    def _nodes(self) -> list[Any]:
        import parso

        return [*_walk(parso.parse(self._text))]

    @functools.cached_property
    def _dump(self) -> str:
        return ast.dump(ast.parse(self._text))

    def drawn(self, line: int, rng: random.Random) -> str | None:
        """Return the text with a mutant of a line: a place, a kind of change, then a change."""
        kinds: dict[tuple[int, str, int], list[tuple[Any, int]]] = {}
        for number, node in enumerate(self._nodes):
            if node.start_pos[0] <= line <= node.end_pos[0] and not _of_form(node):
                for kind, operator in _operators():
                    for index, (start, _) in enumerate(operator.mutation_positions(node)):
                        if start[0] == line and not self._is_idle(start):
                            kinds.setdefault((number, kind, start[1]), []).append((operator, index))
        order = sorted(kinds)
        rng.shuffle(order)
        for site in order:
            ways = kinds[site]
            rng.shuffle(ways)
            for operator, index in ways:
                text = self._mutated(site[0], operator, index)
                if text is not None:
                    return text
        return None

    def _is_idle(self, place: tuple[int, int]) -> bool:
        line = self._text.split("\n")[place[0] - 1]
        where = (place[0], len(line[: place[1]].encode()))
        return any(first <= where < last for first, last in self._idle)

    def _mutated(self, number: int, operator: Any, index: int) -> str | None:
        import parso

        tree = parso.parse(self._text)
        node = next(one for n, one in enumerate(_walk(tree)) if n == number)
        parent, place = node.parent, node.parent.children.index(node)
        try:
            parent.children[place] = operator.mutate(node, index)
        except AttributeError:  # cosmic-ray exchanges no exception whose name has a dot
            return None
        if parent.children[place] is None:
            del parent.children[place]
        text: str = tree.get_code()
        try:
            with warnings.catch_warnings():
                warnings.simplefilter("ignore")
                same = ast.dump(ast.parse(text)) == self._dump
                compile(text, "mutant", "exec")
        except (SyntaxError, ValueError):
            return None
        return None if same else text


def _of_form(node: Any) -> bool:
    """Whether a node is the whole file, or one of the marks among parameters."""
    return node.type == "file_input" or node.parent.type in ("parameters", "param", "lambdef")


def _walk(node: Any) -> Iterator[Any]:
    yield node
    for child in getattr(node, "children", ()):
        yield from _walk(child)

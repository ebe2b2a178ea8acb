"""What happens when somebody adds a member to an enumeration: every place must refuse it.

Places are `match` statements over members; they end in `assert_never`, so that the type checker
names them, and they raise when they run. Rooms use this for their own enumerations:
`tests/architecture/test_exhaustive.py` reads the source of all of them, and a test of the room runs
each place with a member that nobody knows.
"""

from __future__ import annotations

import ast
import enum
from collections.abc import Callable, Collection, Iterable, Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any, TypeVar

import pytest

from tests.conftest import room_folder

Member = TypeVar("Member", bound=enum.Enum)
Place = Callable[[Any], object]
"""Runs a place with a member."""


def stand_in(enumeration: type[Member]) -> Member:
    """Return a member as if somebody had just added it; it is equal to no other one."""
    kind: Any = enumeration._member_type_
    value = "added" if issubclass(kind, str) else max(len(enumeration), 1000)
    plain = kind is object
    member: Any = kind.__new__(enumeration) if plain else kind.__new__(enumeration, value)
    member._name_, member._value_ = "ADDED", value
    assert member not in tuple(enumeration)
    return member


def assert_refused(place: Place, member: enum.Enum) -> None:
    """Check that a place raises for a member that nobody knows, naming it."""
    with pytest.raises(AssertionError, match="ADDED"):
        consumed = place(member)
        if isinstance(consumed, Iterator):
            list(consumed)


def places_in(room: str, enumerations: Collection[str]) -> set[str]:
    """Return the functions of a room that match members, as `file.py:Class.function`."""
    return {
        f"{path.relative_to(room_folder(room))}:{name}"
        for path in sorted(room_folder(room).rglob("*.py"))
        for name, function in _functions(ast.parse(path.read_text()))
        if any(_is_over(node, enumerations) for node in ast.walk(function))
    }


def _functions(tree: ast.AST, prefix: str = "") -> Iterator[tuple[str, ast.AST]]:
    for node in ast.iter_child_nodes(tree):
        if isinstance(node, ast.ClassDef):
            yield from _functions(node, f"{prefix}{node.name}.")
        elif isinstance(node, ast.FunctionDef):
            yield prefix + node.name, node


def _is_over(node: ast.AST, enumerations: Collection[str]) -> bool:
    return isinstance(node, ast.Match) and any(
        _members(case.pattern, enumerations) for case in node.cases
    )


def _decides(node: ast.Compare, enumerations: Collection[str]) -> bool:
    """Whether something is compared with members; `member in collection` asks for that one only."""
    asks = len(node.ops) == 1 and isinstance(node.ops[0], ast.In | ast.NotIn)
    sides = node.comparators if asks else (node.left, *node.comparators)
    return any(_members(side, enumerations) for side in sides if not isinstance(side, _HELD))


_HELD = ast.Subscript | ast.Call | ast.Dict
"""What is compared there is what a member leads to."""


def _members(node: ast.AST, enumerations: Collection[str]) -> list[str]:
    """Return the members that are named in an expression."""
    return [
        ".".join(ast.unparse(part).split(".")[-2:])
        for part in ast.walk(node)
        if isinstance(part, ast.Attribute)
        and isinstance(part.value, ast.Name | ast.Attribute)
        and ast.unparse(part.value).split(".")[-1] in enumerations
        and part.attr.isupper()
    ]


def declared(paths: Iterable[Path]) -> dict[str, list[set[str]]]:
    """Return the members of all enumerations that modules declare, by name; flags are none."""
    found: dict[str, list[set[str]]] = {}
    for path in paths:
        text = path.read_text()
        for node in ast.walk(ast.parse(text)) if "Enum" in text else ():
            if isinstance(node, ast.ClassDef) and "Enum" in " ".join(map(ast.unparse, node.bases)):
                named = {
                    f"{node.name}.{target.id}"
                    for line in node.body
                    if isinstance(line, ast.Assign)
                    for target in line.targets
                    if isinstance(target, ast.Name)
                }
                found.setdefault(node.name, []).append(named)
    return found


def fall_through(path: Path, enumerations: Mapping[str, Sequence[set[str]]]) -> Iterator[str]:
    """Yield where a module decides by a member in a way that a new one slips through.

    These are comparisons with members, tables of some of them, and matches without `assert_never`.
    `enumerations` are the members by the name of the class, of each class with this name.
    """
    for node in ast.walk(ast.parse(path.read_text())):
        if isinstance(node, ast.Compare) and _decides(node, enumerations):
            yield f"line {node.lineno}: comparison {ast.unparse(node)}"
        elif isinstance(node, ast.Dict):
            keys = {name for key in node.keys if key for name in _members(key, enumerations)}
            whole = (some for name in {key.split(".")[0] for key in keys}
                     for some in enumerations[name])  # fmt: skip
            if keys and not any(some <= keys for some in whole):
                yield f"line {node.lineno}: table of {', '.join(sorted(keys))}"
        elif _is_over(node, enumerations):
            assert isinstance(node, ast.Match)
            *_, last = node.cases
            closed = "assert_never(" in "".join(map(ast.unparse, last.body))
            if ast.unparse(last.pattern) != "_" or last.guard or not closed:
                yield f"line {node.lineno}: match without assert_never"


def check_places(room: str, enumerations: Mapping[type[enum.Enum], Mapping[str, Place]]) -> None:
    """Check that the places known to a test are all that a room has."""
    known = {name for places in enumerations.values() for name in places}
    assert known == places_in(room, {enumeration.__name__ for enumeration in enumerations})

"""Who imports whom, and the rules of rooms.toml for it."""

from __future__ import annotations

import ast
import sys
import tomllib
from collections.abc import Iterator
from dataclasses import dataclass
from functools import cache
from pathlib import Path
from typing import Any

from tests.conftest import ENGINE, ROOT, room_folder

RULES: dict[str, Any] = tomllib.loads(Path(__file__).with_name("rooms.toml").read_text())
ALLOWED = {name: set(text.split()) for name, text in RULES["imports"].items()}
INSIDE = {
    room: {part: set(text.split()) for part, text in parts.items()}
    for room, parts in RULES["inside"].items()
}
ROOMS = [name for name in ALLOWED if (room_folder(name) / "__init__.py").is_file()]


@dataclass(frozen=True)
class Import:
    """A module imports another one; `typing`: only where types are checked."""

    importer: str
    imported: str
    line: int
    typing: bool


@cache
def modules() -> dict[str, Path]:
    """All modules that have rules, by name."""
    files = [path for room in ROOMS for path in sorted(room_folder(room).rglob("*.py"))]
    files += [path for folder in (ROOT, ENGINE) for path in sorted(folder.glob("*.py"))
              if path.stem in ALLOWED or folder == ENGINE]  # fmt: skip
    return {_name(path): path for path in files}


def _name(path: Path) -> str:
    """Return the name of a module, within the package or beside it."""
    parts = path.relative_to(ROOT).with_suffix("").parts
    return within(".".join(parts).removesuffix(".__init__"))


def within(name: str) -> str:
    """Return what a module of the package is called there: `ai8xtools.values` is `values`."""
    return name.removeprefix("ai8xtools.")


def imports_of(name: str, text: str, known: frozenset[str]) -> Iterator[Import]:
    """Yield what a module imports, in functions too; without the standard library."""
    tree = ast.parse(text)
    typing = {
        id(inner)
        for node in ast.walk(tree)
        if isinstance(node, ast.If) and ast.unparse(node.test) == "TYPE_CHECKING"
        for inner in ast.walk(node)
    }
    for node in ast.walk(tree):
        names: list[str] = []
        if isinstance(node, ast.Import):
            names = [alias.name for alias in node.names]
        elif isinstance(node, ast.ImportFrom) and node.module and not node.level:
            full = [f"{node.module}.{alias.name}" for alias in node.names]
            names = [one if within(one) in known else node.module for one in full]
        for one in map(within, names):
            if one.split(".")[0] not in sys.stdlib_module_names or one == "argparse":
                yield Import(name, one, node.lineno, id(node) in typing)


@cache
def imports() -> list[Import]:
    """All imports between modules that have rules, and of libraries."""
    known = frozenset(modules())
    return [
        one for name, path in modules().items() for one in imports_of(name, path.read_text(), known)
    ]


def _prefixes(name: str) -> Iterator[str]:
    parts = name.split(".")
    return (".".join(parts[:count]) for count in range(1, len(parts) + 1))


def breaks(one: Import) -> str:
    """Return the rule that an import breaks; empty if none."""
    room, _, rest = one.importer.partition(".")
    other, _, others_rest = one.imported.partition(".")
    if one.imported in (ENGINE.name, "root"):
        return ""
    if one.imported == "argparse":
        return "" if room in RULES["options"]["argparse"].split() else "only commands read options"
    if other != room:
        allowed = set().union(*(ALLOWED.get(prefix, set()) for prefix in _prefixes(one.importer)))
        return "" if allowed & {*_prefixes(one.imported)} else f"not among the imports of {room}"
    part, other_part = rest.partition(".")[0], others_rest.partition(".")[0]
    if room not in INSIDE or not part or part == other_part:
        return ""
    if part not in INSIDE[room]:
        return f"{part} is no part of {room} in rooms.toml"
    return "" if other_part in INSIDE[room][part] else f"not among what {room}.{part} may import"


def circles(found: list[Import]) -> list[list[str]]:
    """Return modules that import each other, other than for types."""
    graph: dict[str, set[str]] = {name: set() for name in modules()}
    for one in found:
        if not one.typing and one.importer in graph and one.imported in graph:
            graph[one.importer].add(one.imported)
    left = True
    while left:  # whoever imports nobody any more, or is imported by nobody, is in no circle
        wanted = {target for targets in graph.values() for target in targets}
        left = [name for name, targets in graph.items() if not targets or name not in wanted]
        for name in left:
            del graph[name]
        for targets in graph.values():
            targets.difference_update(left)
    return [sorted(graph)] if graph else []

"""The import rules of rooms.toml hold, and a violation of each would be noticed."""

from __future__ import annotations

import pytest

from tests.architecture.imports import (
    ALLOWED,
    INSIDE,
    ROOMS,
    Import,
    breaks,
    circles,
    imports,
    imports_of,
    modules,
)
from tests.conftest import ENGINE, ROOT


def test_repository_keeps_every_rule() -> None:
    broken = [
        f"{modules()[one.importer]}:{one.line}: imports {one.imported}: {rule}"
        for one in imports()
        if (rule := breaks(one))
    ]
    assert broken == []


def test_no_modules_import_each_other() -> None:
    assert circles(imports()) == []


def test_modules_that_import_each_other_are_found() -> None:
    ring = [
        "synthesis.network",
        "synthesis.layout",
        "synthesis.options",
    ]
    pairs = zip(ring, [*ring[1:], ring[0]], strict=True)
    assert circles([Import(a, b, 1, False) for a, b in pairs]) == [sorted(ring)]


def test_every_package_of_the_repository_has_a_rule() -> None:
    packages = {path.parent.name for root in (ROOT, ENGINE) for path in root.glob("*/__init__.py")}
    assert packages - {"tests", "tools", ENGINE.name} == set(ROOMS)


def test_every_rule_is_needed() -> None:
    """An entry that nothing uses would let something in one day."""
    used = {(one.importer, one.imported) for one in imports()}
    unused = [
        f"{name}: {allowed}"
        for name, entries in ALLOWED.items()
        for allowed in sorted(entries)
        if not any(
            f"{importer}.".startswith(f"{name}.") and f"{imported}.".startswith(f"{allowed}.")
            for importer, imported in used
        )
    ]
    assert unused == []
    unused = [
        f"{room}.{part}: {other}"
        for room, parts in INSIDE.items()
        for part, others in parts.items()
        for other in sorted(others)
        if not any(
            f"{importer}.".startswith(f"{room}.{part}.")
            and f"{imported}.".startswith(f"{room}.{other}.")
            for importer, imported in used
        )
    ]
    assert unused == []


def test_parts_of_a_room_stand_on_those_above_them() -> None:
    for room, parts in INSIDE.items():
        before: set[str] = set()
        for part, others in parts.items():
            before.add(part)
            later = others - before
            assert all((room, part, other) in LOOKING_DOWN for other in later), (room, part, later)


LOOKING_DOWN = {
    ("synthesis", "network", "network_validation"),
}
"""Imports against the order of rooms.toml that are still there."""


@pytest.mark.parametrize("importer", [*ALLOWED, *(f"{r}.{p}" for r in INSIDE for p in INSIDE[r])])
def test_what_is_not_allowed_is_noticed(importer: str) -> None:
    """Every other room, every library of the project, and what nobody has heard of."""
    room = importer.split(".")[0]
    allowed = ALLOWED.get(room, set()) | ALLOWED.get(importer, set())
    libraries = {"torch", "yaml", "jinja2", "rich", "unicorn", "torchvision", "argparse", "new"}
    for other in {*ROOMS, *libraries} - {room} - {name.split(".")[0] for name in allowed}:
        if other != "argparse" or room not in ("commands", "devices"):
            assert breaks(Import(f"{importer}.offender", f"{other}.thing", 1, False)) or (
                other == "argparse" and breaks(Import(f"{importer}.offender", other, 1, False))
            )
    for other in INSIDE.get(room, {}):
        one = Import(f"{importer}.offender", f"{room}.{other}", 1, False)
        part = importer.partition(".")[2]
        if part in INSIDE[room]:
            assert bool(breaks(one)) == (other not in INSIDE[room][part] and other != part)


def test_imports_in_functions_and_of_parts_are_seen() -> None:
    text = "import os\ndef f():\n    from ai8xtools.synthesis import network, layout as l\n"
    known = frozenset({"synthesis", "synthesis.network", "synthesis.layout"})
    found = [one.imported for one in imports_of("software.x", text, known)]
    assert found == ["synthesis.network", "synthesis.layout"]

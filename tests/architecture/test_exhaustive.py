"""Nothing falls through: places that decide by an operator or its like know all of them."""

from __future__ import annotations

import re
from pathlib import Path

import pytest

from tests.conftest import ROOT
from tests.exhaustive import declared, fall_through

ROOMS = ("ai8xtools", "device", "datasets", "models", "tools")
MODULES = [
    *(path for room in ROOMS for path in sorted((ROOT / room).rglob("*.py"))),
    *sorted(ROOT.glob("*.py")),
]
OPEN = {"Function", "Reduction", "Arithmetic"}
"""What nodes of a graph, and expressions, can compute: rewritings recognize some, and what none
knows is refused or stays."""


def test_no_member_slips_through() -> None:
    enumerations = declared(MODULES)
    for name in OPEN:
        del enumerations[name]
    assert {"Scheme.CHAIN", "Scheme.RESIDENT"} < enumerations["Scheme"][0]
    named = re.compile(rf"\b({'|'.join(enumerations)})\.")
    asking = (path for path in MODULES if named.search(path.read_text()))
    assert [f"{path.relative_to(ROOT)}, {text}" for path in asking
            for text in fall_through(path, enumerations)] == []  # fmt: skip


MATCH = """\
match shape:
    case Shape.ROUND:
        return 1
    case _:
        {last}
"""


SHAPES = {"Shape": [{"Shape.ROUND", "Shape.SQUARE", "Shape.OBLONG"}]}


@pytest.mark.parametrize(
    "source",
    [
        "flat = shape is not Shape.ROUND",
        "flat = shape in (Shape.SQUARE, Shape.OBLONG)",
        "flat = shapes.Shape.ROUND == shape",
        "AREAS = {Shape.ROUND: 3, Shape.SQUARE: 1}",
        MATCH.format(last="return 0"),
    ],
)
def test_what_would_let_one_through_is_found(source: str, tmp_path: Path) -> None:
    (tmp_path / "module.py").write_text(source)
    assert len([*fall_through(tmp_path / "module.py", SHAPES)]) == 1


@pytest.mark.parametrize(
    "source",
    [
        MATCH.format(last="assert_never(shape)"),
        "AREAS = {Shape.ROUND: 3, Shape.SQUARE: 1, Shape.OBLONG: 2}",
        "has_round = Shape.ROUND in shapes",
        "fits = found[Shape.ROUND] is None",
    ],
)
def test_what_knows_all_members_is_accepted(source: str, tmp_path: Path) -> None:
    (tmp_path / "module.py").write_text(source)
    assert [*fall_through(tmp_path / "module.py", SHAPES)] == []

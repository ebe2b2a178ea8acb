"""Nothing falls through: places that decide by an operator or its like know all of them."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.conftest import ROOT, room_folder
from tests.exhaustive import fall_through

ENUMERATIONS = {
    "answer": {"LayerForm"},
    "emulator": {"LayerKind", "ElementwiseOperation", "ActivationFunction"},
    "frontends": {"Kind", "OperatorKind"},
    "layers": {"OperatorKind", "PoolingKind", "Activation", "Stage"},
    "quantization": {"ClipMethod", "Division", "Guard"},
    "software": {"Activation", "Operator", "Join", "PoolKind", "Guard"},
    "synthesis": {"Operator", "Combination", "Activation", "InputPort", "Reading", "Kind", "Of",
                  "Fact", "LayerForm"},
    "training": {"OperatorKind", "Stage"},
}  # fmt: skip
"""By room the enumerations whose members change what is computed."""

ACCEPTED = {
    ("ai8xtools/emulator/decode/layer.py", "comparison kind is LayerKind.DEPTHWISE"):
        "the kind was read from registers in the line before",
    ("ai8xtools/emulator/report/describe.py",
     "comparison output.activation is not ActivationFunction.NONE"):
        "a new one is named by its value",
}  # fmt: skip
"""Why a new member does not slip through there."""

LATER = ("software/plan", "software/emit", "software/container")
"""Rooms that are not under the rule yet."""

_MODULES = [
    pytest.param(path, names, id=str(path.relative_to(ROOT)))
    for room, names in ENUMERATIONS.items()
    for path in sorted(room_folder(room).rglob("*.py"))
    if any(f"{name}." in path.read_text() for name in names)
    and not any(room in path.as_posix() for room in LATER)
]


@pytest.mark.parametrize(("path", "enumerations"), _MODULES)
def test_no_member_slips_through(path: Path, enumerations: set[str]) -> None:
    name = str(path.relative_to(ROOT))
    found = {text.partition(": ")[2] for text in fall_through(path, enumerations)}
    assert found == {text for file, text in ACCEPTED if file == name}


MATCH = """\
match shape:
    case Shape.ROUND:
        return 1
    case _:
        {last}
"""


@pytest.mark.parametrize(
    "source",
    [
        "flat = shape is not Shape.ROUND",
        "flat = shape in (Shape.SQUARE, Shape.OBLONG)",
        "AREAS = {Shape.ROUND: 3, Shape.SQUARE: 1}",
        MATCH.format(last="return 0"),
    ],
)
def test_what_would_let_one_through_is_found(source: str, tmp_path: Path) -> None:
    (tmp_path / "module.py").write_text(source)
    assert len([*fall_through(tmp_path / "module.py", {"Shape"})]) == 1


def test_closed_match_is_accepted(tmp_path: Path) -> None:
    (tmp_path / "module.py").write_text(MATCH.format(last="assert_never(shape)"))
    assert [*fall_through(tmp_path / "module.py", {"Shape"})] == []

"""docs/models.md lists every network with its size and description."""

from __future__ import annotations

import re

from tests.conftest import ROOT
from tests.models.cases import CASES, COUNTED, TEACHERS

PAGE = (ROOT / "docs" / "models.md").read_text()
ROWS = re.findall(r"^\| `(\w+)`(?: °)? \| [^|]+ \| ([\d,]+) \| (.+) \|$", PAGE, re.MULTILINE)


def test_every_network_is_listed_with_its_parameters() -> None:
    listed = {(name, int(count.replace(",", ""))) for name, count, _ in ROWS}
    assert {name for name, _ in listed} == {case.name for case in CASES} | set(TEACHERS)
    counted = {(case.name, count) for case, count in COUNTED} | set(TEACHERS.items())
    assert {row for row in listed if row not in counted} == {("ai87netmobilenetv2", 3478400)}


def test_every_description_is_listed() -> None:
    listed = {file for *_, text in ROWS for file in re.findall(r"`([\w-]+\.yaml)`", text)}
    assert listed == {path.name for path in (ROOT / "networks").glob("*.yaml")}

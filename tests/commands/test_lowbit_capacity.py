"""scripts/capacity.py: networks of some sizes and bits, as table and picture."""

from __future__ import annotations

import csv
from pathlib import Path
from xml.etree import ElementTree

import pytest

from ai8xtools.commands.lowbit.arguments.drawing import parse_capacity
from ai8xtools.commands.lowbit.capacity import draw


def test_each_network_has_a_line_and_a_dot(tmp_path: Path) -> None:
    out = str(tmp_path / "found")
    words = ["--data", ".", "--dataset", "digits", "--out", out, "--epochs", "1"]
    assert draw(parse_capacity([*words, "--encodings", "2bitsym,8bit", "--widths", "4,64"])) == 0
    with open(f"{out}.csv", newline="", encoding="ascii") as file:
        rows = list(csv.DictReader(file))
    assert [(row["encoding"], row["width"]) for row in rows] == [
        ("2bitsym", "4"), ("2bitsym", "64"), ("8bit", "4"), ("8bit", "64")
    ]  # fmt: skip
    assert rows[1]["weights"] == str(64 * (256 + 64 + 64 + 10)) and rows[1]["bits"] == "50432.0"
    assert "trained for 1 epochs, without augmentation" in Path(f"{out}.svg").read_text()
    picture = ElementTree.parse(f"{out}.svg")
    names = [element.tag.rpartition("}")[2] for element in picture.iter()]
    assert names.count("polyline") == 4 * 2 and names.count("circle") == 4 * 4
    assert names.count("line") == 2, "12 KB, where bits are shown"


@pytest.mark.parametrize(
    "words", [["--encodings", "3bit"], ["--widths", "0"], ["--widths", "a"], ["--epochs", "0"]]
)
def test_wrong_usage_ends_with_status_2(words: list[str]) -> None:
    with pytest.raises(SystemExit) as ended:
        parse_capacity(["--data", ".", "--out", "x", *words])
    assert ended.value.code == 2

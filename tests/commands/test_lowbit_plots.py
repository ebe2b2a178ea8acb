"""scripts/lowbit_plots.py: logs of trainings as curves, and error against bits."""

from __future__ import annotations

import csv
from pathlib import Path
from xml.etree import ElementTree

import pytest

from ai8xtools.commands.lowbit.arguments.drawing import parse_plots
from ai8xtools.commands.lowbit.logs import read_run
from ai8xtools.commands.lowbit.plots import plot
from ai8xtools.diagnostics.errors import InputError
from ai8xtools.training.lowbit.recipe import Recipe
from ai8xtools.writing.diagram import Axis, axis
from tests.conftest import ROOT


def log(path: Path, recipe: Recipe, accuracies: list[float]) -> str:
    """Write what a training prints: a teacher of three epochs first."""
    epochs = [
        f"Epoch [{number}] loss 0.1234  Top1: {accuracy:.3f}   (1.0 s)\n"
        for run in ([50.0, 60.0, 70.0], accuracies)
        for number, accuracy in enumerate(run)
    ]
    path.write_text(f"Log file for this run: x\n{recipe}\nTraining the teacher\n{''.join(epochs)}")
    return str(path)


def names_of(path: Path) -> list[str]:
    return [element.tag.rpartition("}")[2] for element in ElementTree.parse(path).iter()]


def test_trainings_of_a_name_have_a_line_each_and_one_of_their_mean(tmp_path: Path) -> None:
    small = Recipe(widths=(8,), encodings=("2bitsym", "8bit"))
    logs = [
        log(tmp_path / "one.log", Recipe(), [90.0, 98.0, 99.0]),
        log(tmp_path / "two.log", Recipe(), [97.0, 98.5, 98.8]),
        f"a & b={log(tmp_path / 'three=.log', small, [96.0, 97.0])}",
    ]
    out = str(tmp_path / "found")
    assert plot(parse_plots([*logs, "--out", out])) == 0
    with open(f"{out}.csv", newline="", encoding="utf-8") as file:
        rows = list(csv.DictReader(file))
    assert [(row["name"], row["epochs"], row["bytes"]) for row in rows] == [
        ("4bitsym", "3", "12608"), ("4bitsym", "3", "12608"),
        ("a & b", "2", str(256 * 8 // 4 + 8 * 10)),
    ]  # fmt: skip
    assert rows[2]["bits_per_weight"] == f"{(2 * 2048 + 8 * 80) / 2128:.4g}"
    curves, bits = (Path(f"{out}-{name}.svg") for name in ("curves", "bits"))
    assert names_of(curves).count("polyline") == 4 and names_of(bits).count("circle") == 2 * 3
    assert "4bitsym: 1.100 % (mean of 2)" in curves.read_text()
    assert names_of(bits).count("polyline") == 0
    larger = log(tmp_path / "four.log", Recipe(widths=(96, 96)), [99.2])
    assert plot(parse_plots([*logs, larger, "--out", out])) == 0
    assert names_of(bits).count("polyline") == 1, "of one name, with two sizes in bytes"


def test_the_published_logs_are_read() -> None:
    for name, last in (("dense", 60), ("windows", 60), ("cnn", 60)):
        run = read_run(str(ROOT / "trained" / f"mnist-lowbit-{name}.log"))
        assert len(run.accuracies) >= last and 98.5 < run.accuracies[-1] < 100


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("", "this is no log of a low-bit training"),
        (f"{Recipe()}\n", "this is no log of a low-bit training"),
        ("Recipe(epochs=open('x'))\n", "its recipe is damaged"),
        ("Recipe(((\n)\n", "this is no log"),
        ("Recipe(3)\n", "its recipe is damaged"),
        ("Recipe(enocding='NF4')\nEpoch [0] loss 0.1  Top1: 3.0 (1 s)\n", "unknown key 'enocding'"),
        (f"{Recipe()}\nEpoch [0] loss 0.1  Top1: 300.0 (1 s)\n", "an accuracy is 300 %"),
    ],
)
def test_other_files_are_refused(text: str, message: str, tmp_path: Path) -> None:
    (tmp_path / "x.log").write_text(text)
    with pytest.raises(InputError) as refused:
        plot(parse_plots([str(tmp_path / "x.log"), "--out", str(tmp_path / "y")]))
    code = "E604" if "key" in message else "E726"  # of the recipe, or of the log
    assert message in refused.value.message and refused.value.code == code
    assert [*tmp_path.iterdir()] == [tmp_path / "x.log"], "nothing is written"


@pytest.mark.parametrize(
    "words", [["--classes", "0"], ["--most", "0"], ["--most", "nan"], ["--most", "101"]]
)
def test_wrong_usage_ends_with_status_2(words: list[str]) -> None:
    with pytest.raises(SystemExit) as ended:
        parse_plots(["x.log", "--out", "y", *words])
    assert ended.value.code == 2


def test_ticks_are_round_numbers_within_the_axis() -> None:
    assert [text for _, text in Axis("", 0.3, 60.0, True).ticks()] == [
        "0.5", "1", "2", "5", "10", "20", "50"
    ]  # fmt: skip
    assert [text for _, text in axis("", [60]).ticks()] == [str(10 * i) for i in range(7)]
    narrow = axis("", [0.93, 1.15], logarithmic=True)
    assert [text for _, text in narrow.ticks()] == ["0.95", "1", "1.05", "1.1", "1.15"]
    assert narrow.place(0.5) == 0 and narrow.place(2) == 1
    alone = axis("", [12608.0], logarithmic=True)
    assert alone.ticks() and 0.4 < alone.place(12608.0) < 0.6

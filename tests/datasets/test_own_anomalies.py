"""Training of one class only, and tests of that and of others, for finding anomalies."""

from __future__ import annotations

import shutil
import subprocess
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch

from ai8xtools.commands.emulate.trained_on import TrainedOn, class_lines
from ai8xtools.commands.loader.prepare_code import prepare_header
from ai8xtools.training.tasks.anomaly import ScoreMeter
from datasets.errors import DatasetError
from datasets.own.preparation import Preparation
from datasets.own.sets import OwnData, open_data
from datasets.own.settings import ANOMALY, USUAL, DataSettings

RNG = np.random.default_rng(0)


def find(name: str, **settings: Any) -> OwnData:
    """Return the data of KIND:PATH in which anomalies are looked for."""
    kind, _, path = name.partition(":")
    return open_data(kind, path, DataSettings(task=ANOMALY, **settings).over(USUAL))


def table(path: Path, classes: str) -> None:
    """Write a row of two numbers for each letter, its class."""
    rows = [f"{a:.3f},{b:.3f},{name}" for (a, b), name in zip(RNG.normal(size=(99, 2)), classes,
            strict=False)]  # fmt: skip
    path.write_text("a,b,kind\n" + "\n".join(rows) + "\n")


def test_what_is_not_normal_is_for_tests(tmp_path: Path) -> None:
    table(tmp_path / "t.csv", "n" * 20 + "x" * 5 + "y" * 10)
    data = find(f"csv:{tmp_path}/t.csv", normal="n")
    assert data.classes == ("n", "anomaly") and data.samples == 16
    (_, train, _), (_, test, names) = data.read(True), data.read(False)
    assert train.tolist() == [0] * 16 and len(names) == len(test) == 19
    assert sorted(test.tolist()) == [0] * 4 + [1] * 15


def test_the_only_class_of_training_is_normal(tmp_path: Path) -> None:
    table(tmp_path / "train.csv", "n" * 20)
    table(tmp_path / "test.csv", "n" * 4 + "x" * 3)
    data = find(f"csv:{tmp_path}")
    assert data.read(False)[1].tolist() == [0] * 4 + [1] * 3


@pytest.mark.parametrize(("classes", "normal", "message"), [
    ("nnnnnxxxxx", None, "which class is normal? Training has n, x"),
    ("nnnnnxxxxx", "z", "which class is normal?"),
    ("n" * 10, None, "tests are of the class n only"),
])  # fmt: skip
def test_what_is_normal_must_be_known_and_others_be_there(
    tmp_path: Path, classes: str, normal: str | None, message: str
) -> None:
    table(tmp_path / "t.csv", classes)
    with pytest.raises(DatasetError) as caught:
        find(f"csv:{tmp_path}/t.csv", normal=normal)
    assert message in caught.value.message


def test_series_are_rows_as_a_whole_with_room_beyond_their_range(tmp_path: Path) -> None:
    x = RNG.uniform(-1, 1, size=(60, 2, 30)).astype(np.float32)
    y = np.repeat([0, 1], [50, 10])
    np.savez(tmp_path / "a.npz", x=x, y=y)
    data = find(f"series:{tmp_path}/a.npz", normal="0")
    how = data.preparation
    assert how.shape == (60, 1, 1) and how.fold == 30
    assert how.low == pytest.approx((-1.5, -1.5), abs=0.02)
    inputs = data.read(True)[0]
    assert inputs.shape == (40, 60, 1) and 80 < inputs.abs().max() < 90
    with pytest.raises(DatasetError, match="more than the 1024 numbers"):
        np.savez(tmp_path / "b.npz", x=np.tile(x, (1, 1, 20)), y=y)
        find(f"series:{tmp_path}/b.npz", normal="0")


def test_scores_of_a_pass() -> None:
    meter = ScoreMeter(0.1)
    outputs = torch.tensor([[0.0, 0.1], [0.3, 0.0], [0.5, 0.5], [0.1, 0.2]])
    meter.add(outputs[:2], torch.tensor([0, 0]))
    other = ScoreMeter(0.1)
    other.add(outputs[2:], torch.tensor([1, 1]))
    assert "AUC" not in meter.values(final=True)
    meter.merge(other)
    found = meter.values(final=True)
    assert found["Residual"] == pytest.approx(0.1 / 4)
    assert found["AUC"] == pytest.approx(0.75) and found["Threshold"] == 0.1
    assert (found["Anomalies"], found["Found"], found["Alarms"]) == (2, 1, 0)


HOW = Preparation("series", (4, 1, 1), low=(0.0, 0.0), high=(1.0, 1.0), fold=2)
OUTPUTS = np.array([[1, -2, 3, 0], [127, -128, 5, 0]])


def test_firmware_tells_which_inputs_are_anomalies() -> None:
    trained = TrainedOn(
        ("fine", ANOMALY), HOW, DataSettings(task=ANOMALY).over(USUAL), threshold=100.0
    )
    assert [*class_lines(OUTPUTS, trained)] == [
        "input 0: score 14: fine", "input 1: score 32538: anomaly",
    ]  # fmt: skip


@pytest.mark.skipif(shutil.which("gcc") is None, reason="compiles C")
def test_the_c_code_tells_it_too(tmp_path: Path) -> None:
    header = prepare_header(HOW, "fine", threshold=100)
    assert header is not None
    (tmp_path / "prepare.h").write_text(header)
    calls = "".join(
        f"{{ const int8_t o[] = {{{', '.join(map(str, row))}}}; print_anomaly(o); }}"
        for row in OUTPUTS.tolist()
    )
    (tmp_path / "main.c").write_text(f'#include "prepare.h"\nint main(void) {{ {calls} }}\n')
    command = ["gcc", "-std=c99", "-Wall", "-Wextra", "-Werror", "main.c", "-o", "main", "-lm"]
    subprocess.run(command, cwd=tmp_path, check=True)
    said = subprocess.run([tmp_path / "main"], capture_output=True, text=True, check=True).stdout
    assert said == ("Score 14, threshold 100: fine\nScore 32538, threshold 100: anomaly\n")

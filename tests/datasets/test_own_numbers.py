"""Numbers to learn in place of classes: from tables, arrays, recordings; and back from outputs."""

from __future__ import annotations

import re
import shutil
import subprocess
from itertools import chain
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from ai8xtools.commands.emulate.trained_on import TrainedOn, class_lines
from ai8xtools.commands.loader.prepare_code import prepare_header
from datasets.errors import DatasetError
from datasets.own.preparation import Preparation
from datasets.own.sets import OwnData, open_data
from datasets.own.settings import REGRESSION, USUAL, DataSettings

RNG = np.random.default_rng(0)


def learn(name: str, **settings: Any) -> OwnData:
    """Return the data of KIND:PATH whose samples have numbers to learn."""
    kind, _, path = name.partition(":")
    return open_data(kind, path, DataSettings(task=REGRESSION, **settings).over(USUAL))


def numbers(data: OwnData) -> list[Any]:
    """Return those of training and of tests."""
    return [data.read(part)[1].tolist() for part in (True, False)]


def rows(path: Path, titles: str = "", separator: str = ",") -> list[list[float]]:
    """Write and return 20 rows of three numbers that all differ."""
    values = np.round(RNG.normal(size=(20, 3)), 3).tolist()
    lines = [titles] * bool(titles)
    lines += [separator.join(str(v).replace(".", "," if separator == ";" else ".") for v in row)
              for row in values]  # fmt: skip
    path.write_text("\n".join(lines) + "\n")
    return values


@pytest.mark.parametrize(("titles", "label", "column", "name"), [
    ("", None, 2, "2"), ("a,b,c", None, 2, "c"), ("a,b,c", "b", 1, "b"), ("a,b,c", "0", 0, "a"),
    ("", "1", 1, "1"),
])  # fmt: skip
@pytest.mark.parametrize("separator", [",", ";"])
def test_a_column_of_a_table_is_learned(
    tmp_path: Path, titles: str, label: str | None, column: int, name: str, separator: str
) -> None:
    written = rows(tmp_path / "t.csv", titles.replace(",", separator), separator)
    data = learn(f"csv:{tmp_path}/t.csv", label=label)
    found = numbers(data)
    assert data.classes == (name,) and [len(part) for part in found] == [16, 4]
    wanted = [row[column] for row in written]
    assert sorted(chain(*found)) == pytest.approx(sorted(wanted))
    mean, deviation = data.preparation.target
    assert (mean, deviation) == pytest.approx((np.mean(found[0]), np.std(found[0])))
    assert data.preparation.shape == (2, 1, 1)


def test_tables_of_training_and_tests_stay_apart(tmp_path: Path) -> None:
    written = [rows(tmp_path / f"{part}.csv", "id,b,c") for part in ("train", "test")]
    found = numbers(learn(f"csv:{tmp_path}", label="b"))
    for part, values in zip(found, written, strict=True):
        assert part == pytest.approx([row[1] for row in values])


@pytest.mark.parametrize("kind", ["npz", "series"])
def test_arrays_have_a_number_for_each_sample(tmp_path: Path, kind: str) -> None:
    size = (2000, 4) if kind == "npz" else (2000, 2, 8)
    y = RNG.normal(size=2000)  # more numbers than there may be classes
    np.savez(tmp_path / "a.npz", x=RNG.normal(size=size), y=y)
    data = learn(f"{kind}:{tmp_path}/a.npz")
    found = numbers(data)
    assert data.classes == ("y",) and [len(part) for part in found] == [1600, 400]
    assert sorted(chain(*found)) == pytest.approx(np.sort(y), abs=1e-6)
    assert any("numbers to learn (y)" in note for note in data.notes)


def test_folders_of_recordings_may_be_called_by_numbers(tmp_path: Path) -> None:
    for name in ("1.5", "-2", "40"):
        for n in range(5):
            (tmp_path / name).mkdir(exist_ok=True)
            text = "".join(f"{value},{n}\n" for value in range(9))
            (tmp_path / name / f"{n}.csv").write_text(text)
    data = learn(f"series:{tmp_path}")
    assert sorted(chain(*numbers(data))) == [-2] * 5 + [1.5] * 5 + [40] * 5
    (tmp_path / "40").rename(tmp_path / "forty")
    with pytest.raises(DatasetError, match="the folder forty names a class"):
        learn(f"series:{tmp_path}")


def test_each_window_of_a_recording_has_the_number_of_its_last_step(tmp_path: Path) -> None:
    text = "".join(f"{n},{n % 5},{n / 10}\n" for n in range(200))
    (tmp_path / "long.csv").write_text(f"time,a,level\n{text}")
    data = learn(f"series:{tmp_path}/long.csv", window=10)
    found = [*chain(*numbers(data))]
    assert data.preparation.shape == (1, 10, 1)
    assert found == pytest.approx([(n + 9) / 10 for n in range(0, 200, 10)])
    assert any("that of a window's last step" in note for note in data.notes)


@pytest.mark.parametrize(("y", "message"), [
    ([3.0] * 20, "y hardly differs in training"), ([1e9 + n for n in range(20)], "hardly differs"),
    ([0.0, float("nan")] * 10, "y[1] is not finite"), (["a", "b"] * 10, "not numbers"),
])  # fmt: skip
def test_what_cannot_be_learned_is_refused(tmp_path: Path, y: list[Any], message: str) -> None:
    np.savez(tmp_path / "a.npz", x=RNG.normal(size=(20, 4)), y=np.array(y))
    with pytest.raises(DatasetError) as caught:
        learn(f"npz:{tmp_path}/a.npz")
    assert message in caught.value.message


def test_a_word_in_the_column_is_refused_with_its_line(tmp_path: Path) -> None:
    (tmp_path / "t.csv").write_text("a,b\n1,2\n2,high\n")
    with pytest.raises(DatasetError) as caught:
        learn(f"csv:{tmp_path}/t.csv")
    assert "the cell of column b is 'high'" in caught.value.message
    assert str(caught.value.place).endswith("t.csv:3")


HOW = Preparation("features", (1, 1, 1), low=(0.0,), high=(1.0,), target=(-3.25, 0.02))


def test_outputs_become_numbers_again() -> None:
    trained = TrainedOn(("level",), HOW, one=512.0)
    assert [*class_lines(np.array([[0], [512], [-1024]]), trained)] == [
        "input 0: level = -3.25", "input 1: level = -3.23", "input 2: level = -3.29",
    ]  # fmt: skip


@pytest.mark.skipif(shutil.which("gcc") is None, reason="compiles C")
@pytest.mark.parametrize(("mean", "deviation", "digits"), [
    (-3.25, 0.02, 5), (0.0, 1.0, 3), (12345.0, 987.0, 1), (5e6, 3e4, -1), (-7e9, 2e6, -3),
])  # fmt: skip
def test_the_c_code_prints_the_number(
    tmp_path: Path, mean: float, deviation: float, digits: int
) -> None:
    from dataclasses import replace

    header = prepare_header(replace(HOW, target=(mean, deviation)), '100 % "x"', 4096.0)
    assert header is not None
    (tmp_path / "prepare.h").write_text(header)
    outputs = [0, 1, -4096, 4096 * 3 + 17, -99999]
    calls = "".join(f"print_number({output});" for output in outputs)
    (tmp_path / "main.c").write_text(f'#include "prepare.h"\nint main(void) {{ {calls} }}\n')
    command = ["gcc", "-std=c99", "-Wall", "-Wextra", "-Werror", "main.c", "-o", "main", "-lm"]
    subprocess.run(command, cwd=tmp_path, check=True)
    said = subprocess.run([tmp_path / "main"], capture_output=True, text=True, check=True).stdout
    found = re.findall(r'^100 % "x" = (-?[\d.]+)$', said, re.M)
    wanted = [mean + deviation * output / 4096 for output in outputs]
    assert [float(text) for text in found] == pytest.approx(wanted, abs=0.500001 * 10.0**-digits)
    assert all(len(text.partition(".")[2]) == max(0, digits) for text in found)

"""Time series in CSV files: recordings in class folders, one long file with a column of classes."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import pytest
from hypothesis import given as drawn
from hypothesis import strategies as st

from ai8xtools.commands.train.arguments.parser import parse
from datasets.errors import DatasetError
from datasets.own.recordings import read_recordings, windows_of
from datasets.own.settings import USUAL, DataSettings


def read(path: Path, **settings: Any) -> Any:
    """Return series, classes and what is told."""
    x, y, _, told = read_recordings(path, DataSettings(**settings).over(USUAL))
    return x, y, told


def write(path: Path, rows: Any, titles: str = "") -> Path:
    """Write rows below titles, if there are some."""
    path.parent.mkdir(parents=True, exist_ok=True)
    lines = [titles] * bool(titles) + [",".join(map(str, row)) for row in rows]
    path.write_text("\n".join(lines) + "\n")
    return path


def steps(count: int, value: float = 0.0) -> Any:
    """Rows of two channels: the number of the step, and a value."""
    return [(n, value) for n in range(count)]


def long_file(path: Path, stretches: list[tuple[str, str, int]]) -> Path:
    """A row a step: its number, person and class."""
    marks = [(person, kind) for person, kind, count in stretches for _ in range(count)]
    rows = [(n, n % 7, person, kind) for n, (person, kind) in enumerate(marks)]
    return write(path, rows, "number,other,who,what")


def test_rows_are_steps_and_columns_are_channels(tmp_path: Path) -> None:
    for kind in "ab":
        for n in range(3):
            write(tmp_path / kind / f"{n}.csv", [(1, 5), (2, 6), (3, 7)], "x,y")
    x, y, _ = read(tmp_path)
    assert [len(part) for part in x] == [4, 2] and x[0].shape == (4, 2, 3)
    assert (np.concatenate(x) == [[1, 2, 3], [5, 6, 7]]).all()
    assert [sorted(part.tolist()) for part in y] == [["a", "a", "b", "b"], ["a", "b"]]


def test_windows_are_called_by_their_recording(tmp_path: Path) -> None:
    for kind in "ab":
        for n in range(4):
            write(tmp_path / kind / f"{n}.csv", [(10 * n + k, "ab".index(kind)) for k in range(9)])
    x, y, places, _ = read_recordings(tmp_path, DataSettings(window=3).over(USUAL))
    for part, labels, names in zip(x, y, places, strict=True):
        for one, label, name in zip(part, labels, names, strict=True):
            n, k = divmod(int(one[0, 0]), 10)
            assert name == f"{tmp_path / label / str(n)}.csv, window {k // 3}"


@pytest.mark.parametrize(
    ("title", "is_time"),
    [
        *((t, True) for t in ("time", "Time [s]", "t", "timestamp_ms", "Unnamed: 0", "")),
        *((t, False) for t in ("temperature", "tx", "times", "steps taken", "s1")),
    ],
)
def test_a_column_of_times_is_no_channel(tmp_path: Path, title: str, is_time: bool) -> None:
    for kind in "ab":
        for n in range(2):
            write(tmp_path / kind / f"{n}.csv", steps(4, 8), f"{title},y")
    x, _, told = read(tmp_path)
    assert x[0].shape[1] == 2 - is_time
    assert any("no channels: " in line for line in told) == is_time


def test_another_rate_is_told_once(tmp_path: Path) -> None:
    for n, rate in enumerate((100, 98, 50, 25)):
        for kind in "ab":
            rows = [(k * 1000 // rate, k % 3) for k in range(9)]
            write(tmp_path / kind / f"{n}.csv", rows, "time [ms],y")
    _, _, told = read(tmp_path)
    assert [line.partition(",")[0] for line in told if "another rate" in line] == [
        f"{tmp_path}/a/2.csv: time [ms] grows by 20 a row"
    ]


def test_one_column_is_one_channel(tmp_path: Path) -> None:
    for kind in "ab":
        for n in range(2):
            write(tmp_path / kind / f"{n}.csv", [(0.5,), (1.5,), (2.5,)], "my title" * n)
    assert read(tmp_path)[0][0].tolist() == [[[0.5, 1.5, 2.5]]] * 2


@pytest.mark.parametrize("apart", ["name", "folder", "column"])
def test_people_of_tests_are_in_no_training(tmp_path: Path, apart: str) -> None:
    for kind in "ab":
        for person in range(6):
            for n in range(2):
                name = {"name": f"Person_{person}-{n}.csv", "folder": f"person{person}/{n}.csv",
                        "column": f"{person}{n}.csv"}[apart]  # fmt: skip
                rows = [(*row, person) for row in steps(5, person)]
                rows, titles = (
                    (rows, "n,x,subject") if apart == "column" else (steps(5, person), "")
                )
                write(tmp_path / kind / name, rows, titles)
    x, y, told = read(tmp_path)
    people = [set(part[:, 1].flatten().tolist()) for part in x]
    assert people[0].isdisjoint(people[1]) and people[1] and len(x[0]) + len(x[1]) == 24
    assert set(y[1].tolist()) == {"a", "b"}
    assert any("of whom training has none" in line for line in told)
    alike, _, told = read(tmp_path, group="none")
    assert not any("of whom" in line for line in told) and alike[0].shape[1] == 2


def test_names_that_tell_only_some_people_are_told(tmp_path: Path) -> None:
    for kind in "ab":
        for name in ("subject1", "subject2", "subject2b"):
            write(tmp_path / kind / f"{name}.csv", steps(5))
    assert any("tests may be of people in training" in line for line in read(tmp_path)[2])


def test_no_window_holds_two_classes_or_people(tmp_path: Path) -> None:
    stretches = [(p, k, 23) for p in "PQR" for k in "ab" for _ in range(2)]
    path = long_file(tmp_path / "long.csv", [*stretches, ("P", "a", 2)])
    x, y, told = read(path, window=6, hop=4, group="who")
    starts = np.concatenate(x)[:, 0, 0]
    assert (np.concatenate(x)[:, 0] == starts[:, None] + np.arange(6)).all()
    # two stretches of a person and a class follow each other: the file has no border there
    assert (starts % 46 <= 40).all() and len(starts) == 6 * 11
    of = {"a": starts // 46 % 2 == 0, "b": starts // 46 % 2 == 1}
    assert all((of[k] == (np.concatenate(y) == k)).all() for k in "ab")
    assert len({*(x[1][:, 0, 0] // 92)}) == 1
    assert any("1 of 7 recordings fill less" in line for line in told)


def test_the_end_of_an_only_recording_is_for_tests(tmp_path: Path) -> None:
    for kind in "ab":
        write(tmp_path / kind / "all.csv", steps(100), "x,y")
    x, _, told = read(tmp_path, window=10, hop=5)
    assert x[0][:, 0].max() == 79 and x[1][:, 0].min() == 80
    assert sum("cut in two after 80 of 100 steps" in line for line in told) == 2


def test_tests_may_lie_apart(tmp_path: Path) -> None:
    for n, part in enumerate(("train", "test")):
        for kind in "ab":
            write(tmp_path / "folders" / part / kind / "1.csv", steps(5, n))
        rows = [(*row, kind) for kind in "ab" for row in steps(5, n)]
        write(tmp_path / "files" / f"{part}.csv", rows, "x,y,what")
    for folder in ("folders", "files"):
        x, y, _ = read(tmp_path / folder)
        assert [part[:, 1].tolist() for part in x] == [[[n] * 5] * 2 for n in range(2)]
        assert [part.tolist() for part in y] == [["a", "b"]] * 2


@drawn(st.integers(1, 60), st.integers(1, 30), st.integers(1, 40))
def test_windows_are_cut_at_every_hop(count: int, window: int, hop: int) -> None:
    count = max(count, -(-window // 2))
    values = np.stack([np.arange(count), -np.arange(count)], 1).astype(float)
    found = windows_of(values, window, hop)
    starts = found[:, 0, 0].astype(int)
    assert (found[:, 1] == -found[:, 0]).all()
    assert (starts == hop * np.arange(len(found))).all()
    assert (found[:, 0] == np.minimum(starts[:, None] + np.arange(window), count - 1)).all()
    assert starts[-1] + window >= count or count - starts[-1] - hop < window / 2
    assert count - starts[-1] >= window / 2


RIGHT = "x,y\n1,2\n3,4\n"


@pytest.mark.parametrize(
    ("text", "place", "message"),
    [
        ("x,y\n1,2\n3,\n", ":3", "column y is missing"),
        ("x,y\n1,2\nabc,4\n", ":3", "column x is 'abc'"),
        ("x,y\n1,nan\n3,4\n", ":2", "column y is 'nan'"),
        ("1,2\n3,1e39\n", ":2", "column 1 is 1e39"),
        ("x,y\n1,2\n3\n", ":3", "1 cells"),
        ("0,1,2\n1,2,2\n3,4,2\n", ":1", "column titles or data?"),
        ("x,y,z\n1,2,3\n3,4,5\n", "", "3 channels"),
        ("y,x\n1,2\n3,4\n", "", "its channels are y, x"),
        ("x,y\n", "", "no rows"),
        ("", "", "is empty"),
        ("time,index\n1,2\n3,4\n", "", "no column is left"),
        ("x,y\n" + "1,2\n" * 5, "", "steps, the longest one"),
    ],
)
def test_what_is_wrong_is_named_with_its_place(
    tmp_path: Path, text: str, place: str, message: str
) -> None:
    for name in ("a/1.csv", "a/2.csv", "b/1.csv", "b/2.csv"):
        (tmp_path / name).parent.mkdir(exist_ok=True)
        (tmp_path / name).write_text(RIGHT)
    file = tmp_path / "b/2.csv"
    file.write_text(text)
    with pytest.raises(DatasetError) as refusal:
        read(tmp_path)
    found = refusal.value
    wrong = tmp_path / "a/1.csv" if "longest" in message else file
    assert message in found.message and str(found.place) == f"{wrong}{place}" and found.remedy


@pytest.mark.parametrize(
    ("settings", "message"),
    [
        ({"window": 100}, "no recording of the class a fills half"),
        ({"group": "nobody"}, "no single column is 'nobody'"),
        ({"label": "0"}, "no number"),
        ({"window": 18}, "there is one recording of the class"),
        ({}, "there is one recording of the class"),
    ],
)
def test_settings_that_the_file_contradicts_are_refused(
    tmp_path: Path, settings: dict[str, Any], message: str
) -> None:
    path = long_file(tmp_path / "long.csv", [("P", "a", 20), ("P", "b", 20)])
    path.write_text(path.read_text().replace(",P,", ",1,"))
    with pytest.raises(DatasetError) as refusal:
        read(path, **settings)
    assert message in refusal.value.message and refusal.value.remedy


@pytest.mark.parametrize(
    ("words", "message"),
    [
        ("sounds:x --window 100", "--window: 100 is no multiple of 128"),
        ("series:x --hop 5", "--hop: add --window"),
        ("csv:x --window 128", "--window: only for"),
        ("npz:x --group who", "--group: only for"),
    ],
)
def test_options_of_other_data_are_refused(
    words: str, message: str, capsys: pytest.CaptureFixture[str]
) -> None:
    with pytest.raises(SystemExit):
        parse(["--model", "auto", "--dataset", *words.split()])
    assert message in capsys.readouterr().err

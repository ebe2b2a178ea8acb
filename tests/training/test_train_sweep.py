"""train.py --sweep: settings from a file, tried within a budget, again and again."""

from __future__ import annotations

import csv
import json
import subprocess
from collections.abc import Sequence
from pathlib import Path

import pytest

from ai8xtools.commands.train import sweep
from ai8xtools.commands.train.arguments.parser import parse
from ai8xtools.commands.train.arguments.sweeping import Range, Sweep
from ai8xtools.diagnostics.errors import InputError
from tests.run_script import run_script

pytest.importorskip("optuna", reason="searches settings (extra `sweep`)")

LINE = ("--model", "auto", "--dataset", "digits", "--sweep", "s.yaml", "--deterministic")
SPACE = "lr: {from: 0.001, to: 0.1, log: true}\nmodel: [narrow, wide]\nconfusion: [true, false]\n"
CYCLES = {"narrow": 1000, "wide": 3000}


@pytest.fixture
def calls(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> list[list[str]]:
    """A folder with settings, in which trainings only say how good they would be."""
    monkeypatch.chdir(tmp_path)
    Path("s.yaml").write_text(SPACE)
    words_of: list[list[str]] = []

    def called(words: Sequence[str], log: Path) -> subprocess.CompletedProcess[str]:
        words_of.append([*words])
        options = dict(word.split("=") for word in words if "=" in word)
        text, wide = "", options["--model"]
        if "--fits" in words:
            memories = {"flash": {"used": 10 * CYCLES[wide]}}
            takes = {"chip": "MAX78000", "cycles": CYCLES[wide], "memories": memories}
            text = f"a line\n[\n{json.dumps(takes)}]"
        else:
            folder = log.parent / f"{words[words.index('--name') + 1]}___now"
            folder.mkdir()
            top1 = 50 + 10 * (wide == "wide") - abs(float(options["--lr"]) - 0.01)
            (folder / "metrics.json").write_text(json.dumps({"best": {"epoch": 1, "top1": top1}}))
        return subprocess.CompletedProcess([], 0, text)

    monkeypatch.setattr(sweep, "_called", called)
    return words_of


def test_trials_go_on_where_they_ended_and_the_best_are_shown(calls: list[list[str]]) -> None:
    run_script("train.py", *LINE, "--trials", "3")
    assert sum("--fits" in words for words in calls) == 3
    done = run_script("train.py", *LINE, "--trials", "12")
    assert (done.returncode, sum("--fits" in words for words in calls)) == (0, 12)
    rows = list(csv.DictReader(Path("sweep/trials.csv").read_text().splitlines()))
    assert [row["trial"] for row in rows] == [*map(str, range(12))]
    assert len({row["--lr"] for row in rows}) == 12
    best = {}
    for name in CYCLES:
        alike = [row for row in rows if row["--model"] == name]
        best[name] = max(alike, key=lambda row: float(row["score"]))
    shown = [
        line.split()[0] for line in done.stdout.splitlines() if "--lr=" in line and "%" not in line
    ]
    assert shown == [best["narrow"]["trial"], best["wide"]["trial"], "python"]
    again = done.stdout.splitlines()[-1]
    assert f"--lr={best['wide']['--lr']} --model=wide" in again
    assert ("--confusion" in again.split()) == (best["wide"]["--confusion"] == "True")
    assert "--sweep" not in again and "<svg" in Path("sweep/front.svg").read_text()


@pytest.mark.parametrize("budget", [("--budget-cycles", "2999"), ("--budget-flash", "29999")])
def test_what_exceeds_the_budget_is_not_trained(
    calls: list[list[str]], budget: tuple[str, str]
) -> None:
    done = run_script("train.py", *LINE, "--trials", "8", *budget)
    assert "beyond the budget" in done.stdout
    trained = [words for words in calls if "--fits" not in words]
    assert trained and all("--model=narrow" in words for words in trained)


def test_a_folder_has_one_search(calls: list[list[str]]) -> None:
    run_script("train.py", *LINE, "--trials", "1")
    for words in (["--epochs", "3"], []):
        done = run_script("train.py", *LINE, "--trials", "2", *words)
        assert (done.returncode, "[E696]" in done.stderr) == ((1, True) if words else (0, False))
    Path("s.yaml").write_text("model: [narrow]\nlr: [0.1]\n")
    assert "[E696]" in run_script("train.py", *LINE, "--trials", "3").stderr
    assert len(calls) == 4


def test_what_fails_is_told_and_nothing_is_called_best(
    calls: list[list[str]], monkeypatch: pytest.MonkeyPatch
) -> None:
    def called(_words: Sequence[str], _log: Path) -> subprocess.CompletedProcess[str]:
        return subprocess.CompletedProcess([], 1, "more\nERROR: too wide [E123]\nend\n")

    monkeypatch.setattr(sweep, "_called", called)
    done = run_script("train.py", *LINE, "--trials", "2")
    assert done.returncode == 1 and "Trial 1: does not fit: ERROR: too wide [E123]" in done.stdout
    assert "No trial came to its end" in done.stdout


def test_settings_are_read(tmp_path: Path) -> None:
    file = tmp_path / "s.yaml"
    file.write_text(f"{SPACE}epochs: {{from: 10, to: 40, step: 10}}\n")
    line = ["--model", "x", "--dataset=digits", "--sweep", str(file), "--trials=7", "-b", "8"]
    asked = parse(line)[1]
    assert asked == Sweep(
        {"--lr": Range(0.001, 0.1, True), "--model": ("narrow", "wide"),
         "--confusion": (True, False), "--epochs": Range(10, 40, False, 10)},
        7, "sweep", None, None, ("--model", "x", "--dataset=digits", "-b", "8"),
    )  # fmt: skip
    assert Range(10, 40).whole and not Range(10, 40.5).whole and not Range(1, 9, step=0.5).whole


@pytest.mark.parametrize(
    ("text", "words"),
    [
        ("lrr: [1]", "Did you mean 'lr'?"),
        ("name: [a]", "unknown key"),
        ("sweep: [a.yaml]", "Allowed are the options of train.py for training (see --help)."),
        ("sense: [a]", "unknown key"),
        ("lr: []", "lr is []"),
        ("lr: 3", "lr is 3"),
        ("lr: [[1]]", "a list of values"),
        ("lr: {from: 2, to: 1}", "a range"),
        ("lr: {from: 0, to: 1, log: true}", "a range"),
        ("lr: {from: 1, to: 2, log: true, step: 1}", "a range"),
        ("lr: {from: 1, to: 2, step: 3}", "a range"),
        ("lr: {from: 1, to: .inf}", "a range"),
        ("lr: {from: 1, to: 2, by: 3}", "a range"),
        ("{}", "no option is named"),
        ("", "is empty"),
    ],
)
def test_other_settings_are_refused(tmp_path: Path, text: str, words: str) -> None:
    file = tmp_path / "s.yaml"
    file.write_text(text)
    with pytest.raises(InputError) as refused:
        parse(["--model", "x", "--dataset", "digits", "--sweep", str(file)])
    assert (
        refused.value.code == "E699" and words in f"{refused.value.message} {refused.value.remedy}"
    )


@pytest.mark.parametrize(
    "words", [["--trials", "3"], ["--sweep", "s", "--evaluate"], ["--sweep", "s", "--name", "x"]]
)
def test_options_that_do_not_go_together(words: list[str]) -> None:
    with pytest.raises(SystemExit):
        parse(["--model", "x", "--dataset", "digits", *words])

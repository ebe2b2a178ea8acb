"""Running train.py in this process, with small networks and data sets of tests/training/tiny."""

from __future__ import annotations

import json
import shutil
import sys
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pytest

import train
from ai8xtools.diagnostics import run

TINY = Path(__file__).with_name("tiny")


@dataclass(frozen=True)
class Done:
    """What a run of train.py left: exit status, texts, log folder."""

    status: int
    output: str
    error: str

    @property
    def folder(self) -> Path:
        return Path("latest_log_dir").resolve()

    @property
    def log(self) -> str:
        return Path("latest_log_file").read_text()

    @property
    def metrics(self) -> dict[str, Any]:
        metrics: dict[str, Any] = json.loads((self.folder / "metrics.json").read_text())
        return metrics


@pytest.fixture
def tiny(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> Callable[..., Done]:
    """Return a function that runs train.py in a folder with small networks and data sets.

    It takes the model, the data set and further options.
    """
    shutil.copytree(TINY, tmp_path, dirs_exist_ok=True)
    monkeypatch.chdir(tmp_path)
    # takes longer than the run
    monkeypatch.setattr("ai8xtools.commands.train.train.print_fits", lambda _options: None)
    usual = ["--deterministic", "-b", "16", "-j", "0", "--optimizer", "Adam", "--lr", "0.02"]

    def train_py(model: str, dataset: str, *options: str) -> Done:
        policy = [] if "--qat-policy" in options else ["--qat-policy", "None"]
        epochs = [] if "--epochs" in options else ["--epochs", "1"]
        arguments = ["--model", model, "--dataset", dataset, *usual, *policy, *epochs, *options]
        monkeypatch.setattr(sys, "argv", ["train.py", *arguments])
        try:
            status = run(train.main)
        except SystemExit as exc:  # argparse
            status = int(exc.code or 0)
        captured = capsys.readouterr()
        return Done(status, captured.out, captured.err)

    return train_py

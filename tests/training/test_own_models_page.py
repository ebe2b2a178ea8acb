"""The files and commands of docs/own-models.md work as they stand there."""

from __future__ import annotations

import importlib
import re
import shlex
import sys
from pathlib import Path

import pytest

from ai8xtools.diagnostics import run
from tests.conftest import ROOT

PAGE = (ROOT / "docs" / "own-models.md").read_text()


def blocks(language: str) -> list[str]:
    """Return the blocks of the page in a language."""
    return re.findall(rf"^```{language}\n(.*?)^```$", PAGE, re.MULTILINE | re.DOTALL)


def test_files_and_commands_work(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.chdir(tmp_path)
    files = re.findall(r"^## .*`(\w+/\w+\.py)`$", PAGE, re.MULTILINE)
    for file, text in zip([*files, "policy.yaml"], blocks("python") + blocks("yaml"), strict=True):
        Path(file).parent.mkdir(exist_ok=True)
        Path(file).write_text(text)
    commands, from_model, *_ = blocks("shell")  # the others name files of the reader's
    said = []
    for line in [*commands.splitlines(), *from_model.splitlines()]:
        _, script, *arguments = shlex.split(line)
        monkeypatch.setattr(sys, "argv", [script, *arguments])
        status = run(importlib.import_module(Path(script).stem).main)
        captured = capsys.readouterr()
        assert status == 0, f"{line}\n{captured.out}{captured.err}"
        said.append(captured.out)
    assert "Top1: 100.000" in said[2], said[2]
    assert "nothing is left to fill in" in said[3]

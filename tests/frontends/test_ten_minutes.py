"""docs/ten-minutes.md: its files and commands work as they stand."""

from __future__ import annotations

import importlib
import re
import runpy
import shlex
import sys
from pathlib import Path

import pytest

from ai8xtools.diagnostics import run
from tests.conftest import ROOT

PAGE = (ROOT / "docs" / "ten-minutes.md").read_text()


def blocks(language: str) -> list[str]:
    """Return the blocks of the page in a language."""
    return re.findall(rf"^```{language}\n(.*?)^```$", PAGE, re.MULTILINE | re.DOTALL)


@pytest.mark.slow
def test_files_and_commands_work(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.chdir(tmp_path)
    monkeypatch.syspath_prepend(str(tmp_path))
    files = re.findall(r"^## .*`(\w+\.py)`$", PAGE, re.MULTILINE)
    for file, text in zip(files, blocks("python"), strict=True):
        Path(file).write_text(text)
    said: dict[str, str] = {}
    for line in "".join(blocks("shell")).splitlines():
        _, script, *arguments = shlex.split(line)
        monkeypatch.setattr(sys, "argv", [script, *arguments])
        if script in files:
            runpy.run_path(script)
            status = 0
        else:
            status = run(importlib.import_module(Path(script).stem).main)
        captured = capsys.readouterr()
        assert status == 0, f"{line}\n{captured.out}{captured.err}"
        said[f"{script} {line.count('--fits')}"] = captured.out
    assert re.search(r"^fits +yes +yes$", said["ai8xize.py 1"], re.MULTILINE)
    before = float(said["learn.py 0"].split()[1])
    (after,) = re.findall(r"Top1: ([\d.]+)", said["train.py 0"])
    assert before > 90 and float(after) > before - 3
    assert "verified 10 words of the expected output" in said["ai8xize.py 0"]
    assert "PASS" in said["emulate.py 0"]

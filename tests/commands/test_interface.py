"""The stages as Python functions: the example notebook, and errors as exceptions."""

from __future__ import annotations

import ast
import json
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from ai8xtools import interface
from ai8xtools.diagnostics import DiagnosticError
from ai8xtools.interface import UsageError
from tests.conftest import ROOT

pytest.importorskip("unicorn", reason="the emulator needs unicorn (extra `emulator`)")
FILES = ("networks", "trained", "tests")


def executed(source: str, names: dict[str, Any]) -> Any:
    """Execute a cell; return the value of its last line if that is an expression."""
    body = ast.parse(source).body
    last = body.pop() if isinstance(body[-1], ast.Expr) else None
    exec(compile(ast.Module(body, []), "cell", "exec"), names)
    if not isinstance(last, ast.Expr):
        return None
    return eval(compile(ast.Expression(last.value), "cell", "eval"), names)


def test_the_notebook_runs(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    for name in FILES:
        Path(name).symlink_to(ROOT / name)
    cells = json.loads((ROOT / "docs" / "example.ipynb").read_text())["cells"]
    names: dict[str, Any] = {}
    values = [executed("".join(c["source"]), names) for c in cells if c["cell_type"] == "code"]
    fits, placed, run, accuracy = values
    assert "kernel columns" in fits._repr_html_()
    assert fits.json()[0]["cycles"] == placed.json()["cycles"] == 3733
    assert placed._repr_html_().startswith("<iframe ")
    assert run.passed and "PASS (1 inference)" in run._repr_html_()
    assert Path("projects/notebook-digits/cnn.c").is_file()
    assert names["run"].values.shape == (100, 10)
    assert accuracy > 0.85


def test_errors_are_exceptions(tmp_path: Path) -> None:
    with pytest.raises(UsageError, match="--nonsense"):
        interface.load("net.yaml", "net.pth.tar", nonsense=3)
    with pytest.raises(DiagnosticError, match=r"E101"):
        interface.load(tmp_path / "absent.yaml", "net.pth.tar").place()
    folder = tmp_path / "kept"
    folder.mkdir()
    (folder / "mine.c").write_text("mine")
    network = interface.load(
        ROOT / "networks" / "digits-chw-ai85.yaml",
        ROOT / "trained" / "digits-ai85digitsnet-qat8-q.pth.tar",
        sample_input=ROOT / "tests" / "sample_digits.npy",
    )
    with pytest.raises(DiagnosticError):
        network.generate(folder)
    assert [path.name for path in folder.iterdir()] == ["mine.c"]
    project = interface.Project(ROOT / "tests" / "emulator" / "project")
    with pytest.raises(Exception, match="integers"):
        project.emulate(np.zeros((1, 1, 4, 4)))

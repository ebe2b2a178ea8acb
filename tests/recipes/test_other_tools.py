"""Programs that drive these tools, such as Kenning's AutoML, find every option they give."""

from __future__ import annotations

import re
import sys
from pathlib import Path

import pytest
import torch

import ai8x
import ai8xize
import quantize
import train
from ai8xtools.commands.fuser import arguments as fuser
from ai8xtools.commands.loader.arguments import parser as loader
from ai8xtools.commands.quantize import arguments as quantizer
from ai8xtools.commands.train.arguments import parser as trainer
from ai8xtools.diagnostics import run
from models.ai85digitsnet import ai85digitsnet
from tests.conftest import ROOT

TRAINED = ROOT / "trained" / "digits-ai85digitsnet-qat8.pth.tar"


def _options(*chapters: Path) -> set[str]:
    """Return the options in the first column of the tables of a chapter."""
    found = set()
    for chapter in chapters:
        for row in re.findall(r"^\| (`-.*?) \|", chapter.read_text(), re.MULTILINE):
            found |= set(re.findall(r"`(--?[A-Za-z0-9][\w-]*\w)(?=[`, =])", row))
    return found


def test_every_option_of_the_reference_tools_is_known(shared: Path) -> None:
    known = {
        name
        for parser in (trainer.arguments(), quantizer.arguments(), fuser.arguments())
        for action in parser._actions
        for name in action.option_strings
    }
    of_training = _options(shared / "spec" / "training.md")
    assert len(of_training) > 80
    assert of_training - known == set()
    known = {name for action in loader.arguments()._actions for name in action.option_strings}
    chapters = ("network-description.md", "generated-project.md")
    of_loader = _options(*(shared / "spec" / name for name in chapters))
    assert len(of_loader) > 100
    assert of_loader - known == set()


def _run(monkeypatch: pytest.MonkeyPatch, tool: object, name: str, *words: str | Path) -> int:
    monkeypatch.setattr(sys, "argv", [name, *map(str, words)])
    try:
        return run(tool.main)  # type: ignore[attr-defined]
    except SystemExit as exc:
        return int(exc.code or 0)


def test_network_goes_from_its_template_to_the_project(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """As a program does that knows the checkpoint only: description, integers, C."""
    monkeypatch.chdir(tmp_path)
    (tmp_path / "sample").mkdir()
    assert _run(
        monkeypatch, train, "train.py", "--device", "MAX78002", "--model", "ai85digitsnet",
        "--dataset", "digits", "--yaml-template", tmp_path / "net.yaml", "--qat-policy", "None",
        "--exp-load-weights-from", TRAINED,
    ) == 0  # fmt: skip
    assert _run(
        monkeypatch, quantize, "quantize.py", TRAINED, "net-q.pth.tar", "--device", "MAX78002",
        "--verbose",
    ) == 0  # fmt: skip
    assert _run(
        monkeypatch, ai8xize, "ai8xize.py", "--verbose", "--log", "--test-dir", "out", "--prefix",
        "net", "--checkpoint-file", "net-q.pth.tar", "--config-file", "net.yaml", "--sample-input",
        ROOT / "tests/sample_digits.npy", "--device", "MAX78002", "--compact-data", "--mexpress",
        "--timer", "0", "--display-checkpoint", "--overwrite", "--softmax", "--no-scale-output",
    ) == 0  # fmt: skip
    assert "cnn_unload" in (tmp_path / "out/net/cnn.c").read_text()


def test_whole_network_is_refused_with_the_way_to_pass_it(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    ai8x.set_device(85, simulate=False, round_avg=False, verbose=False)
    whole = tmp_path / "whole.pth.tar"
    torch.save(ai85digitsnet(), whole)
    assert (
        _run(
            monkeypatch,
            quantize,
            "quantize.py",
            whole,
            tmp_path / "q.pth.tar",
            "--device",
            "MAX78002",
        )
        == 1
    )
    refusal = capsys.readouterr().err
    assert "models.ai85digitsnet" in refusal
    assert "nothing was executed" in refusal
    assert "'state_dict': model.state_dict()" in refusal
    assert "--model FILE.py:CLASS" in refusal
    assert not (tmp_path / "q.pth.tar").exists()

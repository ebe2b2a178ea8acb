"""--fits: what a network takes of both chips, from a description, a graph or a model."""

from __future__ import annotations

import json
import re
import sys
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import ai8xize
import train
from ai8xtools.diagnostics import run
from ai8xtools.software.profile import names
from ai8xtools.synthesis.emit import ProjectOptions
from ai8xtools.synthesis.fits import judge
from ai8xtools.synthesis.options import EncodeOptions, ResolveOptions
from ai8xtools.synthesis.pipeline import synthesize
from device import MAX78000
from tests.conftest import ROOT

MNIST = str(ROOT / "trained/mnist-ai85net5-qat8-q.pth.tar")
HAND = str(ROOT / "networks/mnist-hwc-ai85.yaml")
PROJECT = ProjectOptions(name="net", folder="net", command_line="", tool_version="")


def said(main: Any, capsys: Any, monkeypatch: Any, *words: str) -> tuple[int, str, str]:
    monkeypatch.setattr(sys, "argv", ["tool", *words])
    status = run(main)
    captured = capsys.readouterr()
    return status, captured.out, captured.err


def test_costs_are_those_of_the_network_itself() -> None:
    options = ResolveOptions(
        checkpoint_file=MNIST, sample_input=str(ROOT / "tests/sample_mnist.npy")
    )
    found = judge(HAND, MAX78000, options, EncodeOptions(), PROJECT)
    made = synthesize(HAND, MAX78000, options, EncodeOptions())
    counted = made.summary.statistics
    assert found.fits and found.memories is not None
    assert [layer.cycles for layer in found.layers] == [x.cycles for x in counted.layers]
    assert found.cycles == 70157
    assert found.memories["kernel columns"].used == 206
    assert found.memories["data"].used == 11328
    assert found.memories["bias"].used == counted.bias_bytes == 10
    assert found.input_words == 28 * 28
    assert found.load_words * 4 == pytest.approx(counted.weight_bytes + counted.bias_bytes, abs=4)


def test_model_without_checkpoint_as_table_and_json(
    capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    words = ("--model", "ai85net5", "--dataset", "MNIST", "--fits")
    status, table, _ = said(ai8xize.main, capsys, monkeypatch, *words)
    assert status == 0
    table = " ".join(table.split())
    assert "cycles 70,157 70,157" in table
    assert "1.40 ms at 50 MHz 0.41 ms (0.36 to 0.50) at 200 MHz" in table
    assert "5.59 ms (3.91 to 7.26) 5.07 ms (4.81 to 5.32)" in table
    assert " energy 90 uJ (54 to 130) 110 uJ (82 to 140) " in table
    status, text, _ = said(ai8xize.main, capsys, monkeypatch, *words, "json")
    chips = json.loads(text)
    assert status == 0
    assert [(one["chip"], one["fits"], one["cycles"]) for one in chips[:2]] == [
        ("MAX78000", True, 70157), ("MAX78002", True, 70157),
    ]  # fmt: skip
    others = {one["chip"]: one for one in chips[2:]}
    assert [*others] == [*names()]
    assert others["rp2040"]["fits"] and others["rp2040"]["core"] == "cortex-m0plus"
    assert others["rp2040"]["memories"]["SRAM"]["available"] == 264 * 1024
    assert not others["ch32v003"]["fits"] and "flash" in others["ch32v003"]["reasons"][0]
    assert [layer["name"] for layer in chips[0]["layers"]] == [
        "conv1", "conv2", "conv3", "conv4", "fc",
    ]  # fmt: skip


def test_the_options_of_the_project_count(
    tmp_path: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    """Data that overlap are refused unless they may; faster loading is told where it can be."""
    text = Path(HAND).read_text()
    assert text.count("out_offset: 0x2000") >= 1
    (tmp_path / "net.yaml").write_text(text.replace("out_offset: 0x2000", "out_offset: 0x0000", 1))
    words = ("--config-file", str(tmp_path / "net.yaml"), "--checkpoint-file", MNIST,
             "--sample-input", str(ROOT / "tests/sample_mnist.npy"), "--fits", "json")  # fmt: skip

    def fits(*more: str) -> tuple[int, list[dict[str, Any]]]:
        status, found, _ = said(ai8xize.main, capsys, monkeypatch, *words, *more)
        return status, json.loads(found)[:2]

    status, refused = fits()
    assert status == 1 and "overwrites the input data" in refused[0]["reasons"][0]
    status, chips = fits("--overlap-data")
    assert status == 0 and all(chip["fits"] for chip in chips)
    _, fast = fits("--overlap-data", "--device", "MAX78002", "--max-speed")
    times = [chip["load_milliseconds"] for chip in (chips[1], fast[1])]
    assert times[1] == pytest.approx(
        times[0] * (17.5 / 120 + 6.95 / 200) / (17.5 / 120 + 6.95 / 50)
    )
    slow = fits("--overlap-data", "--device", "MAX78002", "--no-pipeline")[1][1]["time"]
    cycles = chips[1]["cycles"]
    assert slow == pytest.approx(
        {"value": cycles / 5e4, "low": 0.98 * cycles / 5e4, "high": 1.02 * cycles / 5e4}
    )


def test_what_does_not_fit_is_told_with_its_node(
    capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    """Padded series of many channels are for MAX78000; the status is that of --device's chip."""
    name = f"{ROOT}/tests/frontends/plain_networks.py:Broad"
    words = ("--model", name, "--input-shape", "80x16", "--fits")
    status, table, _ = said(ai8xize.main, capsys, monkeypatch, *words)
    assert status == 0
    (verdicts,) = (line.split() for line in table.splitlines() if line.startswith("fits "))
    assert verdicts == ["fits", "yes", "no"]
    assert "padding with more than 64 channels=2; MAX78002 allows 0" in table
    status, _, _ = said(ai8xize.main, capsys, monkeypatch, *words, "--device", "MAX78002")
    assert status == 1


def test_mistakes_are_messages_and_not_verdicts(
    capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    words = ("--model", "ai85net5", "--dataset", "MNISTT", "--fits")
    status, table, error = said(ai8xize.main, capsys, monkeypatch, *words)
    assert (status, table) == (1, "")
    assert "'MNISTT' is not known [E601]" in error


def test_training_tells_before_it_begins(
    tmp_path: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    Path("policy.yaml").write_text(
        "start_epoch: 1\nweight_bits: 4\noverrides: {conv1: {weight_bits: 8}}\n"
    )
    words = ("--model", "ai85digitsnet", "--dataset", "digits", "--qat-policy", "policy.yaml")
    status, table, _ = said(train.main, capsys, monkeypatch, *words, "--fits")
    assert status == 0 and "3,733" in table
    columns = {
        line.split()[0]: line.split()[1] for line in table.splitlines() if line[:4] == "conv"
    }
    assert columns == {"conv1": "32", "conv2": "24", "conv3": "8"}  # half of those of 8 bits
    status, text, error = said(
        train.main, capsys, monkeypatch, *words, "--epochs", "1", "--optimizer", "Adam", "--lr",
        "0.001", "--cpu",
    )  # fmt: skip
    assert status == 0, error
    assert text.splitlines()[0] == (
        f"MAX78000: fits, 0.07 ms at 50 MHz, {_energy(table, 0)}; "
        f"MAX78002: fits, 0.02 ms (0.02 to 0.03) at 200 MHz, {_energy(table, 1)}"
    )


def _energy(table: str, column: int) -> str:
    """Return what a table says of the energy on a chip."""
    [row] = [line for line in table.splitlines() if line.startswith("energy  ")]
    return re.split(" {2,}", row)[1 + column]


NETWORK = """
import ai8x
from torch import nn


class Net(nn.Module):
    def __init__(self, num_classes=4, num_channels=1, dimensions=(8, 8), bias=True, **kwargs):
        super().__init__()
        self.one = ai8x.FusedConv2dReLU(1, 16, 3, padding=1, bias=bias, **kwargs)
        self.two = ai8x.Conv2d(16, 16, 3, padding=1, bias=bias, **kwargs)
        self.fc = ai8x.Linear(1024, num_classes, bias=bias, wide=True, **kwargs)

    def forward(self, x):
        x = self.two(self.one(x))
        return self.fc(x.flatten(1))
"""
WIDE = NETWORK.replace("(16, 16, 3,", "(16, 16, 3, wide=True,")
SINE = NETWORK.replace("self.two(self.one(x))", "self.two(self.one(x).sin()).relu()")
BESIDE = NETWORK.replace("ai8x.Linear(1024, num_classes, bias=bias, wide=True, **kwargs)",
                         "nn.Linear(1024, num_classes)")  # fmt: skip
DEEP = NETWORK.replace("(16, 16, 3,", "(16, 16, 3, groups=16,")
LARGE = NETWORK.replace("(1, 16, 3,", "(1, 256, 3,").replace("(16, 16, 3,", "(224, 16, 3,").replace(
    "self.two =", "self.mid = ai8x.Conv2d(256, 224, 3, padding=1, bias=bias)\n        self.two ="
).replace("self.one(x)", "self.mid(self.one(x))")  # fmt: skip


@pytest.mark.parametrize(
    ("text", "line", "cure", "change"),
    [
        (WIDE, 14, "Leave out wide=True", ("(16, 16, 3, wide=True,", "(16, 16, 3,")),
        (SINE, 14, "Change the model here", (".sin()", "")),
        (LARGE, 15, "120 instead of 224 outputs of mid: fits", ("224", "120")),
        (DEEP, 10, "Use groups=1", ("groups=16", "groups=1")),
        (BESIDE, 15, "Use ai8x.Linear", ("nn.Linear(1024, num_classes", "ai8x.Linear(1024, 4")),
    ],
    ids=["wide", "function", "large", "groups", "beside"],
)
def test_what_could_not_be_deployed_is_told_before_the_first_epoch_with_a_cure(
    tmp_path: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch,
    text: str, line: int, cure: str, change: tuple[str, str],
) -> None:  # fmt: skip
    monkeypatch.chdir(tmp_path)
    np.savez("x.npz", x=np.zeros((8, 8, 8), np.uint8), y=np.arange(8) % 4)
    words = ("--model", "net.py:Net", "--dataset", "npz:x.npz", "--epochs", "1", "--lr", "0.1",
             "--optimizer", "Adam", "--qat-policy", "None", "--device", "MAX78000")  # fmt: skip
    Path("net.py").write_text(text)
    strict, _, refused = said(train.main, capsys, monkeypatch, *words, "--strict")
    assert strict == 1 and f"net.py:{line}" in refused and cure in refused, refused
    monkeypatch.setattr("ai8xtools.training.session.run", lambda _options, **_others: None)
    if text in (WIDE, SINE):  # no chip ever reads sums of 32 bits
        status, _, told = said(train.main, capsys, monkeypatch, *words)
        assert (status, "W679" in told) == ((1, False) if text is WIDE else (0, True))
        assert f"net.py:{line}" in told and cure in told
    Path("net.py").write_text(text.replace(*change))
    assert said(train.main, capsys, monkeypatch, *words, "--strict")[::2] == (0, "")

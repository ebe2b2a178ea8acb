"""Checkpoints of networks that are not made of ai8x layers are refused by the names of tensors."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch
from torch import nn

import batchnormfuser
import quantize
from ai8xtools.checkpoint import read_checkpoint
from ai8xtools.diagnostics import run
from ai8xtools.quantization import foreign_tensors
from ai8xtools.training.catalog.own_file import own_model
from tests.conftest import ROOT

SEQUENTIAL = nn.Sequential(nn.Conv2d(3, 4, 3), nn.BatchNorm2d(4), nn.ReLU(), nn.Conv2d(4, 4, 1))


def status(main: Any, *arguments: object) -> int:
    return run(lambda: main([str(argument) for argument in arguments]))


def save(path: Path, state: dict[str, Any]) -> Path:
    torch.save({"epoch": 1, "arch": "net", "state_dict": state, "extras": {}}, path)
    return path


@pytest.mark.parametrize("script", ["quantize.py", "batchnormfuser.py"])
def test_plain_network_is_refused_by_its_tensors(
    tmp_path: Path, script: str, capsys: pytest.CaptureFixture[str]
) -> None:
    """Gammas of batch normalization were quantized as weights, and layers shared a shift."""
    source = save(tmp_path / "net.pth.tar", SEQUENTIAL.state_dict())
    output = tmp_path / "q.pth.tar"
    if script == "quantize.py":
        found = status(quantize.main, source, output, "--device", "MAX78000")
    else:
        found = status(batchnormfuser.main, "-i", source, "-o", output, "-oa", "net")
    error = capsys.readouterr().err
    assert found == 1 and not output.exists()
    assert "0.weight (a layer of PyTorch), 1.running_mean (batch normalization on its own)" in error
    assert "[E712]" in error and "--import" in error


FLAT = torch.ones(4, 4)
KERNEL = torch.ones(4, 4, 3, 3)


@pytest.mark.parametrize(
    ("state", "foreign"),
    [
        ({"conv1.op.weight": KERNEL, "conv1.bn.weight": FLAT[0], "conv1.bn.running_mean": FLAT[0]},
         []),
        ({"conv1.conv2d.weight": KERNEL, "fc.weight": FLAT}, []),
        ({"fc.weight": FLAT}, []),
        ({"conv1.weight": KERNEL, "conv1.output_shift": FLAT[0, :1]}, []),
        ({"conv1.op.weight": KERNEL, "conv1.weight_bits": FLAT[0, :1], "fc.weight": FLAT},
         ["fc.weight"]),
        ({"fc1.weight": FLAT, "fc2.weight": FLAT}, ["fc1.weight", "fc2.weight"]),
        ({"conv.op.weight": KERNEL, "norm.weight": FLAT[0]}, ["norm.weight"]),
        ({"rnn.weight_ih_l0": FLAT, "rnn.bias_ih_l0": FLAT[0]}, ["rnn.weight_ih_l0"]),
        ({"a.b.rnn.weight_hh_l1": FLAT, "a.b.rnn.bias_hh_l1": FLAT[0]}, ["a.b.rnn.weight_hh_l1"]),
        ({"weight_ih": FLAT, "weight_hh": FLAT, "bias_ih": FLAT[0]}, ["weight_ih", "weight_hh"]),
        ({"body.in_proj_weight": FLAT, "in_proj_weight": FLAT},
         ["body.in_proj_weight", "in_proj_weight"]),
        ({"a.bn.weight": FLAT[0], "weight": FLAT}, []),
        ({"a.b.weight": KERNEL, "a.output_shift": FLAT[0, :1]}, ["a.b.weight"]),
        ({"weight_ih.op.weight": KERNEL, "in_proj.weight_hh.op.weight": KERNEL}, []),
        ({"body.norm.weight": FLAT[0], "body.norm.running_mean": FLAT[0]},
         ["body.norm.running_mean"]),
        ({"running_mean": FLAT[0], "bn.running_mean": FLAT[0], "a.bn.running_mean": FLAT[0]},
         ["running_mean"]),
    ],
)  # fmt: skip
def test_which_tensors_are_foreign(
    tmp_path: Path, state: dict[str, Any], foreign: list[str]
) -> None:
    found = read_checkpoint(save(tmp_path / "net.pth.tar", state)).state_dict
    assert [name for name, _ in foreign_tensors(found)] == foreign


def test_low_bit_networks_are_told_where_they_go(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    source = ROOT / "trained" / "mnist-lowbit-dense.pth.tar"
    output = tmp_path / "q.pth.tar"
    assert status(quantize.main, source, output, "--device", "MAX78000") == 1
    error = capsys.readouterr().err
    assert "a low-bit network cannot be quantized: its layers are not those of ai8x" in error
    assert "quantize.py INPUT MODEL.h --device BITNET" in error and not output.exists()


HOOKED = """
import torch
from torch import nn

def net():
    model = nn.Sequential(nn.Conv2d(3, 4, 3), nn.ReLU(), nn.Flatten(), nn.Linear(144, 2))
    torch.manual_seed(0)
    model[0].register_forward_hook(lambda _module, _inputs, output: output * 0.5)
    return model
"""


@pytest.mark.parametrize("device", ["MAX78000", "MCU", "Q15"])
@pytest.mark.parametrize("proven", [True, False])
def test_what_an_import_cannot_see_is_taken_on_request_only(
    device: str, proven: bool, tmp_path: Path, monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
) -> None:  # fmt: skip
    """--no-prove-import takes a network whose hook the import does not see, and says so."""
    monkeypatch.chdir(tmp_path)
    (tmp_path / "net.py").write_text(HOOKED)
    torch.save(own_model("net.py:net", 2).make().state_dict(), "net.pth")
    np.save("samples.npy", np.random.default_rng(0).uniform(-1, 1, (8, 3, 8, 8)).astype("f4"))
    words = ["net.pth", "q.pth.tar", "--device", device, "--import", "--model", "net.py:net",
             "--calibrate", "samples.npy"]  # fmt: skip
    words.remove("--import") if device == "Q15" else None
    if proven:
        assert status(quantize.main, *words) == 1
        assert "E668" in capsys.readouterr().err and not Path("q.pth.tar").exists()
    else:
        assert status(quantize.main, *words, "--no-prove-import") == 0
        assert "Import: results were not compared" in capsys.readouterr().out

"""train.py --summary: tables, graphs and ONNX files of networks."""

from __future__ import annotations

import csv
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch
from torch import nn

import ai8x
from ai8xtools.diagnostics.errors import InputError
from ai8xtools.frontends.modules.tracing import trace
from ai8xtools.training.export.counting import count_effort, count_zeros
from ai8xtools.training.export.drawing import dot_text

Train = Callable[..., Any]


class _Residual(nn.Module):
    """One of everything: pooling, groups, transposed and strided operators, a sum, a join."""

    def __init__(self) -> None:
        super().__init__()
        self.first = ai8x.FusedMaxPoolConv2dReLU(4, 8, 3, padding=1)
        self.second = ai8x.Conv2d(8, 8, 1, bias=False)
        self.add = ai8x.Add()
        self.up = ai8x.ConvTranspose2d(8, 4, 3, stride=2, padding=1)
        self.pool = ai8x.MaxPool2d(2)
        self.plain = nn.Linear(16 * 12, 5)

    def forward(self, x: Any) -> Any:
        x = self.first(x)
        y = self.pool(self.up(self.add(self.second(x), x)))
        return self.plain(torch.cat([x, y], 1).flatten(1))


@pytest.fixture
def residual() -> nn.Module:
    ai8x.set_device(87, False, False, verbose=False)
    return _Residual().eval()


def test_multiplications_are_counted(residual: nn.Module) -> None:
    found = count_effort(residual, torch.zeros(1, 4, 8, 8))
    assert [(one.name, one.kind, one.weights, one.macs) for one in found] == [
        ("first", "Conv2d", 288, 288 * 16),
        ("second", "Conv2d", 64, 64 * 16),
        ("up", "ConvTranspose2d", 288, 288 * 16),
        ("plain", "Linear", 960, 960),
    ]
    assert tuple(found[0].input_shape) == (4, 4, 4)  # after pooling
    assert found[2].attributes == "k=3x3, stride=2x2, padding=1x1"
    with pytest.raises(InputError, match="cannot take inputs of 3x8x8") as refused:
        count_effort(residual, torch.zeros(1, 3, 8, 8))
    assert refused.value.code == "E630"


def test_effort_of_the_mnist_network(tiny: Train) -> None:
    done = tiny("ai85net5", "MNIST", "--summary", "compute")
    assert done.status == 0, done.error
    head, *rows = [
        [cell.strip() for cell in line.strip("|").split("|")]
        for line in done.output.splitlines()
        if line.startswith("|")
    ]
    assert head == [
        "Name", "Type", "Attrs", "IFM", "IFM volume", "OFM", "OFM volume", "Weights volume", "MACs",
    ]  # fmt: skip
    assert rows[1] == [
        "conv2", "Conv2d", "k=3x3, padding=2x2", "60x14x14", "11,760", "60x16x16", "15,360",
        "32,400", "8,294,400",
    ]  # fmt: skip
    assert done.output.endswith("Total MACs: 10,751,808\n")
    assert not Path("logs").exists()  # nothing is trained, nothing logged


def test_zeros_are_counted(tiny: Train) -> None:
    layer = nn.Conv2d(2, 2, 3)
    with torch.no_grad():
        layer.weight[0] = 0
    (found,) = count_zeros(layer)
    assert (found.name, found.nonzero, found.percent) == ("weight", 18, 50)
    done = tiny("tinyclassifier", "tinyclasses", "--summary", "sparsity")
    assert "Total sparsity: 0.00 %" in done.output
    assert list(csv.reader(Path("weights_sparsity.csv").read_text().splitlines())) == [
        ["parameter", "shape", "volume", "sparse volume", "sparsity level"],
        ["conv.op.weight", "4x1x3x3", "36", "36", "0.0000"],
        ["fc.op.weight", "4x64", "256", "256", "0.0000"],
    ]


def test_modules_are_listed(tiny: Train) -> None:
    done = tiny("tinynormalized", "tinyclasses", "--use-bias", "--summary", "modules")
    assert "| conv.bn   | BatchNorm2d |" in done.output
    done = tiny("tinyclassifier", "tinyclasses", "--summary", "model")
    assert done.output.startswith("Classifier(\n  (conv): FusedMaxPoolConv2dReLU(")


@pytest.mark.parametrize("kind", ["onnx", "onnx_simplified"])
def test_network_as_onnx(tiny: Train, kind: str, monkeypatch: pytest.MonkeyPatch) -> None:
    runtime = pytest.importorskip("onnxruntime")
    done = tiny("tinyclassifier", "tinyclasses", "--summary", kind, "--summary-filename", "net")
    assert done.output == "Saved the network as net.onnx\n", done.error
    session = runtime.InferenceSession("net.onnx", providers=["CPUExecutionProvider"])
    ai8x.set_device(85, False, False, verbose=False)
    torch.manual_seed(0)
    monkeypatch.syspath_prepend("models")
    model = __import__("tinynets").tinyclassifier(
        num_classes=4, bias=False, weight_bits=None, bias_bits=None, quantize_activation=False
    )
    x = torch.rand(1, 1, 8, 8) - 0.5
    with torch.no_grad():
        expected = model.eval()(x).numpy()
    (found,) = session.run(None, {"input": x.numpy()})
    np.testing.assert_allclose(found, expected, atol=1e-5)


def test_onnx_needs_its_package(tiny: Train, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "onnx", None)
    done = tiny("tinyclassifier", "tinyclasses", "--summary", "onnx")
    assert done.status == 1
    assert "pip install onnx" in done.error
    assert not Path("model.onnx").exists()


def test_graph_in_three_degrees_of_detail(residual: nn.Module) -> None:
    graph = trace(residual, torch.zeros(1, 4, 8, 8))
    whole = dot_text(residual, graph, "png")
    assert '[label="first\\nFusedMaxPoolConv2dReLU", fillcolor' in whole
    assert 'first -> second [label="8x4x4"];' in whole
    assert "first -> add [" in whole
    assert "flatten -> plain [" in whole
    simplified = dot_text(residual, graph, "png_simplified")
    assert "flatten" not in simplified
    assert "cat_1 -> plain [" in simplified or "cat -> plain [" in simplified
    assert "up\\nConvTranspose2d\\nweight 8x4x3x3" in dot_text(residual, graph, "png_w_params")


def test_graph_is_drawn_by_graphviz(tiny: Train, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("PATH", str(Path("bin").resolve()))
    done = tiny("tinyclassifier", "tinyclasses", "--summary", "png")
    assert done.status == 1
    assert "Install Graphviz" in done.error
    Path("bin").mkdir()
    program = Path("bin/dot")
    program.write_text(
        f"#!{sys.executable}\nimport sys\n"
        "assert sys.argv[1:] == ['-Tpng'] and sys.stdin.read().startswith('digraph')\n"
        "print('a picture')\n"
    )
    program.chmod(0o755)
    done = tiny("tinyclassifier", "tinyclasses", "--summary", "png", "--summary-filename", "g")
    assert done.output == "Saved the graph as g.png\n", done.error
    assert Path("g.png").read_text() == "a picture\n"
    program.write_text(f"#!{sys.executable}\nraise SystemExit('no font')\n")
    done = tiny("tinyclassifier", "tinyclasses", "--summary", "png")
    assert done.status == 1
    assert "dot cannot draw the graph: no font [E649]" in done.error
    assert not Path("model.png").exists()


def test_network_that_decides_by_its_data_is_not_drawn(residual: nn.Module) -> None:
    class Deciding(nn.Module):
        def forward(self, x: Any) -> Any:
            return x if x.sum() > 0 else -x

    with pytest.raises(InputError, match="cannot be traced"):
        trace(Deciding(), torch.zeros(1, 1))


def test_further_arguments_have_their_usual_values(residual: nn.Module) -> None:
    class Choosing(nn.Module):
        def __init__(self) -> None:
            super().__init__()
            self.first = nn.Linear(4, 4)
            self.second = nn.Linear(4, 4)

        def forward(self, x: Any, short: bool = False, other: Any = None) -> Any:
            x = self.first(x)
            return x if short or other is not None else self.second(x).view(x.shape)

    graph = trace(Choosing(), torch.zeros(1, 4))
    names = [node.name for node in graph.nodes]
    assert names == ["x", "first", "second", "getattr_1", "view", "output"]

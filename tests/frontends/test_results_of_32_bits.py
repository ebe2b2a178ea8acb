"""Results of 32 bits at any place of a network: delivered as they are, or refused by name.

The models are those of a user whose middle layer had wide=True, and graphs of integers that end in
strides, pooling, sums and joins of results that nothing rounds.
"""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch
from torch import nn

import ai8x
from ai8xtools.diagnostics.errors import InputError
from ai8xtools.frontends.modules.networks import describe
from ai8xtools.training.tasks.task import integer_range
from device import MAX78000
from tests.frontends.handler_faults import prove_integers

onnx = pytest.importorskip("onnx", reason="writing ONNX files needs the package onnx")
RANDOM = np.random.default_rng(7)
TENSORS = {
    "first": RANDOM.integers(-90, 91, (6, 3, 3, 3)), "next": RANDOM.integers(-90, 91, (4, 6, 3, 3)),
    "other": RANDOM.integers(-90, 91, (4, 6, 3, 3)), "part": 1 / 128, "half": 0.5, "low": -128,
    "high": 127, "lowest": -(2.0**29), "highest": 2.0**29,
    "odd": [128, 1, 0, -128],
}  # fmt: skip


class Graph:
    """Nodes of a graph from the input `x`."""

    def __init__(self) -> None:
        self.nodes: list[Any] = []

    def __call__(self, kind: str, *inputs: str, **attributes: Any) -> str:
        name = f"{kind.lower()}{len(self.nodes)}"
        self.nodes.append(onnx.helper.make_node(kind, inputs, [name], name=name, **attributes))
        return name

    def conv(self, data: str, *weights: str, **attributes: Any) -> str:
        return self("Conv", data, *weights, pads=[1, 1, 1, 1], **attributes)

    def rounded(self, data: str) -> str:
        halved = self("Floor", self("Add", self("Mul", data, "part"), "half"))
        return self("Clip", halved, "low", "high")

    def wide(self, data: str) -> str:
        return self("Clip", data, "lowest", "highest")

    def write(self, path: Path, *outputs: str) -> str:
        helper, kind = onnx.helper, onnx.TensorProto.FLOAT
        made = helper.make_graph(
            self.nodes, "net", [helper.make_tensor_value_info("x", kind, (1, 3, 8, 8))],
            [helper.make_tensor_value_info(one, kind, None) for one in outputs],
            [onnx.numpy_helper.from_array(np.asarray(v, np.float32), n)
             for n, v in TENSORS.items()],
        )  # fmt: skip
        model = helper.make_model(made, opset_imports=[helper.make_opsetid("", 17)])
        path.write_bytes(model.SerializeToString())
        return str(path)


def proven(path: str) -> tuple[list[int], int]:
    """Return the bits of the outputs and the nodes left to the application, once both agree."""
    network, left = prove_integers(path, RANDOM.integers(-128, 128, (3, 8, 8)))
    return [layer.output_width for layer in network.outputs()], len(left)


def ends(g: Graph) -> dict[str, Any]:
    """Return what follows a first layer, by name: outputs, or what the message names."""
    a = g("Relu", g.rounded(g.conv("x", "first")))
    return {
        "sums": (lambda: [g.conv(a, "next")], [32]),
        "limited": (lambda: [g.wide(g.conv(a, "next"))], [32]),
        "rounded": (lambda: [g.rounded(g.conv(a, "next"))], [8]),
        "flat": (lambda: [g("Flatten", g.wide(g.conv(a, "next")))], [32]),
        "two": (lambda: [g.wide(g.conv(a, "next")), g.rounded(g.conv(a, "other"))], [32, 8]),
        "joined": (lambda: [g("Concat", g.conv(a, "next"), g.conv(a, "other"), axis=1)], [32, 32]),
        "joined of both": (lambda: [g("Concat", g.wide(g.conv(a, "next")),
                                      g.rounded(g.conv(a, "other")), axis=1)], [32, 8]),
        "joined of bytes": (lambda: [g("Concat", g.rounded(g.conv(a, "next")),
                                       g.rounded(g.conv(a, "other")), axis=1)], [8]),
        "strided": (lambda: [g.wide(g.conv(a, "next", strides=[2, 2]))], "in steps"),
        "strided sums": (lambda: [g.conv(a, "next", strides=[2, 2])], "in steps"),
        "pooled": (lambda: [g("MaxPool", g.wide(g.conv(a, "next")), kernel_shape=[2, 2],
                              strides=[2, 2])], "are pooled"),
        "pooled sums": (lambda: [g("MaxPool", g.conv(a, "next"), kernel_shape=[2, 2],
                                   strides=[2, 2])], "are pooled"),
        "rectified": (lambda: [g.wide(g("Relu", g.conv(a, "next")))], "rectified"),
        "rectified sums": (lambda: [g("Relu", g.conv(a, "next"))], "rectified"),
        "sum": (lambda: [g("Add", g.wide(g.conv(a, "next")), g.wide(g.conv(a, "other")))],
                "which takes 8 bits"),
        "middle": (lambda: [g.wide(g.conv(g.conv("x", "first"), "next"))], "nothing rounds"),
        "odd bias": (lambda: [g.conv(a, "next", "odd")], "conv"),
        "middle limited": (lambda: [g.wide(g.conv(g.wide(g.conv("x", "first")), "next"))],
                           "which takes 8 bits"),
    }  # fmt: skip


@pytest.mark.parametrize("name", ends(Graph()))
def test_sums_of_a_graph_leave_the_network_or_are_refused(name: str, tmp_path: Path) -> None:
    """Right ones are compared with onnxruntime; refused ones name the layer and a remedy."""
    g = Graph()
    make, wanted = ends(g)[name]
    path = g.write(tmp_path / "net.onnx", *make())
    if isinstance(wanted, list):
        bits, left = proven(path)
        assert (sorted(bits), left) == (sorted(wanted), int(bits.count(32) and "joined" in name))
        return
    with pytest.raises(InputError) as caught:
        proven(path)
    assert caught.value.code in ("E677", "E670")
    told = f"{caught.value.message} {caught.value.remedy}"
    assert wanted in told and "conv" in told and "Round" in told


@pytest.fixture
def training_mode() -> Iterator[None]:
    ai8x.set_device(85, simulate=False, round_avg=False, verbose=False)
    yield
    ai8x.set_device(85, simulate=False, round_avg=False, verbose=False)


class Wide(nn.Module):
    """Layers of which any may have results of 32 bits; `flow` says what reads them."""

    def __init__(self, flow: str, *wide: str) -> None:
        super().__init__()
        self.flow = flow
        self.first = ai8x.FusedConv2dReLU(1, 4, 3, padding=1)
        heads = {name: ai8x.Conv2d(4, 4, 3, padding=1, wide=name in wide) for name in "abc"}
        self.heads = nn.ModuleDict(heads)
        self.add, self.pool = ai8x.Add(), ai8x.MaxPool2d(2, 2)

    def forward(self, x: Any) -> Any:
        a, b, c = (self.heads[name] for name in "abc")
        x = self.first(x)
        return {
            "end": lambda: a(x), "two ends": lambda: (a(x), b(x)),
            "joined": lambda: torch.cat((a(x), b(x)), 1), "flat": lambda: a(x).flatten(1),
            "middle": lambda: b(a(x)), "middle and end": lambda: (y := a(x), b(y)),
            "sum": lambda: self.add(a(x), b(x)), "combined": lambda: c(self.add(a(x), b(x))),
            "joined data": lambda: c(self.add(b(x), a(x))), "pooled": lambda: self.pool(a(x)),
            "pooled data": lambda: b(self.pool(a(x))),
        }[self.flow]()  # fmt: skip


@pytest.mark.parametrize("flow", ["end", "two ends", "joined", "flat"])
def test_wide_results_of_a_model_are_delivered(flow: str, training_mode: None) -> None:
    said = {"name": "net", "arch": "net", "dataset": "data"}
    several = flow in ("two ends", "joined")
    for wide in (("a", "b"), ("a",), ()):
        network = Wide(flow, *wide)
        found = describe(network, torch.zeros(1, 1, 8, 8), MAX78000, **said)
        bits = found.text.count("output_width: 32")
        assert bits == len([name for name in wide if several or name == "a"])
        assert found.text.count("output: true") == 2 * several
        assert found.left == (("cat",) if flow == "joined" else ())


@pytest.mark.parametrize(
    "flow", ["middle", "middle and end", "sum", "combined", "joined data", "pooled", "pooled data"]
)
def test_wide_results_that_a_layer_reads_are_refused(flow: str, training_mode: None) -> None:
    said = {"name": "net", "arch": "net", "dataset": "data"}
    describe(Wide(flow, "x"), torch.zeros(1, 1, 8, 8), MAX78000, **said)
    with pytest.raises(InputError, match=r"heads\.a: its results of 32 bits") as caught:
        describe(Wide(flow, "a"), torch.zeros(1, 1, 8, 8), MAX78000, **said)
    assert caught.value.code == "E677" and "Leave out wide=True" in str(caught.value.remedy)


def test_the_range_of_integers_is_that_of_each_output(training_mode: None) -> None:
    """Several wide outputs, or one within a block, have the range of one beside the others."""
    alone, inner = ai8x.Linear(4, 4, wide=True), nn.Sequential(nn.Sequential(ai8x.Linear(4, 4)))
    factor = integer_range(nn.Sequential(alone))
    assert factor == integer_range(nn.Sequential(inner, alone)) == integer_range(Wide("end", "a"))
    assert factor == integer_range(Wide("joined", "a", "b")) > integer_range(inner) == 128

"""Recurrent layers of PyTorch and ONNX compute what their own runtime does, step by step."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch
from torch import nn

from ai8xtools.checkpoint.onnx_graph import read_graph
from ai8xtools.frontends.graph import passes
from ai8xtools.frontends.graph.compositions import compositions
from ai8xtools.frontends.graph.nodes import Graph
from ai8xtools.frontends.graph.operators import Foreign
from ai8xtools.frontends.modules.door import read_module
from ai8xtools.frontends.onnx.door import read_operators
from ai8xtools.frontends.onnx.layers import WholeNumbers
from device import MAX78000

STEPS, FEATURES, HIDDEN = 4, 3, 5


class Recurrent(nn.Module):
    """A recurrent layer, all of whose results are results."""

    def __init__(self, layer: Any) -> None:
        super().__init__()
        self.layer = layer

    def forward(self, x: Any) -> Any:
        return self.layer(x)


def computed(graph: Graph, sample: Any) -> list[Any]:
    """Return the results of a graph whose recurrent layers are steps."""
    return passes.results(passes.improved(graph, (compositions,)), sample)


@pytest.mark.parametrize(
    "layer",
    [nn.GRU(FEATURES, HIDDEN, batch_first=True), nn.LSTM(FEATURES, HIDDEN, 2, batch_first=True),
     nn.GRU(FEATURES, HIDDEN, 2, bias=False, batch_first=True, bidirectional=True),
     nn.RNN(FEATURES, HIDDEN, nonlinearity="relu", batch_first=True),
     nn.LSTM(FEATURES, HIDDEN, batch_first=True, bidirectional=True)],
)  # fmt: skip
def test_modules(layer: Any) -> None:
    model, sample = Recurrent(layer).eval(), torch.randn(1, STEPS, FEATURES)
    with torch.no_grad():
        out, last = model(sample)
    wanted = [out, *(last if isinstance(last, tuple) else (last,))]
    found = computed(read_module(model, sample), sample.double().numpy())
    assert all(np.allclose(a, b, atol=1e-5) for a, b in zip(found, wanted, strict=True))


@pytest.mark.parametrize("layer", [
    nn.GRU(FEATURES, HIDDEN, 2, batch_first=True),
    nn.LSTM(FEATURES, HIDDEN, batch_first=True, bidirectional=True),
])  # fmt: skip
def test_a_layer_begins_with_constant_states(layer: Any) -> None:
    class Begun(Recurrent):
        def forward(self, x: torch.Tensor) -> Any:
            first = torch.linspace(-1, 1, 2 * HIDDEN).reshape(2, 1, HIDDEN)
            given = first if isinstance(layer, nn.GRU) else (first, -0.5 * first)
            return self.layer(x, given)[0]

    model, sample = Begun(layer).eval(), torch.randn(1, STEPS, FEATURES)
    with torch.no_grad():
        wanted = model(sample)
    found = computed(read_module(model, sample), sample.double().numpy())
    assert np.allclose(found[0], wanted, atol=1e-5)


def test_a_layer_that_begins_with_states_of_data_is_left_to_refusals() -> None:
    class Begun(Recurrent):
        def forward(self, x: torch.Tensor) -> Any:
            return self.layer(x, x[:, :1, :1].expand(1, 1, HIDDEN))

    model = Begun(nn.GRU(FEATURES, HIDDEN, batch_first=True)).eval()
    found = passes.improved(read_module(model, torch.randn(1, STEPS, FEATURES)), (compositions,))
    (foreign,) = (one.operator for one in found.nodes if isinstance(one.operator, Foreign))
    assert foreign.name == "GRU whose first states depend on data"
    (refusal,) = WholeNumbers(found, MAX78000, fractions=True).refusals
    assert "MCU" not in refusal.remedy


@pytest.mark.parametrize("kind", [nn.GRU, nn.LSTM])
def test_the_accelerator_refuses_the_layer_and_not_what_is_around_it(kind: Any) -> None:
    class Ordered(Recurrent):
        def forward(self, x: torch.Tensor) -> Any:
            return self.layer(x.transpose(1, 2))[0][:, -1]

    model = Ordered(kind(FEATURES, HIDDEN, batch_first=True)).eval()
    graph = read_module(model, torch.randn(1, FEATURES, STEPS))
    (refusal,) = WholeNumbers(graph, MAX78000, fractions=True).refusals
    assert refusal.node == "layer"
    assert "--device MCU" in refusal.remedy


def model_of(kind: str, path: Path, *, ways: int = 1, given: str = "WRB", **attributes: Any) -> str:
    """Write a graph of one layer whose results are all states and the last ones."""
    onnx = pytest.importorskip("onnx")
    helper, random = onnx.helper, np.random.default_rng(3)
    gates = {"RNN": 1, "GRU": 3, "LSTM": 4}[kind] * HIDDEN
    shapes = {"W": (ways, gates, FEATURES), "R": (ways, gates, HIDDEN), "B": (ways, 2 * gates),
              "H": (ways, 1, HIDDEN), "C": (ways, 1, HIDDEN), "P": (ways, 3 * HIDDEN),
              "S": (1,)}  # fmt: skip
    names = [name if name in given else "" for name in ("x", *"WRBSHCP")]
    names[0] = "x"
    while not names[-1]:
        names.pop()
    values = {name: random.normal(0, 0.7, shapes[name]).astype(np.float32) for name in given}
    values |= {"S": np.full(1, STEPS, np.int32)} if "S" in given else {}
    constants = [onnx.numpy_helper.from_array(value, name) for name, value in values.items()]
    outputs = [helper.make_tensor_value_info(name, 1, None) for name in ("y", "h")]
    node = helper.make_node(kind, names, ["y", "h"], "layer", hidden_size=HIDDEN, **attributes)
    data = helper.make_tensor_value_info("x", 1, [STEPS, 1, FEATURES])
    graph = helper.make_graph([node], "g", [data], outputs, constants)
    version = helper.make_opsetid("", 17)
    onnx.save(helper.make_model(graph, opset_imports=[version], ir_version=8), path)
    return str(path)


FORMS: list[tuple[str, dict[str, Any]]] = [
    ("GRU", {"linear_before_reset": 1, "given": "WRBH"}),
    ("GRU", {"direction": "bidirectional", "ways": 2}),
    ("LSTM", {"direction": "reverse", "given": "WRSHC"}),
    ("RNN", {"activations": ["Relu"], "given": "WR"}),
]


@pytest.mark.parametrize(("kind", "form"), FORMS)
def test_graphs(kind: str, form: dict[str, Any], tmp_path: Path) -> None:
    pytest.importorskip("onnxruntime")
    path = model_of(kind, tmp_path / "net.onnx", **form)
    sample = np.random.default_rng(0).normal(0, 1, (STEPS, 1, FEATURES))
    graph, refusals = read_operators(read_graph(path), (1, FEATURES), STEPS)
    assert not refusals
    wanted = executed_steps(path, sample)
    for a, b in zip(computed(graph, sample), wanted, strict=True):
        assert np.allclose(a, b, atol=1e-5)


def executed_steps(path: str, sample: Any) -> Any:
    """Return what onnxruntime computes; the first axis of a sample is time."""
    import onnxruntime

    session = onnxruntime.InferenceSession(path, providers=["CPUExecutionProvider"])
    return session.run(None, {"x": sample.astype(np.float32)})


@pytest.mark.parametrize(
    ("kind", "form", "said"),
    [("LSTM", {"given": "WRP"}, "its P"), ("GRU", {"clip": 0.5}, "its clip"),
     ("RNN", {"activations": ["Sigmoid"]}, "its activations")],
)  # fmt: skip
def test_other_forms_are_named(kind: str, form: dict[str, Any], said: str, tmp_path: Path) -> None:
    path = model_of(kind, tmp_path / "net.onnx", **form)
    _, (refusal,) = read_operators(read_graph(path), (1, FEATURES), STEPS)
    assert said in refusal.why

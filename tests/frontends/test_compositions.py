"""Operators compute what those do that they are made of; scales that mean nothing are refused."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
import torch
from torch import nn

from ai8xtools.checkpoint.onnx_graph import read_graph
from ai8xtools.frontends.graph import passes
from ai8xtools.frontends.graph.compositions import compositions
from ai8xtools.frontends.graph.nodes import Graph
from ai8xtools.frontends.graph.operators import MeanVarianceNormalization
from ai8xtools.frontends.modules.door import read_module
from ai8xtools.frontends.onnx.door import read_operators

Array = np.ndarray[Any, Any]
MODULES = [
    nn.ELU(0.7), nn.CELU(1.3), nn.SELU(), nn.Softplus(2.0), nn.Softsign(), nn.Mish(), nn.GELU(),
    nn.GELU("tanh"), nn.InstanceNorm2d(4, affine=True), nn.InstanceNorm2d(4), nn.GroupNorm(2, 4),
    nn.AdaptiveAvgPool2d((3, 4)), nn.AdaptiveMaxPool2d((2, 5)),
    nn.LayerNorm(6), nn.LayerNorm((5, 6), eps=0.1),
    nn.Upsample(scale_factor=2, mode="bilinear"),
    nn.Upsample((7, 3), mode="bilinear", align_corners=True),
]  # fmt: skip


def computed(graph: Graph, x: Array) -> Array:
    """Return the only result of a graph without what nothing computes."""
    (found,) = passes.results(passes.improved(graph, (compositions,)), x)
    assert found is not None
    return found


@pytest.mark.parametrize("module", MODULES, ids=str)
def test_modules_are_made_of_what_torch_computes(module: nn.Module) -> None:
    torch.manual_seed(0)
    for one in module.parameters():
        nn.init.normal_(one)
    x = torch.randn(1, 4, 5, 6) * 3
    with torch.no_grad():
        expected = module(x).numpy()
    graph = read_module(nn.Sequential(module), x)
    assert np.allclose(computed(graph, x.double().numpy()), expected, atol=1e-5)


def onnx_graph(nodes: list[Any], constants: dict[str, Array], path: Any) -> tuple[Graph, Any]:
    """Return the operators of a graph of x [1, 4, 5, 6] to y, and what onnx computes."""
    onnx = pytest.importorskip("onnx")
    helper = onnx.helper
    graph = helper.make_graph(
        nodes, "g", [helper.make_tensor_value_info("x", 1, [1, 4, 5, 6])],
        [helper.make_tensor_value_info("y", 1, None)],
        [onnx.numpy_helper.from_array(value, name) for name, value in constants.items()],
    )  # fmt: skip
    model = helper.make_model(graph, opset_imports=[helper.make_opsetid("", 21)], ir_version=10)
    onnx.save(model, path)
    operators, refusals = read_operators(read_graph(str(path)), (4, 5, 6))
    return operators, refusals or onnx.reference.ReferenceEvaluator(model)


@pytest.mark.parametrize(
    ("operator", "settings"),
    [("ThresholdedRelu", {"alpha": 0.4}), ("Celu", {"alpha": 0.4}), ("Selu", {}), ("Mish", {}),
     ("Elu", {"alpha": 2.0}), ("Softplus", {})],
)  # fmt: skip
def test_operators_of_onnx_are_made_of_what_it_computes(
    operator: str, settings: dict[str, float], tmp_path: Any
) -> None:
    pytest.importorskip("onnx.reference")
    node = pytest.importorskip("onnx").helper.make_node(operator, ["x"], ["y"], "n", **settings)
    graph, evaluator = onnx_graph([node], {}, tmp_path / "net.onnx")
    x = np.random.default_rng(1).normal(0, 2, (1, 4, 5, 6)).astype(np.float32)
    assert np.allclose(computed(graph, x), evaluator.run(None, {"x": x})[0], atol=1e-5)


@pytest.mark.parametrize("axis", [-1, 2])
def test_layers_are_normalized_from_an_axis_on(axis: int, tmp_path: Any) -> None:
    pytest.importorskip("onnx.reference")
    node = pytest.importorskip("onnx").helper.make_node(
        "LayerNormalization", ["x", "gain", "offset"], ["y"], "n", axis=axis, epsilon=0.1
    )
    rng = np.random.default_rng(2)
    constants = {name: rng.normal(0, 1, (4, 5, 6)[axis % 4 - 1 :]).astype(np.float32)
                 for name in ("gain", "offset")}  # fmt: skip
    graph, evaluator = onnx_graph([node], constants, tmp_path / "net.onnx")
    x = rng.normal(0, 2, (1, 4, 5, 6)).astype(np.float32)
    assert np.allclose(computed(graph, x), evaluator.run(None, {"x": x})[0], atol=1e-5)


@pytest.mark.parametrize("square", ["Pow", "Mul"])
def test_normalization_that_is_written_out_is_recognized(square: str, tmp_path: Any) -> None:
    """As PyTorch exports it to versions of ONNX before 17."""
    pytest.importorskip("onnx.reference")
    node = pytest.importorskip("onnx").helper.make_node
    second = "two" if square == "Pow" else "less"
    nodes = [
        node("ReduceMean", ["x", "axes"], ["mean"]), node("Sub", ["x", "mean"], ["less"]),
        node(square, ["less", second], ["square"]),
        node("ReduceMean", ["square", "axes"], ["variance"]),
        node("Add", ["variance", "epsilon"], ["more"]), node("Sqrt", ["more"], ["root"]),
        node("Div", ["less", "root"], ["y"]),
    ]  # fmt: skip
    constants = {"axes": np.array([-1]), "epsilon": np.array([0.01], np.float32),
                 "two": np.float32(2)}  # fmt: skip
    graph, evaluator = onnx_graph(nodes, constants, tmp_path / "net.onnx")
    x = np.random.default_rng(3).normal(0, 2, (1, 4, 5, 6)).astype(np.float32)
    assert np.allclose(computed(graph, x), evaluator.run(None, {"x": x})[0], atol=1e-5)
    (found,) = passes.improved(graph, (compositions,)).outputs
    assert found.operator == MeanVarianceNormalization((3,), float(np.float32(0.01)))


SCALES = {"s": np.float32(0.03), "z": np.uint8(120), "by": np.float32([0.02, 0.03, 0.5, 0.1]),
          "many": np.int8([0, 3, -7, 100])}  # fmt: skip


@pytest.mark.parametrize(("scale", "zero", "axis"), [("s", "z", 1), ("by", "many", 1)])
def test_integers_stand_for_values(scale: str, zero: str, axis: int, tmp_path: Any) -> None:
    pytest.importorskip("onnx.reference")
    make = pytest.importorskip("onnx").helper.make_node
    nodes = [make("QuantizeLinear", ["x", scale, zero], ["q"], "q", axis=axis),
             make("DequantizeLinear", ["q", scale, zero], ["y"], "y", axis=axis)]  # fmt: skip
    constants = {scale: np.asarray(SCALES[scale]), zero: np.asarray(SCALES[zero])}
    graph, evaluator = onnx_graph(nodes, constants, tmp_path / "net.onnx")
    x = np.random.default_rng(1).normal(0, 3, (1, 4, 5, 6)).astype(np.float32)
    assert np.allclose(computed(graph, x), evaluator.run(None, {"x": x})[0], atol=1e-5)


@pytest.mark.parametrize(
    ("scale", "zero", "said"),
    [(0.0, 0, "no number above zero"), (-1.0, 0, "no number above zero"),
     (np.nan, 0, "no number above zero"), (1.0, [0, 1], "no integer for each scale")],
)  # fmt: skip
def test_scales_that_stand_for_nothing_are_refused(
    scale: float, zero: Any, said: str, tmp_path: Any
) -> None:
    pytest.importorskip("onnx.reference")
    make = pytest.importorskip("onnx").helper.make_node
    constants = {"s": np.float32([scale]), "z": np.asarray(zero, np.int8)}
    nodes = [make("QuantizeLinear", ["x", "s", "z"], ["y"], "q")]
    _, refusals = onnx_graph(nodes, constants, tmp_path / "net.onnx")
    assert said in refusals[0].why

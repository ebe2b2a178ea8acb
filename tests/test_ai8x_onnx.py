"""Exported models compute the same elsewhere, and the network loader takes their integers."""

from __future__ import annotations

import copy
import warnings
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from numpy.typing import NDArray
from torch import Tensor, nn

import ai8x
from ai8xtools.checkpoint.onnx import read_onnx
from ai8xtools.synthesis.options import EncodeOptions
from ai8xtools.synthesis.pipeline import synthesize
from device import MAX78000
from tests.ai8x_random import RandomLayer, random_layers
from tests.synthesis.networks import describe, files, mask

onnx = pytest.importorskip("onnx")
runtime = pytest.importorskip("onnxruntime")


@pytest.fixture(autouse=True)
def _leave_no_trace() -> Iterator[None]:
    yield
    ai8x.set_device(85, simulate=False, round_avg=False, verbose=False)


def _export(model: nn.Module, x: Tensor, path: Path, *, dynamo: bool = False) -> None:
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        more: dict[str, Any] = {"external_data": False, "verbose": False} if dynamo else {}
        torch.onnx.export(model.eval(), (x,), str(path), dynamo=dynamo, **more)


def _run(path: Path, x: Tensor) -> NDArray[Any]:
    """Compute with onnxruntime, on one thread and without rewriting the graph."""
    options = runtime.SessionOptions()
    options.intra_op_num_threads = 1
    session = runtime.InferenceSession(str(path), options, providers=["CPUExecutionProvider"])
    found: NDArray[Any] = session.run(None, {session.get_inputs()[0].name: x.numpy()})[0]
    return found


def _operators(path: Path) -> list[str]:
    return [node.op_type for node in onnx.load(path).graph.node if node.op_type != "Constant"]


@torch.no_grad()
def _fill_with_integers(layer: Any, bits: int) -> None:
    """Give a layer weights of `bits` bits, a bias and a shift, as quantize.py does."""
    limit = 1 << (bits - 1)
    layer.op.weight.copy_(torch.randint(-limit, limit, layer.op.weight.shape))
    layer.op.weight.view(-1)[0] = -limit
    if layer.op.bias is not None:
        layer.op.bias.copy_(torch.randint(-128, 128, layer.op.bias.shape) * 2.0 ** (bits - 1))
    layer.init_module(bits, bits, True, 1.0)
    layer.output_shift.copy_(torch.randint(-4, 2, (1,)))
    layer.set_functions()


@settings(
    max_examples=40, deadline=None,
    suppress_health_check=[HealthCheck.function_scoped_fixture, HealthCheck.too_slow],
)  # fmt: skip
@given(
    drawn=random_layers(batchnorm=True),
    mode=st.sampled_from(["float", "qat", "simulate"]),
)
def test_exported_layers_compute_the_same(tmp_path: Path, drawn: RandomLayer, mode: str) -> None:
    drawn.set_device(simulate=mode == "simulate")
    layer, x = drawn.make().eval(), drawn.integers()
    if mode == "simulate":
        _fill_with_integers(layer, drawn.bits)
    else:
        x = x / 128
    if mode == "qat":
        layer.init_module(drawn.bits, drawn.bits, True, drawn.quantile)
    wanted = layer(x).detach()
    model = nn.Sequential(layer)
    ai8x.onnx_export_prep(model)
    path = tmp_path / "layer.onnx"
    _export(model, x, path)
    found = _run(path, x)
    if mode == "float" or drawn.batchnorm:
        step = 1 if mode == "simulate" else 1 / 128 if mode == "qat" else 2e-5
        np.testing.assert_allclose(found, wanted.numpy(), rtol=0, atol=step)
    else:
        np.testing.assert_array_equal(found, wanted.numpy())


class _Network(nn.Module):
    """A little of everything that the loader reads from ONNX, for images of 3x8x8."""

    def __init__(self) -> None:
        super().__init__()
        self.first = ai8x.FusedConv2dReLU(3, 4, 3, padding=1)
        self.second = ai8x.FusedMaxPoolConv2d(4, 4, 3, padding=1)
        self.up = ai8x.FusedConvTranspose2dReLU(4, 4, 3, padding=1, bias=False)
        self.third = ai8x.FusedAvgPoolConv2dReLU(4, 4, 1)
        self.add = ai8x.Add()
        self.last = ai8x.Linear(4 * 4 * 4, 10, bias=True, wide=True)

    def forward(self, x: Tensor) -> Tensor:
        x = self.second(self.first(x))
        x = self.add(x, self.third(self.up(x)))
        result: Tensor = self.last(x.flatten(1))
        return result


BITS = {"first": 8, "second": 4, "up": 8, "third": 2, "last": 8}


def _quantized_network() -> _Network:
    ai8x.set_device(85, simulate=True, round_avg=False, verbose=False)
    torch.manual_seed(1)
    model = _Network().eval()
    for name, bits in BITS.items():
        _fill_with_integers(getattr(model, name), bits)
    return model


def _description(model: _Network) -> str:
    """Describe the network; the loader learns shifts from here and widths from the values."""
    four = mask(4)
    shifts = {name: int(getattr(model, name).output_shift.item()) for name in BITS}
    layers: list[dict[str, Any]] = [
        {"processors": mask(3), "op": "Conv2d", "pad": 1, "activate": "ReLU"},
        {"processors": four, "op": "Conv2d", "pad": 1, "max_pool": 2, "pool_stride": 2},
        {"processors": four, "op": "ConvTranspose2d", "pad": 1, "activate": "ReLU"},
        {
            "processors": four, "op": "Conv2d", "kernel_size": "1x1", "pad": 0, "avg_pool": 2,
            "pool_stride": 2, "activate": "ReLU", "out_offset": 0x2000,
        },
        {
            "processors": four, "op": "Linear", "flatten": True, "output_width": 32,
            "eltwise": "add", "in_sequences": [1, 3], "in_offset": 0, "out_offset": 0x4000,
        },
    ]  # fmt: skip
    named = [
        {"output_shift": shifts[name], **keys} for name, keys in zip(BITS, layers, strict=True)
    ]
    return describe(*named, arch="exported")


@pytest.mark.parametrize(
    "dynamo",
    [False, pytest.param(True, marks=pytest.mark.slow)],
    ids=["torchscript", "torch.export"],
)
def test_exported_integers_are_what_the_network_loader_takes(tmp_path: Path, dynamo: bool) -> None:
    if dynamo:
        pytest.importorskip("onnxscript")
    model = _quantized_network()
    x = torch.randint(-128, 128, (1, 3, 8, 8), generator=torch.Generator().manual_seed(2)).float()
    wanted = model(x).detach()
    kept = copy.deepcopy(model)
    ai8x.onnx_export_prep(model)
    path = tmp_path / "net.onnx"
    _export(model, x, path, dynamo=dynamo)
    np.testing.assert_array_equal(_run(path, x), wanted.numpy())

    layers = read_onnx(path).layers
    assert len(layers) == len(BITS)
    for name, found in zip(BITS, layers, strict=True):
        layer = getattr(kept, name)
        np.testing.assert_array_equal(found.weights, layer.op.weight.detach().numpy())
    (tmp_path / "net.yaml").write_text(_description(kept))
    options = files(tmp_path, x[0].numpy().astype(np.int64), checkpoint_file=str(path))
    made = synthesize(str(tmp_path / "net.yaml"), MAX78000, options, EncodeOptions())
    assert [layer.weight_bits for layer in made.network.layers] == list(BITS.values())
    np.testing.assert_array_equal(
        made.activations.outputs[len(BITS) - 1].ravel(), wanted[0].numpy()
    )


@pytest.mark.parametrize(
    ("remove_clamp", "last"), [(False, ["Pow", "Mul", "Relu"]), (True, ["Conv", "Relu"])]
)
def test_simplified_graphs_show_operators_without_rounding(
    tmp_path: Path, remove_clamp: bool, last: list[str]
) -> None:
    ai8x.set_device(85, simulate=False, round_avg=False, verbose=False)
    model = nn.Sequential(ai8x.FusedConv2dReLU(2, 3, 3), ai8x.FusedAvgPoolConv2dReLU(3, 3, 1))
    ai8x.initiate_qat(model, {"weight_bits": 8})
    unrounded = model[1].op(nn.functional.avg_pool2d(model[0].op(torch.ones(1, 2, 6, 6)).relu(), 2))
    ai8x.onnx_export_prep(model, simplify=True, remove_clamp=remove_clamp)
    torch.testing.assert_close(model(torch.ones(1, 2, 6, 6)), unrounded.relu())
    path = tmp_path / "graph.onnx"
    _export(model, torch.ones(1, 2, 6, 6), path)
    operators = _operators(path)
    assert operators[-len(last) :] == last
    if remove_clamp:
        assert operators == ["Conv", "Relu", "AveragePool", "Conv", "Relu"]


def test_steps_of_a_network_itself_are_exported_too() -> None:
    ai8x.set_device(85, simulate=True, round_avg=True, verbose=False)
    model = nn.Sequential(ai8x.Quantize(), ai8x.Round(), ai8x.Floor(), ai8x.Clamp(-1, 1))
    x = torch.linspace(-300, 300, 601)
    wanted = model(x)
    ai8x.onnx_export_prep(model)
    kinds = ["QuantizeONNX", "RoundingONNX", "FloorONNX", "ClampONNX"]
    assert [type(step).__name__ for step in model] == kinds
    assert torch.equal(model(x), wanted)
    ai8x.onnx_export_prep(model, simplify=True)
    simplified = nn.Sequential(ai8x.Quantize(), ai8x.Clamp(-1, 1))
    ai8x.onnx_export_prep(simplified, simplify=True)
    assert torch.equal(simplified(x), x)

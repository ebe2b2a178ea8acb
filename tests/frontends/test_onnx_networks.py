"""ONNX graphs become descriptions with numpy alone; nodes that are not expressible are named."""

from __future__ import annotations

import re
import subprocess
import sys
import warnings
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import numpy as np
import pytest
import torch
import yaml

import ai8x
import ai8xize
import quantize
from ai8xtools.checkpoint import Checkpoint, read_checkpoint
from ai8xtools.checkpoint.errors import CheckpointError
from ai8xtools.commands.loader.graph_proof import executed, prove_graph
from ai8xtools.commands.loader.options import ModelSource
from ai8xtools.diagnostics import run
from ai8xtools.diagnostics.errors import InputError
from ai8xtools.frontends.modules.networks import describe
from ai8xtools.frontends.modules.plain.network import import_network
from ai8xtools.frontends.onnx.network import describe_onnx
from ai8xtools.synthesis.options import EncodeOptions, ResolveOptions
from ai8xtools.synthesis.parse import Described
from ai8xtools.synthesis.simulate import simulate
from ai8xtools.synthesis.understand import understand
from device import MAX78000
from tests.conftest import ROOT
from tests.frontends import plain_networks as plain
from tests.networks.deployed import BY_FILE, with_random_weights

onnx = pytest.importorskip("onnx", reason="writing ONNX files needs the package onnx")


@pytest.fixture(autouse=True)
def device_as_before() -> Iterator[None]:
    yield
    ai8x.set_device(85, simulate=False, round_avg=False, verbose=False)


def exported(network: Any, x: torch.Tensor, path: Path) -> str:
    """Write a network in simulation as train.py --summary onnx does."""
    network(x)
    ai8x.onnx_export_prep(network, False)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        torch.onnx.export(network, (x,), str(path), dynamo=False, input_names=["input"])
    return str(path)


@pytest.mark.parametrize(
    "file",
    [
        "digits-chw-ai85", "mnist-mixed-chw-ai85", "cifar100-residual-hwc-ai85", "kws20-v1-ai85",
        "firetest-cifar10-hwc-ai85", "svhn-tinierssd-hwc-ai85", "bayer2rgb-hwc-ai85",
    ],
)  # fmt: skip
def test_exported_network_computes_what_the_model_does(file: str, tmp_path: Path) -> None:
    """Shifts, widths, rounding and activations are read from the graph; `mixed` has 2 to 8 bits."""
    deployed = BY_FILE[file]
    checkpoint, model = with_random_weights(deployed, tmp_path)
    wanted = deployed.output(model)
    x = torch.from_numpy(deployed.integers()).float()[None]
    path = exported(model, x, tmp_path / "net.onnx")
    found, tensors = describe_onnx(path, None, None)
    options = replace(
        deployed.resolving(tmp_path, checkpoint), checkpoint_file=path, tensors=tensors
    )
    described = Described(found.text, found.model, found.nodes)
    network, _, problems = understand(described, None, options)
    assert not [p for p in problems if p.severity == "error"]
    outputs = simulate(network, average_rounding=False).outputs
    results = [outputs[layer.index].ravel() for layer in network.outputs()]
    np.testing.assert_array_equal(np.concatenate(results), wanted)
    loader: Any = SimpleNamespace(resolve=options, encode=EncodeOptions())
    assert not prove_graph(loader, ModelSource(path, left=found.left), network)


def graph(
    path: Path, *nodes: Any, shape: Any = (1, 3, 8, 8), tensors: Any = (), opset: int = 17
) -> str:
    """Write nodes from the input `x` to the output `y`."""
    from onnx import TensorProto, helper, numpy_helper

    values = [numpy_helper.from_array(np.asarray(v, np.float32), n) for n, v in tensors]
    made = helper.make_graph(
        nodes, "net", [helper.make_tensor_value_info("x", TensorProto.FLOAT, shape)],
        [helper.make_tensor_value_info("y", TensorProto.FLOAT, None)], values,
    )  # fmt: skip
    model = helper.make_model(made, opset_imports=[helper.make_opsetid("", opset)])
    path.write_bytes(model.SerializeToString())
    return str(path)


def op(kind: str, *inputs: str, to: str = "y", **attributes: Any) -> Any:
    return onnx.helper.make_node(kind, list(inputs), [to], name=f"{kind.lower()}1", **attributes)


KERNEL = ("w", 2 * np.ones((4, 3, 3, 3)))
CONV = op("Conv", "x", "w", to="a", pads=[1, 1, 1, 1])
CONV6 = op("Conv", "x", "w6", pads=[1, 1, 1, 1])
RELU = op("Relu", "a", to="b")
REFUSED = [
    ([CONV, op("Sigmoid", "a")], "sigmoid1: the accelerator has no Sigmoid",
     [CONV, op("Relu", "a")]),
    ([CONV, op("Mul", "a", "a")], "mul1: the accelerator has no Mul",
     [CONV, RELU, op("Add", "a", "b")]),
    ([op("Conv", "x", "w", pads=[1, 1, 0, 1])], "conv1: its padding is 1x1x0x1",
     [op("Conv", "x", "w", pads=[1, 1, 1, 1])]),
    ([op("Conv", "x", "w", dilations=[2, 1])], "conv1: its dilation is 2x1",
     [op("Conv", "x", "w", dilations=[2, 2])]),
    ([op("Conv", "x", "w8")], "conv1: its kernel is 8x8", [op("Conv", "x", "w7")]),
    ([CONV, op("MaxPool", "a", kernel_shape=[3, 3], pads=[1, 1, 1, 1])],
     "maxpool1: its padding is 1x1, and negative values come into it",
     [CONV, RELU, op("MaxPool", "b", kernel_shape=[3, 3], pads=[1, 1, 1, 1])]),
    ([CONV, op("AveragePool", "a", kernel_shape=[3, 3], pads=[1, 1, 1, 1])],
     "averagepool1: its average leaves out the padding",
     [CONV, op("AveragePool", "a", kernel_shape=[3, 3], pads=[1, 1, 1, 1], count_include_pad=1)]),
    ([CONV, op("Clip", "a", "zero", "six")], "clip1: it limits data to 0..6",
     [CONV, op("Relu", "a")]),
    ([op("Conv", "x", "x")], "conv1: its weights are not constants", [op("Conv", "x", "w")]),
    ([op("Gemm", "x", "w2")], "gemm1: it works on the last axis of 3x8x8",
     [op("Flatten", "x", to="a"), op("Gemm", "a", "wf")]),
    ([CONV, op("Transpose", "a", to="b", perm=[0, 2, 1, 3]), op("Relu", "b")],
     "transpose1: the accelerator has no Transpose", [CONV, op("Relu", "a")]),
    ([CONV, op("Mul", "a", "six")], "mul1: it multiplies by 6, the chip by powers of two", [CONV6]),
    ([op("Flatten", "x", to="a"), op("BatchNormalization", "a", "m", "m", "m", "m")],
     "batchnormalization1: batch normalization that follows no layer\nPut it directly behind a",
     [op("Flatten", "x", to="a"), op("Gemm", "a", "wf", to="b"),
      op("BatchNormalization", "b", "four", "four", "four", "four")]),
    ([CONV, op("Pad", "a", "odd")], "pad1: its padding is 0x1x0x0x0x0, the chip pads all sides",
     [CONV, op("Pad", "a", "no")]),
    ([CONV, op("ReduceMean", "a", axes=[3])], "reducemean1: it reduces some of the axes",
     [CONV, op("ReduceMean", "a", axes=[3, 2])]),
    ([op("MaxPool", "x", kernel_shape=[2, 2], strides=[1, 17])],
     "maxpool1: its window is 2x2, its stride 1x17; at most 16",
     [op("MaxPool", "x", kernel_shape=[2, 2], strides=[2, 2])]),
    ([op("QuantizeLinear", "x", "six", to="a"), op("Conv", "a", "w")],
     "quantizelinear1: QuantizeLinear rounds to a scale of its own\nLet quantize.py make",
     [op("Conv", "x", "w")]),
]  # fmt: skip
"""What is refused, what is said of it, and what that proposes instead."""


@pytest.mark.parametrize(
    ("nodes", "said", "instead"), REFUSED, ids=[text.split(":")[0] for _, text, _ in REFUSED]
)
def test_nodes_are_refused_by_name(nodes: Any, said: str, instead: Any, tmp_path: Path) -> None:
    tensors = [KERNEL, ("w5", np.ones((4, 3, 5, 5))), ("w2", np.ones((4, 8))), ("zero", 0),
               ("w7", np.ones((4, 3, 7, 7))), ("w8", np.ones((4, 3, 8, 8))),
               ("six", 6), ("w3", np.ones((3, 3, 3, 3))), ("w6", 6 * KERNEL[1]),
               ("wf", np.ones((192, 4))), ("m", np.ones(192)), ("four", np.ones(4)),
               ("no", np.zeros(8)), ("odd", np.eye(8)[2])]  # fmt: skip
    path = graph(tmp_path / "net.onnx", *nodes, tensors=tensors)
    with pytest.raises(InputError) as caught:
        describe_onnx(path, None, None)
    assert said in f"{caught.value.message}\n{caught.value.remedy}"
    assert caught.value.code == "E670"
    describe_onnx(graph(tmp_path / "instead.onnx", *instead, tensors=tensors), None, None)


def test_names_and_axes_of_other_exporters(tmp_path: Path) -> None:
    """Those of tf2onnx have colons, slashes and numbers; its input has the channels last."""
    names = ("Relu:0", "model/pool__12:0", "model/Squeeze:0", "dense/MatMul:0")
    nodes = [
        op("Transpose", "x", to="conv/Conv2D__5:0", perm=[0, 3, 1, 2]),
        op("Conv", "conv/Conv2D__5:0", "conv/ReadVariableOp:0", to="conv:0", pads=[1, 1, 1, 1]),
        op("Relu", "conv:0", to=names[0]),
        op("GlobalAveragePool", names[0], to=names[1]),
        op("Flatten", names[1], to=names[2]),
        op("MatMul", names[2], "const_fold_opt__12", to=names[3]),
        op("Add", names[3], "bias:0"),
    ]
    tensors = [("conv/ReadVariableOp:0", KERNEL[1]), ("const_fold_opt__12", np.ones((4, 5))),
               ("bias:0", np.full(5, 128.0))]  # fmt: skip
    path = graph(tmp_path / "tf.onnx", *nodes, shape=(1, 8, 6, 3), tensors=tensors, opset=18)
    found, checkpoint = describe_onnx(path, None, None)
    assert found.input_shape == (3, 8, 6)
    layers = yaml.safe_load(found.text)["layers"]
    assert [layer["op"] for layer in layers] == ["Conv2d", "Passthrough", "Linear"]
    assert checkpoint.state_dict[f"{layers[2]['weights']}.op.bias"].tolist() == [128.0] * 5


def test_integers_of_a_checkpoint_are_found_by_name_or_values(tmp_path: Path) -> None:
    """Exporters fuse normalization and call the weights of such layers onnx::Conv_17."""
    torch.manual_seed(0)
    block = torch.nn.Sequential(torch.nn.Conv2d(4, 4, 3, padding=1), torch.nn.BatchNorm2d(4))
    parts = {"last": torch.nn.Conv2d(4, 2, 1), "block": block, "first": torch.nn.Conv2d(3, 4, 1)}

    class Net(torch.nn.Module):
        def __init__(self) -> None:
            super().__init__()
            for name, part in parts.items():
                self.add_module(name, part)

        def forward(self, x: torch.Tensor) -> torch.Tensor:
            y = parts["first"](x)
            return parts["last"](torch.relu(parts["block"](y) + y))

    network = Net().eval()
    path = exported_plain(network, torch.zeros(1, 3, 8, 8), tmp_path / "net.onnx")
    convolutions = {"last": network.last, "block.0": block[0], "renamed": network.first}
    state = {
        f"{name}.op.weight": np.round(100 * layer.weight.detach().numpy())
        for name, layer in convolutions.items()
    }
    entries = {"state_dict": state, "arch": "mine", "epoch": 0, "extras": {}}
    found, tensors = describe_onnx(path, None, None, Checkpoint(entries))
    layers = yaml.safe_load(found.text)["layers"]
    names = [layer["weights"] for layer in layers if "weights" in layer]
    assert "arch: mine" in found.text
    assert (names[0], names[1], names[-1]) == ("renamed", "block.0", "last")
    assert len(names) == 4 and f"{names[2]}.op.weight" in tensors.state_dict  # the activation's own
    np.testing.assert_array_equal(tensors.state_dict["last.op.weight"], state["last.op.weight"])
    # A layer that the graph has as a part of another one, or not at all, would be left out.
    state["norm.op.weight"] = np.diag([3.0, 4, 5, 6]).reshape(4, 4, 1, 1)
    with pytest.raises(InputError, match="layers that the graph does not have.*: norm$") as caught:
        describe_onnx(path, None, None, Checkpoint(entries))
    assert caught.value.code == "E676"


def exported_plain(network: Any, x: torch.Tensor, path: Path, opset: int = 17) -> str:
    """Write an ordinary network as its author does."""
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        torch.onnx.export(network, (x,), str(path), dynamo=False, opset_version=opset)
    return str(path)


def integers_for(network: Any) -> Checkpoint:
    """Return integers in place of the weights of an imported network."""
    ai8x.fuse_bn_layers(network)
    state: dict[str, Any] = {}
    for name, layer in network.named_modules():
        if isinstance(layer, ai8x.QuantizationAwareModule) and layer.op is not None:
            weight, ones = layer.op.weight, not layer.op.weight.requires_grad
            state[f"{name}.op.weight"] = (64 * weight.detach()).round().clamp(-128, 127).numpy()
            state[f"{name}.output_shift"] = np.array([1.0 if ones else 0.0])
            if layer.op.bias is not None:
                state[f"{name}.op.bias"] = 128 * (20 * layer.op.bias.detach()).round().numpy()
    return Checkpoint(
        {"state_dict": state, "arch": "net", "epoch": 0, "extras": {"imported": True}}
    )


@pytest.mark.parametrize(
    ("make", "shape", "opset"),
    [
        (plain.Shortcut, (3, 16, 16), 11), (plain.Averages, (3, 18, 24), 13),
        (plain.Normalized, (3, 8, 8), 17), (plain.Enlarging, (3, 16, 16), 11),
        (plain.Padded, (3, 12, 12), 17), (plain.FromInput, (3, 8, 8), 17),
        (lambda: torch.nn.Sequential(torch.nn.Conv2d(3, 4, 3), torch.nn.ReLU(),
                                     torch.nn.Conv2d(4, 2, 1)), (3, 8, 8), 17),
    ],
)  # fmt: skip
def test_graphs_of_ordinary_networks_compute_what_the_networks_do(
    make: Any, shape: Any, opset: int, tmp_path: Path
) -> None:
    """Every integer is that of the network imported from PyTorch."""
    ai8x.set_device(85, False, False, verbose=False)
    torch.manual_seed(0)
    network, x = make().eval(), torch.zeros(1, *shape)
    path = exported_plain(network, x, tmp_path / "net.onnx", opset)
    made = import_network(network, x, "net", {}).network
    checkpoint = integers_for(made)
    described = [
        describe(made, x, MAX78000, name="net", arch="net", dataset="some"),
        describe_onnx(path, None, None, checkpoint)[0],
    ]
    options = ResolveOptions(checkpoint_file=path, tensors=checkpoint, sample_shape=shape)
    results = []
    for one in described:
        source = Described(one.text, one.model, one.nodes)
        found, _, problems = understand(source, None, options)
        assert not [p for p in problems if p.severity == "error"]
        outputs = simulate(found, average_rounding=False).outputs
        results.append(np.concatenate([outputs[i.index].ravel() for i in found.outputs()]))
    assert results[0].any()
    np.testing.assert_array_equal(*results)


@pytest.mark.parametrize("imported", [True, False])
def test_sums_have_factors_of_their_own_in_imported_checkpoints(
    imported: bool, tmp_path: Path
) -> None:
    nodes = [op("Conv", "x", "same", to="a", pads=[1, 1, 1, 1]), op("Add", "a", "x", to="b"),
             op("Conv", "b", "w")]  # fmt: skip
    path = graph(tmp_path / "net.onnx", *nodes, tensors=[KERNEL, ("same", KERNEL[1][:3])])
    state = {"conv1.op.weight": KERNEL[1][:3], "conv2.op.weight": KERNEL[1]}
    both = np.hstack([32 * np.eye(3), 127 * np.eye(3)])  # as calibrated: each operand has its own
    state |= {"shortcut.op.weight": both.reshape(3, 6, 1, 1)} if imported else {}
    extras = {"imported": True} if imported else {}
    entries = {"state_dict": state, "arch": "net", "epoch": 0, "extras": extras}
    layers = yaml.safe_load(describe_onnx(path, None, None, Checkpoint(entries))[0].text)["layers"]
    sums = [one for one in layers if "shortcut" in (one.get("weights"), one.get("in_sequences"))]
    assert bool(sums) is imported
    assert any(one.get("eltwise") == "add" or one["op"] == "Add" for one in layers) is not imported


@pytest.mark.parametrize("joins", [False, True])
@pytest.mark.parametrize(("given", "scale"), [("ax", 0.25), ("xa", 0.25), ("xa", 1)])
def test_a_checkpoint_with_the_scales_of_other_operands_is_refused(
    given: str, scale: float, joins: bool, tmp_path: Path
) -> None:
    """It is that of a graph with a and x in this order; the scale of a is another one than that of
    x, or it is not, and then nothing depends on the order."""
    nodes = [op("Conv", "x", "same.weight", to="a", pads=[1, 1, 1, 1]),
             op("Concat", *given, to="b", axis=1) if joins else op("Add", *given, to="b"),
             op("Conv", "b", "w.weight")]  # fmt: skip
    weights = np.random.default_rng(0).integers(-1, 2, (4, 6 if joins else 3, 3, 3))
    path = graph(
        tmp_path / "net.onnx",
        *nodes,
        tensors=[("same.weight", weights[:3, :3]), ("w.weight", weights)],
    )
    scales = np.repeat([31 / scale, 31], 3)  # of a layer that takes both
    state = {"same.op.weight": 128 * scale * weights[:3, :3]}
    if joins:
        state["w.op.weight"] = weights * scales.reshape(-1, 1, 1)
    else:
        both = np.hstack([np.eye(3), np.eye(3)]) * scales
        state |= {"sum.op.weight": both.reshape(3, 6, 1, 1), "w.op.weight": 40 * weights}
    entries = {"state_dict": state, "arch": "n", "epoch": 0, "extras": {"imported": True}}
    if given == "ax" or scale == 1:
        assert "sum" in describe_onnx(path, None, None, Checkpoint(entries))[0].text or joins
        return
    with pytest.raises(
        InputError, match=r"takes the input, same; .* the scales of same, the input"
    ):
        describe_onnx(path, None, None, Checkpoint(entries))


def test_series_of_frames_are_refused(tmp_path: Path) -> None:
    path = graph(tmp_path / "net.onnx", op("Conv", "x", "w"), shape=(1, 4, 3, 8, 8),
                 tensors=[KERNEL])  # fmt: skip
    with pytest.raises(InputError, match="a series of frames") as caught:
        describe_onnx(path, None, None)
    assert caught.value.code == "E678"
    assert "--model FILE:CLASS" in str(caught.value.remedy)


def test_strides_normalization_and_activations_behind_sums(tmp_path: Path) -> None:
    nodes = [
        op("Conv", "x", "w", to="a", pads=[1, 1, 1, 1], strides=[2, 2]),
        op("BatchNormalization", "a", "two", "one", "one", "three", to="b", epsilon=1.0),
        op("Relu", "b", to="c"),
        op("Conv", "c", "eye", to="d"),
        op("Sub", "d", "c", to="e"),
        op("Relu", "e"),
    ]
    eye = np.eye(4).reshape(4, 4, 1, 1)
    ones = {name: np.full(4, n) for n, name in ((1, "one"), (2, "two"), (3, "three"))}
    path = graph(tmp_path / "net.onnx", *nodes, tensors=[KERNEL, ("eye", eye), *ones.items()])
    found, tensors = describe_onnx(path, None, None)
    state = tensors.state_dict
    np.testing.assert_array_equal(state["conv1.op.weight"], KERNEL[1])
    assert state["conv1.op.bias"].tolist() == [0.0] * 4  # (0 - 1) * 2 / sqrt(3 + 1) + 1
    assert "max_pool: 1" in found.text and "eltwise: sub" in found.text
    kernels, bits = (
        state["relu1_activation.op.weight"],
        state["relu1_activation.weight_bits"].tolist(),
    )
    assert (kernels[2, :, 0, 0].tolist(), bits) == ([0, 0, 1, 0], [2])  # as 64 with 8 bits
    assert state["relu1_activation.output_shift"].tolist() == [1]


def test_padding_of_positive_values_becomes_a_layer(tmp_path: Path) -> None:
    nodes = [CONV, op("Relu", "a", to="b"), op("Concat", "b", to="c", axis=1),
             op("MaxPool", "c", kernel_shape=[3, 3], pads=[1, 1, 1, 1], strides=[2, 2], to="d"),
             op("Conv", "d", "eye")]  # fmt: skip
    path = graph(tmp_path / "net.onnx", *nodes,
                 tensors=[KERNEL, ("eye", np.eye(4).reshape(4, 4, 1, 1))])  # fmt: skip
    found, tensors = describe_onnx(path, None, None)
    layers = yaml.safe_load(found.text)["layers"]
    assert layers[1] | {"name": ""} == {
        "name": "", "op": "Conv2d", "weights": "maxpool1_padding", "kernel_size": "3x3", "pad": 2,
        "activate": "None",
    }  # fmt: skip
    assert (layers[2]["max_pool"], layers[2]["pool_stride"]) == (3, 2)
    kernels = tensors.state_dict["maxpool1_padding.op.weight"]
    assert kernels.sum() == 4 * kernels[0, 0, 1, 1] and kernels[3, 3, 1, 1] > 0


def test_simple_enlargement_has_kernels_of_three(tmp_path: Path) -> None:
    nodes = [op("ConvTranspose", "x", "k", strides=[2, 2], to="a"), op("Conv", "a", "eye")]
    kernels = np.arange(48).reshape(3, 4, 2, 2) + 1
    path = graph(tmp_path / "net.onnx", *nodes,
                 tensors=[("k", kernels), ("eye", np.eye(4).reshape(4, 4, 1, 1))])  # fmt: skip
    found, tensors = describe_onnx(path, None, None)
    assert yaml.safe_load(found.text)["layers"][0]["kernel_size"] == "3x3"
    (weights, *_) = (v for n, v in tensors.state_dict.items() if n.endswith("op.weight"))
    np.testing.assert_array_equal(weights[:, :, 1:, 1:], kernels)
    assert not weights[:, :, 0].any() and not weights[:, :, :, 0].any()


def test_what_takes_a_refused_result_is_not_blamed(tmp_path: Path) -> None:
    nodes = [CONV, op("Sigmoid", "a", to="b"), op("Add", "a", "b", to="c"),
             op("Concat", "c", "a", axis=1)]  # fmt: skip
    path = graph(tmp_path / "net.onnx", *nodes, tensors=[KERNEL])
    with pytest.raises(InputError, match="^.*sigmoid1: the accelerator has no Sigmoid"):
        describe_onnx(path, None, None)


@pytest.mark.parametrize(
    ("changes", "said"),
    [
        ({"shape": (1, 3, "rows", 8)}, "the input 'x' has 1x3x?x8; its sizes must be fixed"),
        ({"opset": 99}, "the file uses version 99 of the operators, known are 7 to 28"),
    ],
)
def test_files_that_cannot_be_followed(changes: Any, said: str, tmp_path: Path) -> None:
    path = graph(tmp_path / "net.onnx", op("Conv", "x", "w"), tensors=[KERNEL], **changes)
    with pytest.raises(InputError) as caught:
        describe_onnx(path, None, None)
    assert said in caught.value.message


def test_nodes_of_any_order_are_taken(tmp_path: Path) -> None:
    nodes = [op("Conv", "x", "w", to="a"), op("Relu", "a")]
    path = graph(tmp_path / "net.onnx", *nodes, tensors=[KERNEL])
    wanted, _ = describe_onnx(path, None, None)
    model = onnx.load(path)
    ends = [*model.graph.node]
    del model.graph.node[:]
    model.graph.node.extend(ends[::-1])
    Path(path).write_bytes(model.SerializeToString())
    assert describe_onnx(path, None, None)[0] == wanted


def test_cycles_and_several_inputs_are_refused(tmp_path: Path) -> None:
    cycle = [op("Add", "x", "b", to="a"), op("Relu", "a", to="b")]
    path = graph(tmp_path / "net.onnx", *cycle, op("Conv", "b", "w"), tensors=[KERNEL])
    with pytest.raises(CheckpointError, match="'add1' takes 'b', which a cycle gives"):
        describe_onnx(path, None, None)
    model = onnx.load(graph(tmp_path / "net.onnx", op("Conv", "x", "w")))
    model.graph.input.append(onnx.helper.make_tensor_value_info("w", 1, (4, 3, 3, 3)))
    Path(path).write_bytes(model.SerializeToString())
    with pytest.raises(CheckpointError, match=r"the graph has 2 inputs \(x, w\)") as caught:
        describe_onnx(path, None, None)
    assert caught.value.code == "E509"


def test_data_in_a_file_beside_the_graph_is_part_of_it(tmp_path: Path) -> None:
    """It is read, and the graph is executed with it, wherever the process stands."""
    path = graph(tmp_path / "net.onnx", op("Conv", "x", "w"), tensors=[KERNEL])
    wanted, samples = describe_onnx(path, None, None), np.ones((2, 3, 8, 8))
    results = executed(path, samples, 0.99)
    onnx.save(onnx.load(path), path, save_as_external_data=True, location="w.data",
              size_threshold=0)  # fmt: skip
    assert (tmp_path / "w.data").stat().st_size == 4 * KERNEL[1].size
    found = describe_onnx(path, None, None)
    assert found[0] == wanted[0]
    for name, value in wanted[1].state_dict.items():
        np.testing.assert_array_equal(found[1].state_dict[name], value)
    np.testing.assert_array_equal(executed(path, samples, 0.99), results)


def test_data_in_files_that_are_not_there_is_refused(tmp_path: Path) -> None:
    model = onnx.load(graph(tmp_path / "net.onnx", op("Conv", "x", "w"), tensors=[KERNEL]))
    path = str(tmp_path / "far.onnx")
    onnx.save(model, path, save_as_external_data=True, size_threshold=0, location="far.bin")
    (tmp_path / "far.bin").rename(tmp_path / "near.bin")
    with pytest.raises(CheckpointError, match="is in another file, 'far.bin'"):
        describe_onnx(path, None, None)


def test_loader_takes_a_graph_without_torch(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    deployed = BY_FILE["digits-chw-ai85"]
    _, model = with_random_weights(deployed, tmp_path)
    exported(model, torch.from_numpy(deployed.integers()).float()[None], tmp_path / "net.onnx")
    words = ["--model", str(tmp_path / "net.onnx"), "--device", "MAX78000", "--prefix", "net",
             "--test-dir", str(tmp_path / "build"), "--verify"]  # fmt: skip
    script = f"""
import sys
sys.argv = ["ai8xize.py", *{words!r}]
sys.modules["onnx"] = None
import ai8xize
import quantize
assert ai8xize.main() == 0
assert not {{"torch", "ai8x"}} & set(sys.modules)
"""
    done = subprocess.run(
        [sys.executable, "-c", script], cwd=ROOT, capture_output=True, text=True, check=False
    )
    assert done.returncode == 0, done.stderr
    assert "verified 10 words of the expected output" in done.stdout
    assert "unchecked whether the network computes what the graph does: the package onnx" in (
        done.stdout + done.stderr
    )
    fractions = graph(tmp_path / "f.onnx", CONV, op("Relu", "a"),
                      tensors=[("w", np.full((4, 3, 3, 3), 0.3))])  # fmt: skip
    monkeypatch.setattr(sys, "argv", ["ai8xize.py", "--model", fractions, *words[2:-1],
                                      "--overwrite"])  # fmt: skip
    assert run(ai8xize.main) == 1
    said = capsys.readouterr().err
    assert "the checkpoint is not quantized: its weights are fractions [E219]" in said
    assert "quantize.py --import --calibrate), and name the result with --checkpoint-file" in said


FRACTIONS = [
    op("Conv", "x", "kernel.weight", to="a", pads=[1, 1, 1, 1]),
    op("BatchNormalization", "a", "gain", "offset", "offset", "variance", to="b"),
    op("Relu", "b", to="c"),
    op("MaxPool", "c", to="d", kernel_shape=[2, 2], strides=[2, 2]),
    op("Flatten", "d", to="e"),
    op("Gemm", "e", "fc.weight", to="f", transB=1, alpha=0.5),
    op("Softmax", "f"),
]


def expected_words(path: Path) -> Any:
    """Return the expected output of 32 bits: address, mask, count and words, until 0."""
    words = [int(word, 16) for word in re.findall(r"0x\w{8}", path.read_text())]
    values: list[int] = []
    while words[0]:
        end = 3 + words[2]
        values, words = values + words[3:end], words[end:]
    return np.array(values, np.uint32).astype(np.int32)


def softmax(x: Any) -> Any:
    return np.exp(x) / np.exp(x).sum()


def test_graphs_in_floating_point_are_quantized_and_deployed(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    random = np.random.default_rng(0)
    tensors = [("kernel.weight", random.normal(size=(4, 3, 3, 3))), ("gain", [1, -2, 0.5, 1]),
               ("offset", [0.1, 0.2, 0.3, 0]), ("variance", [1, 2, 0.5, 1]),
               ("fc.weight", random.normal(size=(5, 64)))]  # fmt: skip
    monkeypatch.chdir(tmp_path)
    graph(tmp_path / "net.onnx", *FRACTIONS, tensors=tensors)
    np.savez("data.npz", x=random.integers(0, 256, (40, 8, 8, 3)).astype(np.uint8),
             y=np.arange(40) % 5)  # fmt: skip
    words = ["net.onnx", "q.pth.tar", "--device", "MAX78000", "--calibrate", "npz:data.npz"]
    assert run(lambda: quantize.main(words)) == 0
    state = read_checkpoint("q.pth.tar").state_dict
    assert {name for name in state if name.endswith(".weight")} == {
        "kernel.op.weight", "fc.op.weight"
    }  # fmt: skip
    np.save("sample.npy", random.integers(-128, 128, (3, 8, 8)))
    monkeypatch.setattr(sys, "argv", [
        "ai8xize.py", "--model", "net.onnx", "--checkpoint-file", "q.pth.tar", "--device",
        "MAX78000", "--sample-input", "sample.npy", "--prefix", "net", "--test-dir", "out",
    ])  # fmt: skip
    assert run(ai8xize.main) == 0
    assert "Left to the application: softmax1" in capsys.readouterr().out
    (step,) = re.findall(r"one step is worth 2\^(-\d+)", Path("out/net/cnn.h").read_text())
    numbers = 2.0 ** int(step) * expected_words(Path("out/net/sampleoutput.h"))
    (shares,) = executed("net.onnx", np.load("sample.npy")[None] / 128) or [[]]
    np.testing.assert_allclose(softmax(numbers), shares[0], atol=0.05)
    monkeypatch.setattr("ai8xtools.commands.quantize.importer.executed", lambda *_: np.ones((4, 5)))
    assert run(lambda: quantize.main([words[0], "other.pth.tar", *words[2:]])) == 1
    assert "[E668]" in capsys.readouterr().err
    assert not Path("other.pth.tar").exists()

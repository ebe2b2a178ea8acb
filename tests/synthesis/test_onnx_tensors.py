"""Networks from ONNX files: layers find their tensors, complaints name layer, line and tensor."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch
from numpy.typing import NDArray

from ai8xtools.diagnostics import Diagnostic, DiagnosticError
from ai8xtools.synthesis.mapping import MappedNetwork
from ai8xtools.synthesis.options import EncodeOptions, ResolveOptions
from ai8xtools.synthesis.parse import parse
from ai8xtools.synthesis.pipeline import synthesize
from ai8xtools.synthesis.resolve import resolve
from ai8xtools.synthesis.words import phase_words
from device import MAX78000, MAX78002
from tests.checkpoint.onnx_writer import chain
from tests.synthesis.networks import describe, files, line_of, mask, resolved, sample, weights

Node = tuple[str, NDArray[Any] | None, NDArray[Any] | None]
CONV: dict[str, Any] = {"processors": 7, "op": "Conv2d", "pad": 1, "activate": "ReLU"}
POOL: dict[str, Any] = {"processors": 15, "op": "Passthrough", "max_pool": 2, "pool_stride": 2}
UP: dict[str, Any] = {"processors": 15, "op": "ConvTranspose2d", "activate": "none", "pad": 1}
LINEAR: dict[str, Any] = {
    "processors": mask(2), "op": "Linear", "flatten": True, "activate": "none",
}  # fmt: skip


def options(folder: Path, content: bytes, data: NDArray[Any], **others: Any) -> ResolveOptions:
    path = folder / "net.onnx"
    path.write_bytes(content)
    return files(folder, data, checkpoint_file=str(path), **others)


def from_onnx(
    folder: Path, text: str, *nodes: Node, **others: Any
) -> tuple[MappedNetwork, tuple[Diagnostic, ...]]:
    """Resolve a description with a chain of nodes and a sample of 3x4x4."""
    found = options(folder, chain(*nodes), sample(3, 4, 4), **others)
    return resolved(text, MAX78000, found)


def refused(folder: Path, text: str, *nodes: Node) -> Diagnostic:
    """Return the one error."""
    with pytest.raises(DiagnosticError) as caught:
        from_onnx(folder, text, *nodes)
    (found,) = [d for d in caught.value.diagnostics if d.severity == "error"]
    return found


def test_tensors_go_to_the_layers_that_take_some(tmp_path: Path) -> None:
    """Settings of a layer behind a passthrough stay with it."""
    text = describe(
        CONV,
        POOL,
        {**CONV, "processors": 15, "quantization": 8, "output_shift": -3},
        {"processors": 3, "op": "add", "in_sequences": "[2, 2]", "in_offset": 0},
        LINEAR,
        arch="any",
    )
    kernels = [weights(4, 3, 3, 3), weights(2, 4, 3, 3, bits=2), weights(10, 2 * 2 * 2)]
    bias = np.array([128, 127, -1, -129])
    network, _ = from_onnx(
        tmp_path,
        text,
        ("Conv", kernels[0] + np.sign(kernels[0]) * 0.75, bias),
        ("MaxPool", None, None),
        ("Conv", kernels[1], None),
        ("Gemm", kernels[2], None),
    )
    first, _, second, _, last = network.layers
    for layer, kernel in zip((first, second, last), kernels, strict=True):
        assert layer.weights is not None
        np.testing.assert_array_equal(layer.weights.reshape(kernel.shape), kernel)
    assert first.bias is not None and first.bias.tolist() == [1, 0, -1, -2]
    assert (second.weight_bits, second.shift, second.bias) == (8, -3, None)
    assert (last.weight_bits, last.shift) == (8, 0)


@pytest.mark.parametrize(
    ("least", "most", "bits"),
    [(-2, 1, 2), (-1, 1, 2), (0, 0, 2), (-2, 2, 4), (-8, 7, 4), (-9, 0, 8), (0, 8, 8), (0, 127, 8)],
)
def test_width_follows_from_the_range(tmp_path: Path, least: int, most: int, bits: int) -> None:
    kernel = np.zeros((2, 3, 3, 3))
    kernel[0, 0, 0, :2] = least, most
    network, _ = from_onnx(tmp_path, describe(CONV, arch="any"), ("Conv", kernel, None))
    assert (network.final.weight_bits, network.final.shift) == (bits, 8 - bits)


def test_one_dimensional_kernels_and_options_that_skip(tmp_path: Path) -> None:
    layer = {**CONV, "op": "Conv1d", "kernel_size": 5, "pad": 2}
    kernel = weights(4, 3, 5)
    content = chain(("Conv", weights(9, 9, 1, 1), None), ("Conv", kernel, np.ones(4) * 256))
    found = options(
        tmp_path, content, sample(3, 20), skip_checkpoint_layers=1, no_bias=frozenset({0})
    )
    network, _ = resolved(describe(layer, arch="any"), MAX78000, found)
    assert network.final.weights is not None and network.final.bias is None
    np.testing.assert_array_equal(network.final.weights[..., 0], kernel)


def test_batch_normalization_is_warned_of_unless_ignored(tmp_path: Path) -> None:
    text = describe({**CONV, "kernel_size": "3x3"}, arch="any")
    nodes: list[Node] = [("Conv", weights(2, 3, 3, 3), None), ("BatchNormalization", None, None)]
    _, (warning,) = from_onnx(tmp_path, text, *nodes)
    assert str(warning) == (
        f"{tmp_path / 'net.onnx'}: warning: BatchNormalization '/layer1/BatchNormalization' is "
        "ignored: the accelerator has no batch normalization [W253]\n"
        "  Fold it with batchnormfuser.py before quantizing; --ignore-bn silences this."
    )
    assert from_onnx(tmp_path, text, *nodes, ignore_bn=True)[1] == ()


# The same network from both kinds of files


@pytest.mark.parametrize("chip", [MAX78000, MAX78002], ids=lambda c: c.name)
def test_onnx_and_pytorch_give_the_same_words(tmp_path: Path, chip: Any) -> None:
    text = describe(
        CONV,
        POOL,
        {**UP, "quantization": 4, "output_shift": 1},
        {**CONV, "processors": 31, "kernel_size": "1x1", "pad": 0},
        LINEAR,
        arch="tinynet",
    )
    (tmp_path / "net.yaml").write_text(text)
    kernels = [
        weights(4, 3, 3, 3),
        weights(4, 5, 3, 3, bits=4),
        weights(2, 5, 1, 1),
        weights(10, 2 * 4 * 4),
    ]
    biases = [np.array([-16000.0, 300, 2, 16383]), None, np.array([77.0, -1]), None]
    operators = ("Conv", "ConvTranspose", "Conv", "Gemm")
    nodes = list(zip(operators, kernels, biases, strict=True))
    nodes.insert(1, ("MaxPool", None, None))
    state = {}
    for index, (kernel, bias) in enumerate(zip(kernels, biases, strict=True)):
        state[f"layer{index}.op.weight"] = torch.as_tensor(kernel, dtype=torch.float32)
        if bias is not None:
            state[f"layer{index}.op.bias"] = torch.as_tensor(bias, dtype=torch.float32)
    torch.save({"epoch": 1, "arch": "tinynet", "state_dict": state}, tmp_path / "net.pth.tar")

    found = options(tmp_path, chain(*nodes), sample(3, 4, 4))
    config = str(tmp_path / "net.yaml")
    pytorch = files(tmp_path, sample(3, 4, 4), checkpoint_file=str(tmp_path / "net.pth.tar"))
    made = [synthesize(config, chip, o, EncodeOptions()).program for o in (found, pytorch)]
    assert phase_words(made[0]) == phase_words(made[1])
    np.testing.assert_array_equal(made[0].expected.values, made[1].expected.values)
    assert made[0].expected.values.any()


# Refusals: description, nodes, key that is blamed, complaint, remedy

NAN = np.full((2, 3, 3, 3), np.nan)
REFUSALS: dict[str, tuple[dict[str, Any], Node, str, str, str | None]] = {
    "operator": (
        CONV,
        ("ConvTranspose", weights(3, 2, 3, 3), None),
        "op",
        "E208 the node ConvTranspose '/layer0/ConvTranspose' does not belong to conv2d",
        "Correct 'op', or check that the layers are in the same order.",
    ),
    "shape": (
        CONV,
        ("Conv", weights(2, 3, 1, 1), None),
        "op",
        "E208 weights have a 1x1 kernel, the description says 3x3",
        "Correct 'kernel_size' or 'op', or check that the layers are in the same order.",
    ),
    "rank": (
        CONV,
        ("Conv", weights(2, 3, 3), None),
        "op",
        "E208 weights of shape [2, 3, 3] do not belong to conv2d",
        None,
    ),
    "inferred width": (
        CONV,
        ("Conv", weights(2, 3, 3, 3, bits=9), None),
        "op",
        "E206 weights from -256 to 246 do not fit 8 bits (-128 to 127)",
        "Quantize the checkpoint with quantize.py, and give 'quantization' the width it was "
        "quantized to.",
    ),
    "stated width": (
        {**CONV, "quantization": 2},
        ("Conv", weights(2, 3, 3, 3, bits=4), None),
        "quantization",
        "E206 weights from -8 to 7 do not fit 2 bits (-2 to 1)",
        "Quantize the checkpoint with quantize.py, and give 'quantization' the width it was "
        "quantized to.",
    ),
    "not numbers": (
        CONV,
        ("Conv", NAN, None),
        "op",
        "E204 'layer0.weight' holds values that are not numbers (NaN or infinite)",
        "Training has diverged; train and quantize again.",
    ),
    "bias": (
        CONV,
        ("Conv", weights(2, 3, 3, 3), np.array([128.0 * 128, 0])),
        "op",
        "E207 the bias reaches from 0 to 128, the limits are -128 and 127",
        "Quantize the checkpoint with quantize.py.",
    ),
}


@pytest.mark.parametrize("case", REFUSALS)
def test_unfit_tensors_are_named_with_layer_limit_and_remedy(tmp_path: Path, case: str) -> None:
    layer, tensors, key, said, remedy = REFUSALS[case]
    text = describe(layer, arch="any")
    found = refused(tmp_path, text, tensors)
    blamed = "layer0.bias" if case == "bias" else "layer0.weight"
    file = f"(tensor '{blamed}' of {tmp_path / 'net.onnx'})"
    line, column = line_of(text, key)
    assert f"{found.code} {found.message}" == said.replace(" ", " layer 0: ", 1) + f" {file}"
    assert str(found.place) == f"net.yaml:{line}:{column}"
    assert found.remedy == remedy


def test_too_few_nodes_name_the_first_layer_without_one(tmp_path: Path) -> None:
    """Also when there are warnings."""
    text = describe(CONV, {**CONV, "name": "late", "activate": None}, arch="any")
    found = refused(tmp_path, text, ("Conv", weights(3, 3, 3, 3), None))
    line, column = line_of(text, "op", 1)
    assert str(found) == (
        f"net.yaml:{line}:{column}: error: layer 1 (late): the weights file has tensors for "
        "1 layers, the description needs 2 [E210]\n"
        "  Remove layers from the description or use the network's own checkpoint."
    )


def test_unreadable_file_is_named(tmp_path: Path) -> None:
    found = options(tmp_path, b"", sample(3, 4, 4))
    with pytest.raises(DiagnosticError, match="is not an ONNX model") as caught:
        resolve(parse(describe(CONV, arch="any")), MAX78000, found)
    (refusal,) = caught.value.diagnostics
    assert str(refusal.place) == str(tmp_path / "net.onnx")

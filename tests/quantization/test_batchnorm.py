"""A fused layer computes a quarter of what the layer and its normalization computed."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
import torch

from ai8xtools.checkpoint import Checkpoint
from ai8xtools.diagnostics.errors import InputError
from ai8xtools.quantization import fuse_batchnorm


def state_of(layer: str, op: torch.nn.Module, bn: torch.nn.Module, operation: str = "op") -> Any:
    tensors = {f"{layer}.{operation}.{k}": v.numpy() for k, v in op.state_dict().items()}
    return tensors | {f"{layer}.bn.{k}": v.numpy() for k, v in bn.state_dict().items()}


def random_norm(kind: type[torch.nn.Module], channels: int, affine: bool) -> torch.nn.Module:
    bn = kind(channels, eps=0.0, affine=affine).eval()
    for name, tensor in bn.state_dict().items():
        if tensor.dtype == torch.float32:
            tensor.uniform_(0.5, 2) if name != "running_mean" else tensor.normal_()
    return bn


CONV, CONV1, LINEAR = torch.nn.Conv2d, torch.nn.Conv1d, torch.nn.Linear
TRANSPOSED = torch.nn.ConvTranspose2d
NORM1, NORM2 = torch.nn.BatchNorm1d, torch.nn.BatchNorm2d
CASES = {
    "conv": (CONV(3, 5, 3), NORM2, 5, (2, 3, 6, 6)),
    "no bias": (CONV(3, 5, 3, bias=False), NORM2, 5, (2, 3, 6, 6)),
    "conv1d": (CONV1(3, 5, 3), NORM1, 5, (2, 3, 9)),
    "linear": (LINEAR(4, 6), NORM1, 6, (2, 4)),
    "transposed": (TRANSPOSED(3, 5, 3), NORM2, 5, (2, 3, 6, 6)),
    "square transposed": (TRANSPOSED(4, 4, 3), NORM2, 4, (2, 4, 6, 6)),
}


@pytest.mark.parametrize("affine", [True, False])
@pytest.mark.parametrize("layer", ["conv", "module.base.fire1"])
@pytest.mark.parametrize("case", CASES)
@torch.no_grad()
def test_fused_layer_equals_normalized_layer(case: str, layer: str, affine: bool) -> None:
    op, norm, channels, shape = CASES[case]
    bn = random_norm(norm, channels, affine)
    image = torch.randn(shape)
    expected = bn(op(image)) / 4
    original = Checkpoint({"state_dict": state_of(layer, op, bn), "arch": "bn_net"})
    fused = fuse_batchnorm(original, "net", [layer] if case == "square transposed" else [])
    assert fused.arch == "net"
    assert sorted(fused.state_dict) == [f"{layer}.op.bias", f"{layer}.op.weight"]
    twin = type(op)(*_arguments(op))
    twin.load_state_dict(
        {k.rsplit(".", 1)[1]: torch.from_numpy(v) for k, v in fused.state_dict.items()}
    )
    torch.testing.assert_close(twin(image), expected, rtol=1e-4, atol=1e-5)


def _arguments(op: Any) -> tuple[int, ...]:
    if isinstance(op, torch.nn.Linear):
        return op.in_features, op.out_features
    return op.in_channels, op.out_channels, 3


def test_older_operator_names_and_other_layers() -> None:
    op, bn = torch.nn.Conv2d(1, 2, 3), random_norm(NORM2, 2, True)
    state = {"first.op.weight": np.ones((1, 1), np.float32)} | state_of("x", op, bn, "conv2d")
    fused = fuse_batchnorm(Checkpoint({"state_dict": state}), "net").state_dict
    assert list(fused) == ["first.op.weight", "x.conv2d.weight", "x.conv2d.bias"]
    assert fused["first.op.weight"] is state["first.op.weight"]


def broken(**changes: Any) -> dict[str, Any]:
    state: dict[str, Any] = state_of("a", torch.nn.Conv2d(3, 2, 3), random_norm(NORM2, 2, True))
    for name, value in changes.items():
        if value is None:
            del state[name.replace("_0_", ".")]
        else:
            state[name.replace("_0_", ".")] = value
    return state


@pytest.mark.parametrize(
    ("state", "words"),
    [
        (broken(a_0_op_0_weight=None), "no weights"),
        (broken(a_0_bn_0_running_var=None), "running_var is missing"),
        (broken(a_0_bn_0_weight=np.ones(3)), "instead of"),
        (broken(a_0_bn_0_running_var=np.array([1.0, -1.0])), "negative variances"),
        (broken(a_0_op_0_weight=np.ones((5, 5, 3, 3))), "does not fit"),
        (
            broken(a_0_bn_0_running_var=np.zeros(2), a_0_bn_0_running_mean=np.full(2, 1e30)),
            "a: the weights are beyond the range of float32 .* .least variance 0.",
        ),
        ({"a.op.weight": np.ones(1)}, "no batch normalization"),
    ],
)
def test_layers_that_do_not_fit_together(state: dict[str, Any], words: str) -> None:
    with pytest.raises(InputError, match=words) as caught:
        fuse_batchnorm(Checkpoint({"state_dict": state}), "net")
    assert caught.value.code == "E706"


def test_unknown_transposed_layer() -> None:
    with pytest.raises(InputError, match="there is no layer b"):
        fuse_batchnorm(Checkpoint({"state_dict": broken()}), "net", ["b"])

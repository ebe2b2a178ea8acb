"""Mixed precision, twins of checkpoints as safetensors, and numbers that are not finite."""

from __future__ import annotations

import re
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
import torch
from torch import nn

import ai8x
from ai8xtools.checkpoint import read_checkpoint
from ai8xtools.training.network.diagnosis import origin_of_not_finite
from tests.training.conftest import Done

Train = Callable[..., Done]
POLICY = "start_epoch: 2\nweight_bits: 8\n"


def _weights(folder: Path, name: str) -> dict[str, Any]:
    return read_checkpoint(folder / name).state_dict


def test_mixed_precision_trains_float_weights_until_they_are_quantized(
    tiny: Train, monkeypatch: pytest.MonkeyPatch
) -> None:
    Path("qat.yaml").write_text(POLICY)
    dtypes = []
    conv = nn.functional.conv2d

    def watched(*args: Any, **keywords: Any) -> torch.Tensor:
        y = conv(*args, **keywords)
        if torch.is_grad_enabled():
            dtypes.append(y.dtype)
        return y

    monkeypatch.setattr(nn.functional, "conv2d", watched)
    options = ("tinyclassifier", "tinyclasses", "--qat-policy", "qat.yaml", "--epochs", "3")
    mixed = tiny(*options, "--mixed-precision", "--name", "mixed")
    assert mixed.status == 0, mixed.error
    steps = len(dtypes) // 3
    assert dtypes == [torch.bfloat16] * 2 * steps + [torch.float32] * steps
    a = _weights(mixed.folder, "mixed_qat_checkpoint.pth.tar")
    plain = tiny(*options, "--name", "plain")
    b = _weights(plain.folder, "plain_qat_checkpoint.pth.tar")
    assert a["conv.op.weight"].dtype == "float32"
    assert abs(a["conv.op.weight"] - b["conv.op.weight"]).max() < 0.1
    assert (a["conv.op.weight"] != b["conv.op.weight"]).any()


@pytest.mark.parametrize("net", ["tinysegmenter", "tinydetector"])
def test_mixed_precision_suits_outputs_of_every_form(tiny: Train, net: str) -> None:
    Path("objects.yaml").write_text(
        "multi_box_loss: {alpha: 2, neg_pos_ratio: 3}\n"
        "nms: {min_score: 0.2, max_overlap: 0.3, top_k: 20}\n"
    )
    dataset = "tinypixels" if net == "tinysegmenter" else "tinyobjects"
    objects = ("--obj-detection", "--obj-detection-params", "objects.yaml")
    done = tiny(net, dataset, "--amp", *(objects if net == "tinydetector" else ()))
    assert done.status == 0, done.error


def test_each_checkpoint_has_a_twin(tiny: Train) -> None:
    done = tiny("tinyclassifier", "tinyclasses", "--safetensors", "--name", "net")
    assert done.status == 0, done.error
    folder, test = done.folder, done.metrics["test"]
    for name in ("net_checkpoint", "net_best"):
        twin = read_checkpoint(folder / f"{name}.safetensors")
        original = read_checkpoint(folder / f"{name}.pth.tar")
        assert twin.state_dict.keys() == original.state_dict.keys()
        for key, value in original.state_dict.items():
            assert (twin.state_dict[key] == value).all()
        assert twin.entries["extras"] == original.entries["extras"]
        loaded = tiny("tinyclassifier", "tinyclasses", "--evaluate",
                      "--exp-load-weights-from", str(folder / f"{name}.safetensors"))  # fmt: skip
        assert loaded.metrics["test"] == test


class _Net(nn.Module):
    def __init__(self) -> None:
        super().__init__()
        self.first = ai8x.FusedConv2dReLU(1, 2, 3, bias=True)
        self.second = ai8x.Conv2d(2, 2, 3)
        self.plain = nn.Conv2d(2, 2, 1)

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        y: torch.Tensor = self.plain(self.second(self.first(x)))
        return y


@pytest.mark.parametrize(
    ("changes", "text"),
    [
        ({"second.op.weight": torch.nan}, "values of the weight of layer second are not"),
        ({"first.op.bias": torch.inf}, "values of the bias of layer first are not"),
        ({"plain.weight": torch.nan}, "values of the weight of layer plain are not"),
        ({"second.op.bias": 9, "plain.weight": 3e38}, "first those of layer plain"),
        ({}, "outputs are finite, the loss is not"),
    ],
)
def test_the_layer_is_found_where_numbers_stop_being_finite(
    changes: dict[str, float], text: str
) -> None:
    ai8x.set_device(85, simulate=False, round_avg=False, verbose=False)
    net, x = _Net(), torch.ones(2, 1, 8, 8)
    for name, value in changes.items():
        net.get_parameter(name).data.fill_(value)
    assert origin_of_not_finite(net, x) == text
    assert origin_of_not_finite(net, x * torch.nan) == "values of the input are not"


def test_training_stops_with_batch_and_layer(tiny: Train) -> None:
    done = tiny(
        "tinyclassifier", "tinyclasses", "--lr", "1e9", "--optimizer", "SGD", "--epochs", "9"
    )
    assert done.status == 1
    assert "[E605]" in done.error
    assert re.search(
        r"the (loss|gradient) of batch \d of epoch \d is not finite: .* of layer (conv|fc)",
        done.error,
    )

"""train.py --yaml-template: descriptions that the network loader takes, and what they compute."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch
import yaml
from torch import nn

import ai8x
from ai8xtools.commands.train.template import complete_description
from ai8xtools.diagnostics import DiagnosticError
from ai8xtools.diagnostics.errors import InputError
from ai8xtools.synthesis.options import EncodeOptions, ResolveOptions
from ai8xtools.synthesis.pipeline import synthesize
from ai8xtools.training.export.template import write_template
from ai8xtools.training.options import TrainingOptions
from ai8xtools.training.saving import checkpoints
from device import MAX78000, MAX78002

Train = Callable[..., Any]
CHIPS = {85: MAX78000, 87: MAX78002}


class Chain(nn.Module):
    """A pooling in front of an operator, normalization, a flattened and a small linear layer."""

    def __init__(self, **bits: Any) -> None:
        super().__init__()
        norm = {} if bits.get("quantize_activation") else {"batchnorm": "Affine"}
        self.conv1 = ai8x.FusedConv2dReLU(3, 70, 3, padding=1, bias=True, **norm, **bits)
        self.pool = ai8x.MaxPool2d(2, 2, **bits)
        self.conv2 = ai8x.Conv2d(70, 12, 1, bias=False, **bits)
        self.fc1 = ai8x.FusedLinearReLU(12 * 16, 20, bias=True, **bits)
        self.fc2 = ai8x.Linear(20, 5, wide=True, **bits)

    def forward(self, x: Any) -> Any:
        x = self.conv2(self.pool(self.conv1(x)))
        return self.fc2(self.fc1(x.flatten(1)))


class Residuals(nn.Module):
    """A sum in front of a pooled layer, a sum alone, joined channels, layers used by several."""

    def __init__(self, **bits: Any) -> None:
        super().__init__()
        self.conv1 = ai8x.FusedConv2dReLU(4, 8, 3, padding=1, bias=False, **bits)
        self.conv2 = ai8x.FusedConv2dReLU(8, 8, 3, padding=1, bias=False, **bits)
        self.add1 = ai8x.Add()
        self.conv3 = ai8x.FusedMaxPoolConv2dReLU(8, 8, 3, padding=1, bias=False, **bits)
        self.left = ai8x.FusedConv2dReLU(8, 4, 1, bias=False, **bits)
        self.right = ai8x.FusedConv2dReLU(8, 12, 3, padding=1, bias=False, **bits)
        self.conv4 = ai8x.Conv2d(16, 8, 1, bias=False, **bits)
        self.add2 = ai8x.Add()

    def forward(self, x: Any) -> Any:
        x = self.conv1(x)
        x = self.conv3(self.add1(self.conv2(x), x))
        y = self.conv4(torch.cat([self.left(x), self.right(x)], 1))
        return self.add2(y, x)


class Series(nn.Module):
    """Convolutions of a series, with pooling and dilation."""

    def __init__(self, **bits: Any) -> None:
        super().__init__()
        self.conv1 = ai8x.FusedConv1dReLU(8, 16, 5, padding=2, bias=False, **bits)
        self.conv2 = ai8x.FusedAvgPoolConv1dReLU(16, 8, 3, dilation=2, bias=False, **bits)
        self.fc = ai8x.Linear(8 * 12, 5, wide=True, **bits)

    def forward(self, x: Any) -> Any:
        return self.fc(self.conv2(self.conv1(x)).flatten(1))


def _integers(kind: type[nn.Module]) -> nn.Module:
    """Return the network for the simulation with random weights."""
    torch.manual_seed(1)
    model = kind(weight_bits=8, bias_bits=8, quantize_activation=True).eval()
    with torch.no_grad():
        for name, parameter in model.named_parameters():
            if name.endswith(("op.weight", "op.bias")):
                parameter.copy_(torch.randint(-128, 128, parameter.shape))
    return model


@pytest.mark.parametrize("device", [85, 87])
@pytest.mark.parametrize(
    ("kind", "shape"), [(Chain, (3, 8, 8)), (Residuals, (4, 8, 8)), (Series, (8, 32))]
)
def test_loader_computes_what_the_network_does(
    tmp_path: Path, kind: type[nn.Module], shape: tuple[int, ...], device: int
) -> None:
    ai8x.set_device(device, False, False, verbose=False)
    path = str(tmp_path / "net.yaml")
    options = TrainingOptions(arch="net", dataset="some", device=device, yaml_template=path)
    example, policy = torch.zeros(1, *shape), {"weight_bits": 8}
    said = write_template(kind().eval(), example, policy, options, complete_description)
    assert said.endswith("nothing is left to fill in"), Path(path).read_text()

    ai8x.set_device(device, True, False, verbose=False)
    model = _integers(kind)
    file = tmp_path / "net.pth.tar"
    checkpoints.write([file], 1, "net", model, torch.optim.SGD(model.parameters(), 0.1), {})
    sample = np.random.default_rng(2).integers(-128, 128, shape, dtype=np.int64)
    np.save(tmp_path / "sample.npy", sample)
    with torch.no_grad():
        expected = model(torch.as_tensor(sample, dtype=torch.float32).unsqueeze(0))[0].numpy()
    resolving = ResolveOptions(
        sample_input=str(tmp_path / "sample.npy"), checkpoint_file=str(file)
    )  # fmt: skip
    found = synthesize(path, CHIPS[device], resolving, EncodeOptions())
    outputs = found.activations.outputs
    result = outputs[max(outputs)]
    assert np.any(expected)
    np.testing.assert_array_equal(np.asarray(result).squeeze(), expected)


def test_template_of_a_shipped_network(tiny: Train) -> None:
    Path("policy.yaml").write_text(
        "start_epoch: 1\nweight_bits: 4\noverrides: {conv1: {weight_bits: 8}}\n"
    )
    done = tiny(
        "ai85net5", "MNIST", "--qat-policy", "policy.yaml", "--yaml-template", "net.yaml"
    )  # fmt: skip
    assert done.output == "Saved 5 layers as net.yaml; nothing is left to fill in\n", done.error
    found = yaml.safe_load(Path("net.yaml").read_text())
    assert (found["arch"], found["dataset"]) == ("ai85net5", "MNIST")
    assert [layer.get("quantization") for layer in found["layers"]] == [None, 4, 4, 4, 4]
    assert found["layers"][3] == {
        "name": "conv4", "op": "Conv2d", "weights": "conv4", "avg_pool": 2, "pool_stride": 2,
        "kernel_size": "3x3", "pad": 1, "activate": "ReLU", "quantization": 4,
        "processors": "0x00ff.ffff.ffff.ffff", "output_processors": "0x0000.0000.0000.0fff",
        "in_offset": 0x400, "out_offset": 0,
    }  # fmt: skip
    assert found["layers"][4]["flatten"] is True
    assert found["layers"][4]["output_width"] == 32


class Large(nn.Module):
    """Too much data for MAX78000 as HWC, CHW and through a FIFO: the sample is read twice."""

    def __init__(self) -> None:
        super().__init__()
        self.second = ai8x.Conv2d(6, 3, 1)
        self.first = ai8x.Conv2d(3, 3, 1)

    def forward(self, x: Any) -> Any:
        return self.second(torch.cat([self.first(x), x], 1))


def template(model: nn.Module, shape: tuple[int, ...], path: Path) -> str:
    """Write a description for MAX78000, as train.py does."""
    ai8x.set_device(85, False, False, verbose=False)
    options = TrainingOptions(arch="net", dataset="some", yaml_template=str(path))
    return write_template(model, torch.zeros(1, *shape), None, options, complete_description)


def test_what_does_not_fit_is_refused_with_all_reasons(tmp_path: Path) -> None:
    with pytest.raises(DiagnosticError) as caught:
        template(Large(), (3, 200, 200), tmp_path / "a.yaml")
    said = str(caught.value)
    assert "160000 bytes of a data memory instance, MAX78000 has 32768" in said
    assert "CHW: " in said and "Tried: " in said
    assert not list(tmp_path.iterdir())


def test_nodes_without_a_layer_are_refused_by_name(tmp_path: Path) -> None:
    net = nn.Sequential(ai8x.Conv2d(3, 3, 1), nn.Tanh(), ai8x.Conv2d(3, 3, 1))
    with pytest.raises(InputError, match="the model computes Tanh here"):
        template(net, (3, 8, 8), tmp_path / "a.yaml")
    assert not list(tmp_path.iterdir())


def test_network_without_layers_has_no_template(tmp_path: Path) -> None:
    with pytest.raises(InputError, match="no layer that the accelerator computes") as refused:
        template(nn.Flatten(), (3,), tmp_path / "a.yaml")
    assert refused.value.code == "E650"
    assert not list(tmp_path.iterdir())


def test_bits_of_a_checkpoint_count_more_than_the_policy(tiny: Train) -> None:
    Path("policy.yaml").write_text(
        "start_epoch: 1\nweight_bits: 4\noverrides: {fc: {weight_bits: 8}}\n"
    )
    trained = tiny(
        "tinyclassifier", "tinyclasses", "--qat-policy", "policy.yaml", "--epochs", "2"
    )  # fmt: skip
    file = str(trained.folder / "qat_checkpoint.pth.tar")
    Path("eight.yaml").write_text("start_epoch: 1\nweight_bits: 8\n")
    done = tiny(
        "tinyclassifier", "tinyclasses", "--yaml-template", "net.yaml", "--qat-policy",
        "eight.yaml", "--exp-load-weights-from", file,
    )  # fmt: skip
    assert done.status == 0, done.error
    found = yaml.safe_load(Path("net.yaml").read_text())
    assert [layer.get("quantization") for layer in found["layers"]] == [4, None]

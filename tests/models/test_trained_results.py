"""The networks in trained/ reach what is said of them and belong together."""

from __future__ import annotations

import os
from pathlib import Path
from typing import Any

import pytest
import torch
from torch import nn

import ai8x
from ai8xtools.checkpoint import read_checkpoint
from ai8xtools.commands.train.search import ChipDeployment
from ai8xtools.synthesis.options import EncodeOptions, ResolveOptions
from ai8xtools.synthesis.pipeline import synthesize
from ai8xtools.training.catalog.own_file import own_model
from ai8xtools.training.options import TrainingOptions
from ai8xtools.training.saving import checkpoints
from datasets.digits import digits_get_datasets
from datasets.images import ImageDataset
from datasets.mnist import mnist_get_datasets
from device import MAX78000
from models.ai85digitsnet import ai85digitsnet
from models.ai85net import ai85net5
from tests.conftest import ROOT

TRAINED = ROOT / "trained"
WIDTHS = {"weight_bits": 8, "bias_bits": 8, "quantize_activation": True}
INTEGERS = TrainingOptions(arch="", dataset="", evaluate=True, act_mode_8bit=True)


def _network(make: Any, name: str, simulate: bool) -> nn.Module:
    ai8x.set_device(85, simulate, False, verbose=False)
    model: nn.Module = make(num_channels=1, **(WIDTHS if simulate else {}))
    path = str(TRAINED / f"{name}.pth.tar")
    assert checkpoints.load_into(model, checkpoints.read(path)) == []
    return model.eval()


def _searched(**keywords: Any) -> nn.Module:
    """Make the network that an architecture search has found."""
    made: nn.Module = own_model(f"{TRAINED}/mnist_nas.py:NASNetwork", 2).make(**keywords)
    return made


def test_searched_network_needs_less_than_half_the_cycles() -> None:
    ai8x.set_device(85, False, False, verbose=False)
    example = torch.zeros(1, 1, 28, 28)
    found, known = (ChipDeployment(85).cost(network, example)
                    for network in (_searched(), ai85net5(num_channels=1)))  # fmt: skip
    assert 0 < 2 * found.cycles < known.cycles
    assert (found.cycles, known.cycles) == (29461, 70157)


def _accuracy(model: nn.Module, test: ImageDataset | None, most: int = 10_000) -> float:
    """Return the share of test images that are recognized, in percent."""
    assert test is not None
    hits, count = 0, min(len(test), most)
    for part in torch.arange(count).split(500):
        x, targets = test.batch(part)
        hits += int((model(x).argmax(1) == targets).sum())
    return 100 * hits / count


@torch.no_grad()
@pytest.mark.parametrize(
    ("make", "name", "size"),
    [
        (ai85net5, "mnist-ai85net5-qat8", 28),
        (ai85net5, "mnist-ai85net5-mixed", 28),
        (ai85digitsnet, "digits-ai85digitsnet-qat8", 8),
        (_searched, "mnist-nas-qat8", 28),
    ],
)
def test_quantized_network_computes_what_training_saw(make: Any, name: str, size: int) -> None:
    x = torch.randint(-128, 128, (16, 1, size, size)).float()
    result = _network(make, name, simulate=False)(x / 128)
    integers = _network(make, f"{name}-q", simulate=True)(x)
    assert torch.equal(result * 16384, integers)


@torch.no_grad()
def test_digits_are_recognized() -> None:
    model = _network(ai85digitsnet, "digits-ai85digitsnet-qat8-q", simulate=True)
    _, test = digits_get_datasets(("", INTEGERS), load_train=False)
    assert _accuracy(model, test) >= 98.0


@torch.no_grad()
@pytest.mark.parametrize(
    ("make", "name", "least", "of_first"),
    [
        (ai85net5, "mnist-ai85net5-qat8-q", 99.4, 99.2),
        (ai85net5, "mnist-ai85net5-mixed-q", 99.0, 98.8),
        (_searched, "mnist-nas-qat8-q", 99.4, 99.1),
    ],
)
def test_mnist_is_recognized(
    shared: Path, make: Any, name: str, least: float, of_first: float
) -> None:
    """All images by `make properties`, else the first quarter, which is harder than the rest."""
    model = _network(make, name, simulate=True)
    _, test = mnist_get_datasets((str(shared / "data"), INTEGERS), load_train=False)
    if "AI8X_PROPERTIES" in os.environ:
        assert _accuracy(model, test) >= least
    else:
        assert _accuracy(model, test, 2500) >= of_first


def _kernel_bytes(description: str, name: str) -> int:
    """Return the bytes of kernel memory that the network loader reports."""
    resolving = ResolveOptions(
        str(ROOT / "tests" / "sample_mnist.npy"), checkpoint_file=str(TRAINED / f"{name}.pth.tar")
    )
    config_file = str(ROOT / "networks" / f"{description}.yaml")
    made = synthesize(config_file, MAX78000, resolving, EncodeOptions())
    return made.summary.statistics.weight_bytes


def test_mixed_widths_need_less_than_half_the_kernel_memory() -> None:
    mixed, eight_bits = "mnist-ai85net5-mixed-q", "mnist-ai85net5-qat8-q"
    state = read_checkpoint(str(TRAINED / f"{mixed}.pth.tar")).state_dict
    widths = {int(v.item()) for key, v in state.items() if key.endswith("weight_bits")}
    assert widths == {2, 4, 8}
    needed = _kernel_bytes("mnist-mixed-chw-ai85", mixed)
    assert 2 * needed < _kernel_bytes("mnist-chw-ai85", eight_bits)

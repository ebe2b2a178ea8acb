"""What an architecture search knows of the chip, and the model files that it writes."""

from __future__ import annotations

from pathlib import Path
from random import Random
from typing import Any

import pytest
import torch

import ai8x
from ai8xtools.commands.train.search import ChipDeployment
from ai8xtools.training.catalog.own_file import own_model
from models.ai85nasnet import (
    ai85nasnet_sequential_cifar100,
    ai85nasnet_sequential_kws20,
    ai85nasnet_sequential_mnist,
)


def _elastic(make: Any) -> Any:
    ai8x.set_device(85, False, False, verbose=False)
    torch.manual_seed(0)
    return make()


@pytest.mark.parametrize(
    ("make", "shape"),
    [(ai85nasnet_sequential_mnist, (1, 28, 28)), (ai85nasnet_sequential_kws20, (128, 128))],
)
def test_model_file_computes_as_the_network_and_fits(
    make: Any, shape: tuple[int, ...], tmp_path: Path
) -> None:
    elastic = _elastic(make)
    deployment = ChipDeployment(85)
    network = elastic.network(elastic.space.sample(Random(4))).eval()
    file = tmp_path / "nas_network.py"
    deployment.write_model(file, network, "A network")
    entry = own_model(f"{file}:NASNetwork", len(shape) - 1)
    written = entry.make(bias=False, weight_bits=None, bias_bits=None, quantize_activation=False)
    written.load_state_dict(network.state_dict())
    x = torch.rand(3, *shape) * 2 - 1
    assert torch.equal(written.eval()(x), network(x))
    weights = sum(layer.op.weight.numel() for layer in network.convolutions())
    cost = deployment.cost(network, x[:1])
    assert not cost.refusal
    assert cost.weights == weights + network.fc.op.weight.numel()
    assert 0 < cost.kernel_columns < 768
    assert cost.cycles > 0


def test_network_that_does_not_fit_is_refused_with_the_reason() -> None:
    elastic = _elastic(ai85nasnet_sequential_cifar100)
    network = elastic.network(elastic.space.largest())
    cost = ChipDeployment(85).cost(network, torch.zeros(1, 3, 32, 32))
    assert "of 768" in cost.refusal
    assert cost.cycles == 0
    network = elastic.network(elastic.space.largest())
    assert not ChipDeployment(87).cost(network, torch.zeros(1, 3, 32, 32)).refusal


def test_smaller_networks_cost_less() -> None:
    elastic = _elastic(ai85nasnet_sequential_mnist)
    space, example = elastic.space, torch.zeros(1, 1, 28, 28)
    few, many = (
        ChipDeployment(85).cost(elastic.network(one), example)
        for one in (space.smallest(), space.largest())
    )
    assert few.cycles < many.cycles / 4
    assert few.kernel_columns < many.kernel_columns

"""Elastic networks: their parts are networks of their own, and what can be chosen."""

from __future__ import annotations

import itertools
from random import Random
from typing import Any

import pytest
import torch
from torch import Tensor

import ai8x
import ai8x_nas
from ai8x_nas import Architecture, LayerChoice, Stage


def _network(axes: int, bn: bool = True) -> tuple[Any, Tensor]:
    """Return a small elastic network with random statistics, and inputs."""
    ai8x.set_device(85, False, False, verbose=False)
    torch.manual_seed(0)
    kinds = {1: ai8x_nas.OnceForAll1DSequentialModel, 2: ai8x_nas.OnceForAll2DSequentialModel}
    size = (12,) if axes == 1 else (12, 12)
    network = kinds[axes](
        3, 2, size, n_units=2, depth_list=(2, 3), width_list=(8, 12),
        kernel_list=(5, 3) if axes == 1 else (3, 3), bn=bn,
    )  # fmt: skip
    x = torch.rand(16, 2, *size) * 2 - 1
    network.calibrate([x])
    return network.eval(), x


@pytest.mark.parametrize(("axes", "bn"), [(1, True), (2, True), (2, False)])
def test_part_computes_as_the_network_that_is_taken_out(axes: int, bn: bool) -> None:
    network, x = _network(axes, bn)
    whole = network(x)
    random = Random(3)
    seen = set()
    for _ in range(8):
        architecture = network.space.sample(random)
        network.choose(architecture)
        network.calibrate([x])
        taken = network.network().eval()
        assert torch.allclose(network(x), taken(x), atol=1e-6)
        count = sum(map(len, architecture.units))
        assert sum(1 for _ in taken.convolutions()) == count
        names = [name for name, _ in taken.named_children() if name.startswith("conv")]
        assert names == [f"conv{n + 1}" for n in range(count)]
        seen.add(architecture)
    assert len(seen) > 5
    network.choose(network.space.largest())
    network.calibrate([x])
    assert torch.allclose(network(x), whole, atol=1e-5)


@pytest.mark.parametrize("axes", [1, 2])
def test_sorting_channels_keeps_results_and_puts_great_weights_first(axes: int) -> None:
    network, x = _network(axes)
    before = network(x)
    network.sort_channels()
    assert torch.allclose(network(x), before, atol=1e-6)
    for unit in network.units:
        assert torch.equal(unit.order(), torch.arange(unit.space.widths[0]))


def test_training_a_part_leaves_the_rest() -> None:
    network, x = _network(2)
    network.choose(network.space.smallest())
    network.train()
    statistics = network.units[0].layers[0].bn.running_mean.clone()
    network(x).sum().backward()
    first = network.units[0].layers[0]
    assert first.op.weight.grad[:2, :, 1, 1].abs().sum() > 0
    assert first.op.weight.grad[2:].abs().sum() == 0
    assert first.op.weight.grad[:2, :, 0].abs().sum() == 0
    assert network.units[0].layers[1].op.weight.grad is None
    assert torch.equal(first.bn.running_mean, statistics)


def test_parts_compute_in_floating_point_only() -> None:
    network, x = _network(2)
    ai8x.fuse_bn_layers(network)
    ai8x.initiate_qat(network, {"weight_bits": 8})
    assert network(x).shape == (16, 3)
    network.choose(network.space.smallest())
    with pytest.raises(RuntimeError, match="floating point only"):
        network(x)


def test_levels_open_the_space_step_by_step() -> None:
    network, _ = _network(1)
    space = network.space
    assert [space.levels(stage) for stage in Stage] == [0, 2, 2, 3]
    assert len(space.at(Stage.FULL, 0)) == 1
    assert len(space.at(Stage.KERNEL, 1)) == 2**2 * 2**3
    assert len(space.at(Stage.KERNEL, 2)) == 3**2 * 2**3
    assert len(space.at(Stage.DEPTH, 2)) == (3 + 9) * (2 + 4 + 8)
    assert space.at(Stage.WIDTH, 3) == space
    opened = [space.at(stage, level) for stage in Stage for level in range(1, 4)]
    for narrow, wide in itertools.pairwise(opened):
        assert narrow.smallest() in wide


def test_mutation_and_crossing_stay_in_the_space() -> None:
    network, _ = _network(2)
    space, random = network.space, Random(1)
    one, other = space.sample(random), space.sample(random)
    assert space.mutated(one, 0.0, random) == one
    mutants = {space.mutated(one, 0.5, random) for _ in range(30)}
    assert len(mutants) > 10
    assert all(mutant in space for mutant in mutants)
    for _ in range(5):
        crossed = space.crossed(one, other, random)
        assert all(
            u in pair for u, *pair in zip(crossed.units, one.units, other.units, strict=True)
        )


def test_foreign_architecture_is_refused() -> None:
    network, _ = _network(2)
    wrong = Architecture(((LayerChoice(7, 3),), (LayerChoice(12, 3),)))
    with pytest.raises(ValueError, match="does not contain 7k3"):
        network.choose(wrong)
    assert ai8x_nas.architecture_of(wrong.as_dict()) == wrong


@pytest.mark.parametrize(
    ("change", "message"),
    [
        ({"depth_list": (1,)}, "depth_list has 1 values, n_units=2"),
        ({"depth_list": (0, 1)}, "a unit has at least one layer"),
        ({"kernel_list": (3, 2)}, "elastic kernels are odd"),
        ({"pool_list": (4, 4)}, "nothing is left"),
        ({"kernel_list": (3, 5)}, "kernel_size=5"),
    ],
)
def test_sizes_that_cannot_be_are_refused(change: dict[str, Any], message: str) -> None:
    ai8x.set_device(85, False, False, verbose=False)
    usual = {"depth_list": (1, 1), "width_list": (8, 8), "kernel_list": (3, 3)}
    with pytest.raises(AssertionError, match=message):
        ai8x_nas.OnceForAll2DSequentialModel(2, 1, (8, 8), n_units=2, **{**usual, **change})

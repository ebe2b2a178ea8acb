"""Spaces of elastic networks against all of their members, and networks taken out of them."""

from __future__ import annotations

import itertools
from collections.abc import Iterator
from random import Random
from typing import Any

import pytest
import torch

import ai8x
import ai8x_nas
from ai8xtools.layers.elastic.networks import (
    OnceForAll1DSequentialModel,
    OnceForAll2DSequentialModel,
)
from ai8xtools.layers.elastic.space import (
    Architecture,
    LayerChoice,
    SearchSpace,
    Stage,
    UnitSpace,
    architecture_of,
    kernels_of,
    widths_of,
)


@pytest.fixture(autouse=True)
def _chip_and_one_thread() -> Iterator[None]:
    ai8x.set_device(85, simulate=False, round_avg=False, verbose=False)
    before = torch.get_num_threads()
    torch.set_num_threads(1)
    yield
    torch.set_num_threads(before)


SPACE = SearchSpace((UnitSpace(2, 1, (8, 6), (3, 1)), UnitSpace(3, 2, (4,), (5, 3))))


def members(space: SearchSpace) -> set[Architecture]:
    units = []
    for unit in space.units:
        layers = [LayerChoice(w, k) for w in unit.widths for k in unit.kernels]
        depths = range(unit.least_depth, unit.depth + 1)
        units.append([u for d in depths for u in itertools.product(layers, repeat=d)])
    return {Architecture(tuple(found)) for found in itertools.product(*units)}


def test_space_has_as_many_networks_as_can_be_listed() -> None:
    every = members(SPACE)
    assert len(SPACE) == len(every)
    assert all(one in SPACE for one in every)
    assert SPACE.largest() in every
    assert SPACE.smallest() in every
    assert all(architecture_of(one.as_dict()) == one for one in every)
    (one, *_), (other, *_) = SPACE.largest().units
    assert (one, other) == (LayerChoice(8, 3), LayerChoice(4, 5))
    assert [len(unit) for unit in SPACE.largest().units] == [2, 3]
    assert [len(unit) for unit in SPACE.smallest().units] == [1, 2]
    assert SPACE.smallest().units[0] == (LayerChoice(6, 1),)
    wrong = [
        ((LayerChoice(7, 3),), (LayerChoice(4, 3),) * 2),
        ((LayerChoice(8, 5),), (LayerChoice(4, 3),) * 2),
        ((LayerChoice(8, 3),) * 3, (LayerChoice(4, 3),) * 2),
        ((LayerChoice(8, 3),), (LayerChoice(4, 3),)),
        ((LayerChoice(8, 3),),),
    ]
    assert not any(Architecture(units) in SPACE for units in wrong)
    assert str(Architecture(((LayerChoice(8, 3), LayerChoice(6, 1)), (LayerChoice(4, 5),)))) == (
        "8k3 6k1 | 4k5"
    )


def test_every_stage_opens_what_it_names_and_keeps_what_was_open() -> None:
    before: set[Architecture] = {SPACE.largest()}
    assert members(SPACE.at(Stage.FULL, 0)) == before
    assert SPACE.levels(Stage.FULL) == 0
    for stage in (Stage.KERNEL, Stage.DEPTH, Stage.WIDTH):
        assert SPACE.levels(stage) == 1
        assert members(SPACE.at(stage, 0)) == before
        opened = members(SPACE.at(stage, SPACE.levels(stage)))
        assert before < opened
        before = opened
    assert before == members(SPACE)


def test_widths_are_quarters_and_kernels_share_their_centre() -> None:
    for largest in range(1, 70):
        wanted = sorted({-(-largest * part // 4) for part in (1, 2, 3, 4)}, reverse=True)
        assert widths_of(largest) == tuple(wanted)
    assert [kernels_of(k) for k in (1, 3, 5)] == [(1,), (3, 1), (5, 3, 1)]


def test_space_with_some_widths_has_no_others() -> None:
    for allowed in ((4,), (4, 6), (8, 4), (8, 6), (4, 6, 8)):
        found = SPACE.with_widths(allowed)
        wanted = {
            one for one in members(SPACE) if all(x.width in allowed for u in one.units for x in u)
        }
        assert (members(found) if found else set()) == wanted


def test_drawing_reaches_every_network_and_mutation_what_its_probability_says() -> None:
    random = Random(3)
    small = SearchSpace((UnitSpace(2, 1, (8, 6), (3, 1)),))
    assert {small.sample(random) for _ in range(600)} == members(small)
    start = SPACE.sample(random)
    assert all(SPACE.mutated(start, 0.0, random) == start for _ in range(20))
    assert {small.mutated(small.largest(), 1.0, random) for _ in range(600)} == members(small)
    one, other = SPACE.largest(), SPACE.smallest()
    found = {SPACE.crossed(one, other, random) for _ in range(60)}
    pairs = itertools.product(*zip(one.units, other.units, strict=True))
    assert found == {Architecture(pair) for pair in pairs}
    changed = sum(SPACE.mutated(one, 0.1, random) != one for _ in range(400))
    assert 60 < changed < 340


def models() -> Iterator[tuple[Any, tuple[int, ...]]]:
    for bias, bn in itertools.product((False, True), repeat=2):
        some = {"bias": bias, "bn": bn, "n_units": 2, "depth_list": (2, 1), "width_list": (8, 4)}
        yield OnceForAll1DSequentialModel(3, 2, (12, 1), kernel_list=(5, 3), **some), (3, 2, 12)
        yield OnceForAll2DSequentialModel(3, 2, (6, 8), kernel_list=(3, 3), **some), (3, 2, 6, 8)


@torch.no_grad()
def test_every_kind_of_network_taken_out_computes_the_same() -> None:
    torch.manual_seed(2)
    random = Random(1)
    for model, shape in models():
        model.eval()
        x = torch.rand(shape) * 2 - 1
        for bn in model.normalizations():
            bn.running_mean.uniform_(-0.1, 0.1)
            bn.running_var.uniform_(0.5, 2)
        assert model.positions == (6 if len(shape) == 3 else 12)
        for _ in range(2):
            found = model.space.sample(random)
            model.choose(found)
            fixed = model.network().eval()
            assert torch.allclose(fixed(x), model(x), atol=1e-5)
            convolutions = list(fixed.convolutions())
            assert len(convolutions) == sum(map(len, found.units))
            has_bias = model.bias or model.bn
            assert all((one.op.bias is not None) == has_bias for one in convolutions)
            assert all((one.bn is not None) == model.bn for one in convolutions)
            assert (fixed.bias, fixed.bn) == (has_bias, model.bn)
            assert (fixed.positions, fixed.layers[0].in_channels) == (model.positions, 2)


def test_defaults_are_one_unit_of_one_layer_that_does_not_pool() -> None:
    model = ai8x_nas.OnceForAll2DSequentialModel(5, 3, (4, 4))
    (unit,) = model.units
    assert (len(unit.layers), unit.pool) == (1, 1)
    assert unit.space == UnitSpace(1, 1, (64, 48, 32, 16), (3, 1))
    assert model(torch.zeros(2, 3, 4, 4)).shape == (2, 5)
    assert unit.layers[0].bn is not None

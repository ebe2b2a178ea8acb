"""Errors by layer and choices of calibration, for a small network that is computed by hand."""

from __future__ import annotations

import itertools
import math
from collections.abc import Iterator
from typing import Any

import pytest
import torch
from torch import Tensor, nn
from torch.nn import functional

import ai8x
from ai8xtools.quantization.bit_search import Sensitivity, search, sensitivities, within
from ai8xtools.quantization.calibration import Walk, calibrate, fill
from ai8xtools.quantization.layer_errors import network_errors

NAMES = ["first", "last"]


class Small(nn.Module):
    def __init__(self) -> None:
        super().__init__()
        self.first = ai8x.FusedConv2dReLU(2, 3, 3, padding=1, bias=True)  # type: ignore[attr-defined]
        self.last = ai8x.Linear(3 * 4 * 4, 4, bias=True, wide=True)

    def forward(self, x: Tensor) -> Any:
        return self.last(self.first(x).flatten(1))


@pytest.fixture(scope="module")
def networks() -> Iterator[tuple[Small, Small, list[Tensor]]]:
    before = torch.get_num_threads()
    torch.set_num_threads(1)
    torch.manual_seed(5)
    ai8x.set_device(85, simulate=False, round_avg=False, verbose=False)
    trained = Small().eval()
    with torch.no_grad():
        trained.first.op.weight.normal_(0, 0.3)
        trained.first.op.bias.uniform_(-0.1, 0.3)
        trained.last.op.weight.normal_(0, 0.15)
        trained.last.op.bias.uniform_(-0.2, 0.2)
    ai8x.set_device(85, simulate=True, round_avg=False, verbose=False)
    simulated = Small().eval()
    samples = [(torch.rand(n, 2, 4, 4) * 255 - 128).round() / 128 for n in (20, 12)]
    yield trained, simulated, samples
    ai8x.set_device(85, simulate=False, round_avg=False, verbose=False)
    torch.set_num_threads(before)


def db(wanted: Tensor, found: Tensor) -> float:
    wanted, found = wanted.double(), found.double()
    return 10 * math.log10(wanted.square().sum() / (found - wanted).square().sum())


def scaled_db(wanted: Tensor, found: Tensor) -> float:
    """Return the ratio with the factor of the least error."""
    wanted, found = wanted.double(), found.double()
    return db(wanted, found * (wanted * found).sum() / found.square().sum())


@torch.no_grad()
def test_errors_by_layer_are_those_of_their_definition(networks: Any) -> None:
    trained, simulated, samples = networks
    chosen = {c.name: c.integers for c in calibrate(trained, simulated, samples, {"first": 4})}
    classes = torch.arange(32) % 4
    found = network_errors(trained, simulated, samples, classes)
    x = torch.cat(samples)
    held = {}
    for name in NAMES:
        some = chosen[name]
        unit = 2.0 ** (some.shift - some.bits + 1)
        held[name] = torch.from_numpy(some.weights) * unit, torch.from_numpy(some.bias) * unit
    first, last = trained.first.op, trained.last.op

    def conv(weight: Tensor, bias: Tensor, rounds: bool) -> Tensor:
        y = functional.conv2d(x, weight, bias, padding=1)
        return ((y * 128 + 0.5).floor() / 128 if rounds else y).clamp(0, 127 / 128)

    before = conv(first.weight, first.bias, False)
    after = conv(*held["first"], True)
    wanted = functional.linear(before.flatten(1), last.weight, last.bias)
    results = {
        "first": functional.linear(after.flatten(1), last.weight, last.bias),
        "last": functional.linear((before * 128).round().clamp(-128, 127).flatten(1) / 128,
                                  *held["last"]),
        "both": functional.linear(after.flatten(1), *held["last"]),
    }  # fmt: skip
    assert [layer.name for layer in found.layers] == NAMES
    outputs = {"first": (before, after), "last": (wanted, results["both"])}
    for layer in found.layers:
        assert layer.output_snr_db == pytest.approx(db(*outputs[layer.name]), abs=0.05)
        assert layer.alone_snr_db == pytest.approx(scaled_db(wanted, results[layer.name]), abs=0.05)
        most = results[layer.name].argmax(1)
        assert layer.alone_same == float((most == wanted.argmax(1)).double().mean())
        assert layer.alone_right == float((most == classes).double().mean())
    clipped = (after >= 127 / 128) & ((after - before).abs() * 128 > 1)
    assert found.layers[0].output_clipped == float(clipped.double().mean())
    assert found.layers[1].output_clipped == 0
    assert found.snr_db == pytest.approx(scaled_db(wanted, results["both"]), abs=0.05)
    most = results["both"].argmax(1)
    assert found.same == float((most == wanted.argmax(1)).double().mean())
    assert found.right == float((most == classes).double().mean())
    assert found.trained_right == float((wanted.argmax(1) == classes).double().mean())
    assert network_errors(trained, simulated, samples).right is None


@torch.no_grad()
@pytest.mark.parametrize("bits", [1, 2, 4, 8])
def test_calibration_is_never_worse_than_rounding_without_clipping(
    networks: Any, bits: int
) -> None:
    trained, simulated, samples = networks
    walk = Walk(trained, simulated, samples)
    assert sum(map(len, walk.judging)) == sum(map(len, walk._shaping)) == 16
    for choice in calibrate(trained, simulated, samples, dict.fromkeys(NAMES, bits)):
        assert choice.snr_db >= choice.plain_snr_db
        limit = 2 ** (bits - 1)
        weights = choice.integers.weights
        assert (choice.integers.bits, weights.dtype) == (bits, "float32")
        assert -limit <= weights.min() <= weights.max() <= limit - 1
        assert abs(choice.integers.bias).max() <= 128
        layer = getattr(simulated, choice.name)
        assert torch.equal(layer.op.weight, torch.from_numpy(weights))
        if bits == 8:
            assert choice.snr_db > 30


@torch.no_grad()
def test_widths_are_taken_away_where_that_costs_least(networks: Any) -> None:
    trained, simulated, samples = networks
    found = sensitivities(trained, simulated, samples)
    assert [one.name for one in found] == NAMES
    for one in found:
        assert one.weights == getattr(trained, one.name).op.weight.numel()
        assert one.noise.keys() == one.integers.keys() == {1, 2, 4, 8}
        assert one.noise[8] < one.noise[4] < one.noise[2]
        for bits, integers in one.integers.items():
            assert integers.bits == bits
            assert getattr(simulated, one.name).weight_bits.item() == 8
    steps = search(found, trained, simulated, samples)
    assert steps[0].bits == dict.fromkeys(NAMES, 8)
    assert steps[-1].bits == dict.fromkeys(NAMES, 1)
    sizes = [step.size_bytes for step in steps]
    assert sizes == sorted(set(sizes), reverse=True)
    assert steps[0].snr_db == max(step.snr_db for step in steps)
    for step in steps:
        assert step.size_bytes == sum(math.ceil(one.weights * step.bits[one.name] / 8)
                                      for one in found)  # fmt: skip
        for one in found:
            fill(getattr(simulated, one.name), one.integers[step.bits[one.name]])
        errors = network_errors(trained, simulated, samples)
        assert step.snr_db == pytest.approx(errors.snr_db)
        assert step.same == errors.same
    for one, other in itertools.pairwise(steps):
        (name,) = (n for n in NAMES if one.bits[n] != other.bits[n])
        assert cost(found, one.bits, name, other.bits[name]) == min(
            cost(found, one.bits, n, fewer)
            for n in NAMES for fewer in (1, 2, 4) if fewer < one.bits[n]
        )  # fmt: skip
    assert within(steps, sizes[0]) == steps[0]


def cost(found: list[Sensitivity], bits: Any, name: str, fewer: int) -> float:
    (layer,) = (one for one in found if one.name == name)
    held = bits[name]
    freed = math.ceil(layer.weights * held / 8) - math.ceil(layer.weights * fewer / 8)
    return (layer.noise[fewer] - layer.noise[held]) / freed

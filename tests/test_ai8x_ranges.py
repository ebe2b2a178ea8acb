"""The second generation of QAT: ranges of activations, and how they are carried through networks.

Where the vendor's rules go wrong, the tests compare with the float network itself: scaling must not
change what a network computes, in whatever order its layers are defined.
"""

from __future__ import annotations

import argparse
import json
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch
from torch import Tensor, nn

import ai8x
from ai8xtools.checkpoint import Checkpoint, read_checkpoint
from ai8xtools.layers.ranges import best_exponent, init_threshold, merged
from ai8xtools.quantization import QuantizationOptions, quantize_checkpoint
from ai8xtools.training.saving import checkpoints

NAMES = ("res", "cat", "wide", "mixed", "multi", "shared")
POLICY = {"weight_bits": 8, "shift_quantile": 1.0}


@pytest.fixture(autouse=True)
def _leave_no_trace() -> Iterator[None]:
    threads = torch.get_num_threads()
    torch.set_num_threads(1)
    ai8x.set_device(85, simulate=False, round_avg=False, verbose=False)
    yield
    torch.set_num_threads(threads)
    ai8x.set_device(85, simulate=False, round_avg=False, verbose=False)


def conv(inputs: int = 4, outputs: int = 4, **changes: Any) -> Any:
    return ai8x.Conv2d(inputs, outputs, 1, bias=True, **changes)


class Chain(nn.Module):
    """Defined against the order of execution: z reads y, y reads a."""

    def __init__(self) -> None:
        super().__init__()
        self.z, self.y, self.a = conv(), conv(), conv()

    def forward(self, x: Tensor) -> Tensor:
        return self.z(self.y(self.a(x)))


class Single(nn.Module):
    def __init__(self, wide: bool = False) -> None:
        super().__init__()
        self.fc = conv(wide=wide)

    def forward(self, x: Tensor) -> Tensor:
        return self.fc(x)


class Joins(nn.Module):
    """Joins that share producers, so that all four must have one range."""

    def __init__(self) -> None:
        super().__init__()
        self.rs, self.qr, self.pq = conv(8), conv(8), conv(8)
        self.s, self.r, self.q, self.p = conv(), conv(), conv(), conv()

    def forward(self, x: Tensor) -> tuple[Tensor, ...]:
        p, q, r, s = self.p(x), self.q(x), self.r(x), self.s(x)
        pairs = ((self.pq, p, q), (self.qr, q, r), (self.rs, r, s))
        return tuple(layer(torch.cat(pair, 1)) for layer, *pair in pairs)


class Sum(nn.Module):
    """Ends in an addition, one operand of which another layer reads as well."""

    def __init__(self) -> None:
        super().__init__()
        self.a, self.b, self.c, self.add = conv(), conv(), conv(), ai8x.Add()

    def forward(self, x: Tensor) -> tuple[Tensor, Tensor]:
        a = self.a(x)
        return self.add(a, self.b(x)), self.c(a)


class Pooled(nn.Module):
    def __init__(self) -> None:
        super().__init__()
        self.a, self.b, self.pool = conv(), conv(), ai8x.AvgPool2d(2)

    def forward(self, x: Tensor) -> Tensor:
        return self.pool(self.b(self.a(x)))


class Branch(nn.Module):
    """Delivers what it also reads."""

    def __init__(self) -> None:
        super().__init__()
        self.a, self.b = conv(), conv()

    def forward(self, x: Tensor) -> tuple[Tensor, Tensor]:
        a = self.a(x)
        return self.b(a), a


class Residual(nn.Module):
    """Adds the input of the network to what a layer makes of it."""

    def __init__(self) -> None:
        super().__init__()
        self.a, self.add, self.b = conv(), ai8x.Add(), conv()

    def forward(self, x: Tensor) -> Tensor:
        return self.b(self.add(x, self.a(x)))


class Shared(nn.Module):
    def __init__(self) -> None:
        super().__init__()
        self.a, self.b, self.c = conv(), conv(), conv(wide=True)

    def forward(self, x: Tensor) -> Tensor:
        return self.c(self.b(self.b(self.a(x))))


def outputs(model: nn.Module, x: Tensor) -> list[Tensor]:
    found = model(x)
    return list(found) if isinstance(found, tuple) else [found]


def large(make: Any) -> tuple[nn.Module, Tensor]:
    """Return a network whose activations leave -1..1, and inputs for it."""
    torch.manual_seed(3)
    model: nn.Module = make()
    for name, parameter in model.named_parameters():
        if name.endswith(("op.weight", "op.bias")):
            parameter.data.normal_(0, 1.5)
    ai8x.use_thresholds(model)
    return model.eval(), (torch.rand(8, 4, 4, 4) * 2 - 1) * 127 / 128


@pytest.mark.parametrize(
    "make", [Chain, Single, lambda: Single(True), Joins, Sum, Pooled, Residual, Shared]
)
@torch.no_grad()
def test_scaling_does_not_change_what_a_network_computes(make: Any) -> None:
    model, x = large(make)
    before = outputs(model, x)
    ai8x.pre_qat(model, [(x, 0)], argparse.Namespace(device="cpu"), POLICY)
    assert any(float(p) for n, p in model.named_parameters() if n.endswith("threshold"))
    for was, now in zip(before, outputs(model, x), strict=True):
        assert torch.allclose(was, now, atol=1e-4 * float(was.abs().max()))


@pytest.mark.parametrize("make", [Chain, Joins, Sum, Pooled])
@torch.no_grad()
def test_quantized_data_stay_near_the_network(make: Any) -> None:
    """With a wrong scale anywhere, the error would be as large as the output."""
    model, x = large(make)
    before = outputs(model, x)
    ai8x.pre_qat(model, [(x, 0)], argparse.Namespace(device="cpu"), POLICY)
    ai8x.initiate_qat(model, POLICY)
    for was, now in zip(before, outputs(model, x), strict=True):
        assert (was - now).square().mean() < 0.05 * was.square().mean()


@torch.no_grad()
def test_what_is_also_read_keeps_its_scale_for_delivery() -> None:
    model, x = large(Branch)
    before = outputs(model, x)
    ai8x.pre_qat(model, [(x, 0)], argparse.Namespace(device="cpu"), POLICY)
    exponent = float(model.get_parameter("a.final_scale"))
    last, inner = outputs(model, x)
    assert exponent != 0
    assert torch.allclose(last, before[0], atol=1e-4 * float(before[0].abs().max()))
    assert torch.allclose(inner * 2.0**exponent, before[1], atol=1e-4)


@torch.no_grad()
def test_integers_are_those_of_training() -> None:
    model, x = large(Sum)
    x = (x * 128).round() / 128
    ai8x.pre_qat(model, [(x, 0)], argparse.Namespace(device="cpu"), POLICY)
    ai8x.initiate_qat(model, POLICY)
    trained = outputs(model, x)
    state = {name: value.numpy() for name, value in model.state_dict().items()}
    made = quantize_checkpoint(Checkpoint({"state_dict": state}), QuantizationOptions())
    ai8x.set_device(85, simulate=True, round_avg=False, verbose=False)
    integers = Sum().eval()
    integers.load_state_dict(
        {k: torch.from_numpy(np.array(v)) for k, v in made.checkpoint.state_dict.items()}
    )
    ai8x.update_model(integers)
    ai8x.settle_scales(integers)
    for wanted, found in zip(trained, outputs(integers, x * 128), strict=True):
        assert torch.equal(wanted * 128, found)


def test_sum_of_the_input_of_the_network_is_not_scaled() -> None:
    """Beside a layer whose result is."""

    class Beside(nn.Module):
        def __init__(self) -> None:
            super().__init__()
            self.a, self.add = conv(), ai8x.Add()

        def forward(self, x: Tensor) -> tuple[Tensor, Tensor]:
            return self.a(x), self.add(x, x)

    ai8x.set_device(85, simulate=False, round_avg=False, verbose=False)
    model, x = Beside().eval(), torch.rand(1, 4, 2, 2) / 4
    ai8x.use_thresholds(model)
    wanted = outputs(model, x)
    model.a.final_scale.data.fill_(2)
    ai8x.settle_scales(model)
    scaled, added = outputs(model, x)
    assert torch.equal(added, wanted[1]) and torch.equal(scaled, 4 * wanted[0])


def test_layer_that_puts_out_nothing_keeps_its_range() -> None:
    assert best_exponent(*merged([(np.array([0.0] * 2047 + [9.0]), 0.0, 0.0)]), 8.0) == 0


def test_histograms_of_several_calls_are_merged() -> None:
    narrow, broad = np.full(2048, 1.0), np.full(2048, 2.0)
    counts, edges = merged([(narrow, 0.0, 1.0), (broad, 0.0, 2.0)])
    assert (edges[0], edges[-1], counts[0]) == (0, 2, 0)
    assert counts.sum() == pytest.approx(3 * 2048)
    assert counts[1:1024].sum() == pytest.approx(2 * counts[1025:].sum(), rel=0.01)


def test_one_far_value_does_not_decide_the_range() -> None:
    counts = np.zeros(2048)
    counts[:64], counts[-1] = 1e6, 1
    assert best_exponent(*merged([(counts, 0.0, 64.0)]), 8.0) == 1
    assert best_exponent(*merged([(counts, 0.0, 64.0)]), 1e9) == 6 - 4


@pytest.mark.parametrize(("far", "exponent"), [(7.875, 3), (8.125, 0)])
def test_values_beyond_8_deviations_do_not_count_unless_another_limit_is_named(
    far: float, exponent: int
) -> None:
    counts = np.zeros(2048)
    for value, count in ((-1.0, 1e5), (1.0, 1e5), (far, 1)):
        counts[round((value + 16) * 64) - 1] = count
    module = ai8x.Add()
    module.histograms = [(counts, -16.0, 16.0)]
    for named, wanted in (({}, exponent), ({"outlier_removal_z_score": 7.0}, 0)):
        init_threshold(module, **named)
        assert int(module.activation_threshold) == wanted


def test_a_range_whose_steps_are_all_values_is_taken() -> None:
    for steps in range(1, 64):
        for largest in (65, 96, 127):
            edges = np.array([-1.0, steps / 128, largest / 128])
            assert best_exponent(np.array([0, 1e4, 1]), edges, 1e9) == 0


def test_generation_follows_the_file_that_is_loaded() -> None:
    first, second = Chain(), Chain()
    before = list(first.state_dict())
    ai8x.use_thresholds(second)
    later = second.state_dict()
    assert list(later)[:9] == [
        "z.output_shift", "z.activation_threshold", "z.final_scale", "z.weight_bits",
        "z.bias_bits", "z.quantize_activation", "z.clamp_activation", "z.adjust_output_shift",
        "z.shift_quantile",
    ]  # fmt: skip
    first.load_state_dict(later)
    assert list(first.state_dict()) == list(later)
    second.load_state_dict(Chain().state_dict())
    assert list(second.state_dict()) == before


def test_network_that_cannot_be_traced_is_told_by_its_statement() -> None:
    class Branching(nn.Module):
        def __init__(self) -> None:
            super().__init__()
            self.a = conv()

        def forward(self, x: Tensor) -> Tensor:
            return self.a(x) if x.sum() > 0 else x

    model = Branching()
    ai8x.use_thresholds(model)
    with pytest.raises(ai8x.NotTraceableError, match="if x.sum"):
        ai8x.apply_scales(model)


@pytest.mark.parametrize("name", NAMES)
def test_quantizer_gives_the_known_twin(name: str, shared: Path) -> None:
    folder = shared / "qat-v2"
    made = quantize_checkpoint(
        read_checkpoint(folder / f"{name}-qat.pth.tar"), QuantizationOptions()
    ).checkpoint
    known = read_checkpoint(folder / f"{name}-qat-q.pth.tar")
    assert list(made.state_dict) == list(known.state_dict)
    for key, value in known.state_dict.items():
        found = made.state_dict[key]
        assert (found.dtype, found.shape) == (value.dtype, value.shape)
        assert np.array_equal(found, value), key


@pytest.mark.parametrize("name", NAMES)
def test_ranges_are_the_known_ones(
    name: str, shared: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    folder = shared / "qat-v2"
    monkeypatch.syspath_prepend(folder)
    import networks  # type: ignore[import-not-found]

    data = np.load(folder / f"{name}.npz")
    policy, stats = (json.loads(bytes(data[key])) for key in ("policy", "stats"))
    model = networks.create(name, ai8x)
    model.load_state_dict(checkpoints.read(str(folder / f"{name}-float.pth.tar")).state)
    ai8x.fuse_bn_layers(model)
    x = torch.from_numpy(data["stat/x"].astype(np.float32) / 128)
    batches = [(batch, 0) for batch in torch.split(x, data["stat/batch"].tolist())]
    ai8x.pre_qat(model, batches, argparse.Namespace(device="cpu"), policy)
    for layer, known in stats.items():
        module: Any = model.get_submodule(layer)
        if "after" in known:
            assert float(module.activation_threshold) == known["after"], layer
        if "final_scale" in known:
            assert float(module.final_scale) == known["final_scale"], layer

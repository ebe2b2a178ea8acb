"""Ranges of weights: what they cost, that integers agree everywhere, and who reproduces them."""

from __future__ import annotations

import copy
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch
from torch import Tensor, nn

import ai8x
from ai8xtools.checkpoint import Checkpoint, read_checkpoint, write_checkpoint
from ai8xtools.diagnostics.errors import ToolError
from ai8xtools.layers.weight_ranges import best_range, quantile_of_range, squared_error
from ai8xtools.quantization import QuantizationOptions, quantize_checkpoint
from ai8xtools.training.loop.averaging import Average
from ai8xtools.training.policies import qat
from ai8xtools.training.saving import checkpoints

KEY = "range_exponent"


@pytest.fixture(autouse=True)
def _leave_no_trace() -> Iterator[None]:
    ai8x.set_device(85, simulate=False, round_avg=False, verbose=False)
    yield
    ai8x.set_device(85, simulate=False, round_avg=False, verbose=False)


class Small(nn.Module):
    def __init__(self) -> None:
        super().__init__()
        self.conv = ai8x.FusedConv2dReLU(3, 8, 3, padding=1, bias=True)  # type: ignore[attr-defined]
        self.fc = ai8x.Linear(8 * 16, 5, bias=True, wide=True)

    def forward(self, x: Tensor) -> Any:
        return self.fc(self.conv(x).flatten(1))


def trained(bits: int, generation: int = 1) -> Small:
    """Make a network in QAT whose weights have a few large values and biases beyond the weights."""
    torch.manual_seed(3)
    model = Small()
    ai8x.use_thresholds(model, generation == 2)
    with torch.no_grad():
        for layer in (model.conv, model.fc):
            layer.op.weight.normal_(0, 0.05).flatten()[:2] = torch.tensor([0.7, -0.6])
            layer.op.bias.uniform_(-0.9, 0.9)
    ai8x.initiate_qat(model, {"weight_bits": bits})
    ai8x.fit_ranges(model)
    return model


def saved(model: nn.Module, path: Path) -> Checkpoint:
    optimizer = torch.optim.SGD(model.parameters(), 0.1)
    checkpoints.write([path], 1, "small", model, optimizer, {})
    return read_checkpoint(str(path))


@pytest.mark.parametrize("bits", [1, 2, 4, 8])
@pytest.mark.parametrize("shape", ["normal", "heavy", "uniform"])
def test_range_has_the_least_error_of_all_powers_of_two(bits: int, shape: str) -> None:
    generator = torch.Generator().manual_seed(bits)
    weight = torch.randn(500, generator=generator)
    weight = {"normal": weight, "heavy": weight**3, "uniform": torch.rand(500) - 0.5}[shape]
    bias = torch.randn(10, generator=generator)
    error = squared_error(weight, bias, bits, best_range(weight, bias, bits))
    largest = int(np.ceil(np.log2(max(float(weight.abs().max()), float(bias.abs().max())))))
    assert error == min(
        squared_error(weight, bias, bits, r) for r in range(largest - 12, largest + 1)
    )


def test_error_is_that_of_the_integers() -> None:
    weight, bias = torch.tensor([0.9, -0.9, 0.2]), torch.tensor([3.0])
    # 2 bits in the range 1: steps of 1/2, integers -2..1; the bias is 6 of these steps
    assert squared_error(weight, bias, 2, 0) == pytest.approx(0.4**2 + 0.1**2 + 0.2**2)
    clipped = squared_error(weight, torch.tensor([100.0]), 2, 0)
    assert clipped - squared_error(weight, None, 2, 0) == pytest.approx(8 * (100 - 63.5) ** 2)


@pytest.mark.parametrize("generation", [1, 2])
@pytest.mark.parametrize("bits", [1, 2, 4, 8])
def test_training_quantizer_and_simulation_agree(
    bits: int, generation: int, tmp_path: Path
) -> None:
    model = trained(bits, generation).eval()
    x = (torch.rand(6, 3, 4, 4) * 256 - 128).floor() / 128
    expected = model(x)
    quantized = quantize_checkpoint(saved(model, tmp_path / "q.pth.tar"), QuantizationOptions())
    write_checkpoint(str(tmp_path / "i.pth.tar"), quantized.checkpoint)
    state = quantized.checkpoint.state_dict
    assert int(state["conv.bias_bits"].item()) == 8
    steps = state["conv.op.bias"] / 2.0 ** (bits - 1)
    assert np.array_equal(steps, np.rint(steps))
    if bits < 8:
        assert np.abs(steps).max() > 2 ** (bits - 1)  # outside of the range of the weights
    ai8x.set_device(85, simulate=True, round_avg=False, verbose=False)
    simulated = Small()
    checkpoints.load_into(simulated, checkpoints.read(str(tmp_path / "i.pth.tar")))
    assert torch.equal(simulated.eval()(x * 128) * 2.0 ** (8 - bits), expected * 16384)


@pytest.mark.parametrize("generation", [1, 2])
@pytest.mark.parametrize("bits", [1, 2, 4, 8])
def test_quantizer_that_knows_only_quantiles_gives_the_same_weights(
    bits: int, generation: int, tmp_path: Path
) -> None:
    ours = saved(trained(bits, generation), tmp_path / "q.pth.tar")
    without = {k: v for k, v in ours.state_dict.items() if not k.endswith(KEY)}
    assert len(without) == len(ours.state_dict) - 2
    first, second = (
        quantize_checkpoint(c, QuantizationOptions()).checkpoint.state_dict
        for c in (ours, ours.with_entries(state_dict=without))
    )
    for name in without:
        if not name.endswith(("bias", "bias_bits")) or bits == 8:
            assert np.array_equal(first[name], second[name]), name


def test_loaded_network_computes_the_same_and_keeps_its_ranges(tmp_path: Path) -> None:
    model = trained(2).eval()
    x = torch.rand(4, 3, 4, 4)
    before = model(x)
    saved(model, tmp_path / "q.pth.tar")
    loaded = Small()
    assert checkpoints.load_into(loaded, checkpoints.read(str(tmp_path / "q.pth.tar"))) == []
    assert torch.equal(loaded.eval()(x), before)
    assert list(loaded.state_dict()) == list(model.state_dict())
    loaded.conv._replaced = loaded.fc._replaced = True  # one step after the other
    assert torch.equal(loaded(x), before)


def test_new_start_of_training_goes_back_to_the_first_rule() -> None:
    model = trained(2)
    ai8x.initiate_qat(model, {"weight_bits": 4})
    assert not any(name.endswith(KEY) for name in model.state_dict())
    assert int(model.conv.bias_bits) == 4


def test_range_follows_the_weights_only_where_that_is_clearly_better() -> None:
    model = trained(2)
    held = int(model.conv.range_exponent)
    ai8x.refit_ranges(model)
    assert int(model.conv.range_exponent) == held
    with torch.no_grad():
        model.conv.op.weight.mul_(4)
    ai8x.refit_ranges(model)
    assert int(model.conv.range_exponent) == held + 2


def test_an_average_of_weights_has_the_ranges_of_the_training(tmp_path: Path) -> None:
    """Not their mean, which is no power of two: in functions and checkpoints alike."""
    model = trained(2)
    average = Average(model, 0.99)
    with torch.no_grad():
        model.conv.op.weight.mul_(4)
    ai8x.refit_ranges(model)
    average.follow_ranges(model)
    for _ in range(3):
        average.update(model)
    assert average.model.conv.range_exponent == model.conv.range_exponent
    x = torch.rand(4, 3, 4, 4)
    saved(average.model, tmp_path / "q.pth.tar")
    loaded = Small()
    checkpoints.load_into(loaded, checkpoints.read(str(tmp_path / "q.pth.tar")))
    assert torch.equal(loaded.eval()(x), average.model.eval()(x))


@pytest.mark.parametrize("generation", [1, 2])
@pytest.mark.parametrize("bits", [1, 2])
def test_corrected_biases_restore_the_means(bits: int, generation: int) -> None:
    torch.manual_seed(1)
    trained = Small()
    ai8x.use_thresholds(trained, generation == 2)
    if generation == 2:
        trained.conv.activation_threshold.data.fill_(1)
        trained.fc.final_scale.data.fill_(2)
        trained.conv.set_functions(), trained.fc.set_functions()
    x = torch.rand(64, 3, 4, 4)
    with torch.no_grad():
        for parameter in trained.parameters():
            if parameter.ndim > 1:
                parameter.uniform_(-0.1, 0.01)  # most are not near an integer
    model = copy.deepcopy(trained)
    ai8x.initiate_qat(model, {"weight_bits": bits})
    ai8x.fit_ranges(model)

    def means(changed: Any) -> Tensor:
        # of what the output layer sums up, with the data that the layer before delivers
        return operate_fc(changed, changed.conv(x.clone()).flatten(1)).mean(0)

    def operate_fc(changed: Any, data: Tensor) -> Tensor:
        scores: Tensor = changed.fc(data)
        held = getattr(changed.fc, KEY, None)
        return scores if held is None else scores * 2.0 ** float(held)

    wanted, before = means(trained).detach(), means(model).detach()
    ai8x.correct_biases(model, trained, [x[:32], x[32:]], widest=bits)
    step = 2.0 ** (float(model.fc.range_exponent) + 1 - bits)
    scale = 2.0 ** float(model.fc.final_scale) if generation == 2 else 1.0
    after = float((means(model).detach() - wanted).abs().max())
    assert after <= (step / 2 + 1e-5) * scale
    assert not torch.equal(model.fc.op.bias, trained.fc.op.bias)
    assert not torch.equal(before, means(model).detach())
    assert model.training
    assert trained.training


@pytest.mark.parametrize("count", [2, 3, 40, 5000])
def test_quantile_leads_to_the_range(count: int) -> None:
    magnitudes = torch.randn(count, generator=torch.Generator().manual_seed(count)).abs()
    largest = int(np.ceil(np.log2(float(magnitudes.max()))))
    for exponent in range(largest - 2, largest + 1):
        q = np.float32(quantile_of_range(magnitudes, exponent))
        if q < 1 or exponent == largest:
            found = np.quantile(magnitudes.numpy(), q)
            assert 2.0 ** (exponent - 1) < found <= 2.0**exponent


def test_unreachable_range_leaves_the_quantile_at_one() -> None:
    assert quantile_of_range(torch.tensor([0.1, 0.2, 0.3]), 3) == 1.0


def test_policy_with_quantiles_is_for_the_first_rule() -> None:
    plain = {"weight_bits": 8, "overrides": {}}
    quantiles = {"weight_bits": 8, "overrides": {"fc": {"shift_quantile": 0.9}}}
    assert qat.fits_ranges(None, plain)
    assert not qat.fits_ranges("vendor", plain)
    assert not qat.fits_ranges(None, quantiles)
    assert qat.fits_ranges("fit", quantiles)


@pytest.mark.parametrize("value", [0.5, 16, float("nan")])
def test_range_that_is_no_whole_number_is_refused(value: float, tmp_path: Path) -> None:
    checkpoint = saved(trained(2), tmp_path / "q.pth.tar")
    state = {**checkpoint.state_dict, f"conv.{KEY}": np.array(value, np.float32)}
    with pytest.raises(ToolError, match=r"conv\.range_exponent is .*whole number"):
        quantize_checkpoint(checkpoint.with_entries(state_dict=state), QuantizationOptions())


def test_layers_of_two_generations_are_refused(tmp_path: Path) -> None:
    path = tmp_path / "q.pth.tar"
    checkpoint = saved(trained(2, generation=2), path)
    mixed = {k: v for k, v in checkpoint.state_dict.items() if k != "fc.activation_threshold"}
    with pytest.raises(ToolError, match="fc without activation_threshold, the other 1 with it"):
        quantize_checkpoint(checkpoint.with_entries(state_dict=mixed), QuantizationOptions())
    write_checkpoint(str(path), checkpoint.with_entries(state_dict=mixed))
    with pytest.raises(ToolError, match="two generations") as caught:
        checkpoints.read(str(path))
    assert caught.value.place == str(path)


def test_threshold_that_is_no_whole_number_is_refused_before_training(tmp_path: Path) -> None:
    path = tmp_path / "q.pth.tar"
    checkpoint = saved(trained(2, generation=2), path)
    state = {**checkpoint.state_dict, "conv.activation_threshold": np.array(0.5, np.float32)}
    write_checkpoint(str(path), checkpoint.with_entries(state_dict=state))
    with pytest.raises(ToolError, match="activation_threshold is 0.5.*whole number"):
        checkpoints.read(str(path))


@pytest.mark.parametrize("largest", [-1, 0, 3])
def test_ranges_are_tried_down_to_the_sixth_power_of_two_of_the_weights(largest: int) -> None:
    """One large weight among many of 1/64 of it at most: the seventh power would cost least."""
    weight = torch.linspace(-1, 1, 1 << 16) * 2.0 ** (largest - 6)
    weight[0] = 2.0**largest
    errors = [squared_error(weight, None, 2, largest - i) for i in range(7)]
    assert errors[6] < errors[5] == min(errors[:6])
    assert best_range(weight, None, 2) == largest - 5

"""The start of weights of a single bit, and that training keeps them where gradients reach them."""

from __future__ import annotations

from typing import Any

import pytest
import torch
from torch import Tensor, nn

import ai8x
from ai8xtools.layers.single_bits import REACH, SHARE


class Small(nn.Module):
    """Two convolutions with bias, one without, and scores."""

    def __init__(self) -> None:
        super().__init__()
        ai8x.set_device(85, simulate=False, round_avg=False, verbose=False)
        self.conv1 = ai8x.FusedConv2dReLU(3, 40, 3, padding=1, bias=True)
        self.conv2 = ai8x.FusedMaxPoolConv2dReLU(40, 24, 3, padding=1, bias=True)
        self.plain = ai8x.FusedConv2dReLU(24, 8, 1, bias=False)
        self.fc = ai8x.Linear(128, 10, bias=True, wide=True)

    def forward(self, x: Tensor) -> Tensor:
        return self.fc(self.plain(self.conv2(self.conv1(x))).flatten(1))  # type: ignore[no-any-return]


def started(generation: int = 1, bits: int = 1) -> tuple[Small, Tensor]:
    """Return a network that QAT begins with, and samples."""
    torch.manual_seed(3)
    model, x = Small(), torch.rand(64, 3, 8, 8) - 0.5
    ai8x.use_thresholds(model, generation == 2)
    if generation == 2:
        model.conv1.activation_threshold.data.fill_(2)
        model.conv1.set_functions()
    ai8x.initiate_qat(model, {"weight_bits": bits})
    ai8x.fit_ranges(model)
    ai8x.start_single_bits(model, [x[:32], x[32:]])
    return model, x


def seen(model: Any, name: str, x: Tensor) -> tuple[Tensor, Tensor]:
    """Return the input of a layer, and what it puts out before it is rectified."""
    layer, found = getattr(model, name), []
    layer.register_forward_pre_hook(lambda _, inputs: found.append(inputs[0].clone()))
    model.eval()(x.clone())
    if layer.pool is not None:
        found[0] = layer.pool(found[0])
    down, up = layer.scales()
    weight = (layer.op.weight * down + 0.5).floor().clamp(-1, 0)
    sums = nn.functional.conv2d(found[0], weight, layer.op.bias * down, padding=1)
    return weight, sums * up


@pytest.mark.parametrize("generation", [1, 2])
@pytest.mark.parametrize("name", ["conv1", "conv2"])
def test_results_of_the_start_fill_their_range(name: str, generation: int) -> None:
    model, x = started(generation)
    with torch.no_grad():
        weight, results = seen(model, name, x)
    assert float((weight == -1).float().mean()) == pytest.approx(SHARE, abs=0.01)
    assert 0.25 < float(results.std((0, 2, 3)).mean()) < 0.6
    assert float(results.mean()) == pytest.approx(0.1, abs=0.02)


def test_the_most_negative_weights_become_minus_one_in_their_order() -> None:
    torch.manual_seed(3)
    before = Small().conv2.op.weight.detach().flatten()
    layer = started()[0].conv2
    chosen = layer.op.weight.detach().flatten() < -0.5 * 2.0 ** float(layer.range_exponent)
    assert before[chosen].max() <= before[~chosen].min()


def test_layers_without_bias_and_of_more_bits_stay() -> None:
    torch.manual_seed(3)
    trained = dict(Small().named_parameters())
    for bits, names in ((1, ["plain"]), (2, ["conv1", "conv2", "plain", "fc"])):
        model = dict(started(bits=bits)[0].named_parameters())
        for name in names:
            assert torch.equal(model[f"{name}.op.weight"], trained[f"{name}.op.weight"])


def test_a_layer_that_nothing_reaches_stays_usable() -> None:
    model, _ = started()
    ai8x.start_single_bits(model, [torch.zeros(2, 3, 8, 8)])
    assert all(p.isfinite().all() for p in model.parameters())


@pytest.mark.parametrize("bits", [1, 2])
def test_weights_stay_where_gradients_reach_them(bits: int) -> None:
    model, x = started(bits=bits)
    layer = model.train().conv1
    layer.use_range(-3)
    with torch.no_grad():
        layer.op.weight.mul_(100)
    far = layer.op.weight.detach().clone()
    ai8x.keep_single_bits_in_reach(model)
    if bits != 1:
        assert torch.equal(layer.op.weight, far)
        return
    step = 2.0 ** float(layer.range_exponent)
    assert step == 1 / 8
    assert float(layer.op.weight.max()) == pytest.approx((REACH - 0.5) * step)
    assert float(layer.op.weight.min()) == pytest.approx(-(REACH + 0.5) * step)
    layer(x).sum().backward()
    assert (layer.op.weight.grad != 0).all()


def test_ranges_of_single_bits_are_not_fitted_to_weights_again() -> None:
    model, _ = started()
    held = float(model.conv1.range_exponent)
    with torch.no_grad():
        model.conv1.op.weight.mul_(0.1)
    ai8x.refit_ranges(model)
    assert float(model.conv1.range_exponent) == held
